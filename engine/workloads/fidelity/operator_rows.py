"""Reads the cann-bench table: rows of operators with their measured device time."""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """

    names: tuple[str, ...]
    measured: MeasuredKernels
    authors_ns: Float64Array

    def __len__(self) -> int:
        return len(self.names)

    @property
    def moved_ns(self) -> Float64Array:
        """float64, shape (n,): bytes of inputs and outputs at the memory's peak rate, at least 1 ns."""
        kernels = self.measured.kernels
        moved = (kernels.read_bytes + kernels.write_bytes).astype(np.float64)
        total = np.bincount(self.measured.row, moved, minlength=len(self))
        return np.asarray(np.maximum(total / self.measured.device.hbm_bytes_per_s * 1e9, 1.0), np.float64)


def read_operator_rows(path: Path) -> tuple[OperatorRows, ...]:
    """Returns the table's rows by device, devices we do not know left out. Raises TraceReadError.

    A few hundred rows: a Python loop is fine.
    """
    by_device: dict[str, list[tuple[str, tuple[OperatorTable, ...], float, float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file)):
                if row["hw"] in device_ids() and row["status"] == "measured":
                    by_device.setdefault(row["hw"], []).append(_parsed(row, path, number))
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise TraceReadError(f"not the operator table: {error}", SourcePosition(path)) from error
    return tuple(_rows(load_device(name), rows) for name, rows in sorted(by_device.items()))


def _parsed(row: dict[str, str], path: Path, number: int) -> tuple[str, tuple[OperatorTable, ...], float, float]:
    try:
        case = Case(
            shapes=json.loads(row["input_shape"]),
            dtypes=[DTYPES.get(name) for name in json.loads(row["dtype"])],
            attributes=json.loads(row["attrs"]),
            device=load_device(row["hw"]),
            kernels={name: int(count) for name, count in re.findall(r"(\w+)×(\d+)", row["note"])},
        )
        kernels = case_kernels(row["operator"], case)
        authors_us = float(row["roofline_t_hw_us"] or "nan")
        return row["operator"], kernels, float(row["baseline_us"]) * 1e3, authors_us * 1e3
    except (ValueError, KeyError, IndexError, TypeError) as error:
        what = f"operator {row.get('operator')} case {row.get('case_id')}: {error!r}"
        raise TraceReadError(what, SourcePosition(path, row=number)) from error


def _rows(device: DeviceSpec, rows: Sequence[tuple[str, tuple[OperatorTable, ...], float, float]]) -> OperatorRows:
    kernels = [kernel for _, tables, _, _ in rows for kernel in tables]
    counts = [len(tables) for _, tables, _, _ in rows]
    return OperatorRows(
        names=tuple(name for name, *_ in rows),
        measured=MeasuredKernels(
            device=device,
            kernels=concatenate(kernels),
            row=np.repeat(np.arange(len(rows), dtype=np.int64), counts),
            measured_ns=np.array([measured for *_, measured, _ in rows], np.float64),
        ),
        authors_ns=np.array([authors for *_, authors in rows], np.float64),
    )
