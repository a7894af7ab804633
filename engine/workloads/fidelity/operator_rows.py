"""Reads the cann-bench table: rows of operators with their measured device time."""

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Float64Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.devices.catalogue import device_ids, load_device
from engine.devices.spec import DeviceSpec
from engine.runtime.cost.fitting import MeasuredKernels
from engine.runtime.cost.operators import OperatorTable, concatenate
from engine.workloads.fidelity.operator_cases import DTYPES, Case
from engine.workloads.fidelity.operator_kernels import case_kernels

FILE = "ascend_operator_us_cannbench.csv"


@dataclass(frozen=True, slots=True)
class OperatorRows:
    """Measured operators of one device.

    Attributes:
        names: Operator per row.
        measured: The rows' kernels and times.
        authors_ns: float64, shape (n,): the table's own roofline, NaN where it gives none.
        by_bytes_count: Rows priced by their bytes: nobody described the operator, or these arguments of it.
        unreadable_count: Rows left out because shapes, types or times could not be read.
    """

    names: tuple[str, ...]
    measured: MeasuredKernels
    authors_ns: Float64Array
    by_bytes_count: int = 0
    unreadable_count: int = 0

    def __len__(self) -> int:
        return len(self.names)

    @property
    def moved_ns(self) -> Float64Array:
        """float64, shape (n,): bytes of inputs and outputs at the memory's peak rate, at least 1 ns."""
        kernels = self.measured.kernels
        moved = (kernels.read_bytes + kernels.write_bytes).astype(np.float64)
        total = np.bincount(self.measured.row, moved, minlength=len(self))
        return np.asarray(np.maximum(total / self.measured.device.hbm_bytes_per_s * 1e9, 1.0), np.float64)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    kernels: tuple[OperatorTable, ...]
    measured_ns: float
    authors_ns: float
    by_bytes: bool


def read_operator_rows(path: Path) -> tuple[OperatorRows, ...]:
    """Returns the table's rows by device, devices we do not know left out. Raises TraceReadError.

    One row that cannot be read is counted and the others are used. A few hundred rows: a Python loop is fine.
    """
    by_device: dict[str, list[_Row]] = {}
    unreadable: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["hw"] not in device_ids() or row["status"] != "measured":
                    continue
                parsed = _parsed(row)
                if parsed is None:
                    unreadable[row["hw"]] += 1
                else:
                    by_device.setdefault(row["hw"], []).append(parsed)
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise TraceReadError(f"not the operator table: {error}", SourcePosition(path)) from error
    return tuple(_rows(load_device(name), rows, unreadable[name]) for name, rows in sorted(by_device.items()))


def _parsed(row: dict[str, str]) -> _Row | None:
    try:
        case = Case(
            shapes=_json(row["input_shape"]),
            dtypes=[DTYPES.get(name) for name in _json(row["dtype"])],
            attributes=_json(row["attrs"]),
            device=load_device(row["hw"]),
            kernels={name: int(count) for name, count in re.findall(r"(\w+)×(\d+)", row["note"])},
        )
        measured_ns, authors_ns = float(row["baseline_us"]) * 1e3, float(row["roofline_t_hw_us"] or "nan") * 1e3
        kernels, by_bytes = case_kernels(row["operator"], case)
    except (ValueError, TypeError):
        return None
    return _Row(row["operator"], kernels, measured_ns, authors_ns, by_bytes) if measured_ns > 0 else None


def _json(text: str) -> Any:
    """Returns a cell's value; some rows of the table use single quotes."""
    return json.loads(text.replace("'", '"'))


def _rows(device: DeviceSpec, rows: Sequence[_Row], unreadable_count: int) -> OperatorRows:
    return OperatorRows(
        names=tuple(row.name for row in rows),
        measured=MeasuredKernels(
            device=device,
            kernels=concatenate([kernel for row in rows for kernel in row.kernels]),
            row=np.repeat(np.arange(len(rows), dtype=np.int64), [len(row.kernels) for row in rows]),
            measured_ns=np.array([row.measured_ns for row in rows], np.float64),
        ),
        authors_ns=np.array([row.authors_ns for row in rows], np.float64),
        by_bytes_count=sum(row.by_bytes for row in rows),
        unreadable_count=unreadable_count,
    )
