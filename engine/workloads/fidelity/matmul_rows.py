"""Reads published matmul rates: the micro-benchmark table and the decode kernels of an A3 die."""

import csv
import re
from pathlib import Path

import numpy as np

from engine.core.errors import SourcePosition, TraceReadError
from engine.devices.catalogue import load_device
from engine.devices.spec import DType
from engine.runtime.cost.fitting import MeasuredKernels
from engine.runtime.cost.operators import OperatorTable, concatenate, matmul
from engine.workloads.fidelity.operator_rows import OperatorRows

MICRO_FILE = "ascend_micro_compute_mem.csv"
DECODE_FILE = "ascend_a3_decode_kernels.csv"
_DEVICES = {"910B2": "910b2", "910B2C": "910b2"}
_DTYPES = {"fp16": DType.FP16, "bf16": DType.BF16, "fp32": DType.FP32}
_STATED = re.compile(r"matmul_(fp16|bf16)_(\d+)x(\d+)x(\d+)_ns$")
HOST_TIMED = "matmul, host-timed"
"""Rows whose times hold the host's share too: short ones look slower than the device is."""
_RATE = re.compile(r"matmul (fp16|bf16|fp32)(?:\(HF32\))? (?:M(\d+) N(\d+) K(\d+)|(\d+)\^3)$")


def read_matmul_rows(directory: Path) -> tuple[OperatorRows, ...]:
    """Returns matmuls of stated shapes with their times, by device; those of the device file too.

    Raises TraceReadError.

    Rows without a shape ("best of sweep") say nothing about a shape and are left out.
    """
    micro: list[tuple[str, OperatorTable, float]] = []
    for row in _rows(directory / MICRO_FILE):
        found = _RATE.search(row["measurement"])
        if row["device"] not in _DEVICES or row["unit"] != "TFLOPS" or found is None:
            continue
        dtype = _DTYPES[found[1]]
        m, n, k = (int(found[index] or found[5]) for index in (2, 3, 4))
        name = HOST_TIMED if "host-timed" in row["source"] else "matmul"
        micro.append((name, matmul(m, n, k, dtype), 2.0 * m * n * k / (float(row["value"]) * 1e3)))
    for name, constant in load_device("910b2").measured.items():
        stated = _STATED.match(name)
        if stated is not None:
            m, n, k = (int(stated[index]) for index in (2, 3, 4))
            micro.append(("matmul, small", matmul(m, n, k, _DTYPES[stated[1]]), constant.value))
    decode = [
        (
            "matmul, decode",
            matmul(int(row["M"]), int(row["N"]), int(row["K"]), DType.BF16),
            float(row["measured_us"]) * 1e3,
        )
        for row in _rows(directory / DECODE_FILE)
    ]
    return _table("910b2", micro), _table("910c-die", decode)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TraceReadError(f"not a validation table: {error}", SourcePosition(path)) from error


def _table(device: str, rows: list[tuple[str, OperatorTable, float]]) -> OperatorRows:
    return OperatorRows(
        names=tuple(name for name, *_ in rows),
        measured=MeasuredKernels(
            load_device(device),
            concatenate([operator for _, operator, _ in rows]),
            np.arange(len(rows), dtype=np.int64),
            np.array([time_ns for *_, time_ns in rows], np.float64),
        ),
        authors_ns=np.full(len(rows), np.nan),
    )
