"""The tables of whole training runs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from engine.core.progress import Progress
from engine.workloads.fidelity.scores import scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityTable, Target
from engine.workloads.fidelity.training_rows import (
    MEGATRON_MEMORY_FILE,
    MEGATRON_TIME_FILE,
    MODELLINK_FILE,
    TrainingRows,
    read_megatron_memory,
    read_megatron_time,
    read_modellink,
)

_TARGET = Target("mape_ratio", 0.10)


def _table(
    table: str, title: str, files: tuple[str, ...], read: Callable[[Path], TrainingRows], notes: tuple[str, ...]
) -> FidelityTable:
    def evaluate(directory: Path, progress: Progress) -> FidelityResult:
        progress(0.0, title)
        rows = read(directory)
        named = bool(np.isfinite(rows.constant).all())
        baselines = {"constant share of peak (median of these rows)": scores(rows.constant, rows.measured)}
        return FidelityResult(
            table=table,
            title=title,
            scores=scores(rows.predicted, rows.measured),
            baselines=baselines if named else {},
            target=_TARGET,
            notes=notes,
        )

    return FidelityTable(table, title, files, evaluate)


TRAINING_TABLES: tuple[FidelityTable, ...] = (
    _table(
        "training-ascend",
        "training on Atlas 900 A2: tokens per second and NPU (ModelLink, October 2024)",
        (MODELLINK_FILE,),
        read_modellink,
        (
            "One constant of expert routing was set on its three mixture-of-experts rows, nothing else.",
            "Runs called Legacy come out too fast, as do models with operators the lowering lacks (Gemma 2).",
        ),
    ),
    _table(
        "training-a100",
        "training on A100: seconds per iteration (Korthikanti et al. 2022)",
        (MEGATRON_TIME_FILE,),
        read_megatron_time,
        ("Nothing was fitted on these rows.",),
    ),
    _table(
        "memory-a100",
        "memory on A100: weights with state, activations (Korthikanti et al. 2022)",
        (MEGATRON_MEMORY_FILE, MEGATRON_TIME_FILE),
        read_megatron_memory,
        ("Nothing was fitted on these rows: tensors are counted as they are allocated and freed.",),
    ),
)
