"""Collectives against their published times, beside what the data sheets of the links would promise."""

from dataclasses import replace
from pathlib import Path

from engine.core.progress import Progress
from engine.workloads.fidelity.collective_fit import unseen_predictions
from engine.workloads.fidelity.collective_rows import (
    LUT_DIRECTORY,
    MICRO_FILE,
    VIDUR_FILE,
    MeasuredCollectives,
    read_lut,
    read_micro,
    read_vidur,
    vidur_groups,
)
from engine.workloads.fidelity.scores import scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityTable, Target


def evaluate_lut(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the look-up table of NCCL all-reduces on A100 and V100."""
    progress(0.0, "collectives")
    return _result(
        read_lut(directory),
        "NCCL all-reduce of 1 MB to 1 GB on 2, 4 and 8 A100 and V100",
        Target("mape_ratio", 0.05),
        ("four constants per card type and reach were fitted to these rows; the formulas are those of the cost table",),
    )


def evaluate_vidur(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the profile of NCCL on three clusters."""
    progress(0.0, "collectives")
    return _result(
        read_vidur(directory),
        "NCCL all-reduce and sends of 2 KB to 0.5 GB on A100 and H100 clusters",
        Target("mape_ratio", 0.25),
        (
            "constants of small messages and of each cluster's network were fitted to these rows",
            "medians of three repetitions: equal sizes differ by up to threefold below 1 MB, which no model can follow",
        ),
    )


def evaluate_vidur_unseen(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the same rows, each predicted by constants fitted to the other half of its group's sizes."""
    groups = vidur_groups(directory)
    table = read_vidur(directory, unseen_predictions(groups, progress))
    return _result(
        replace(table, name="comm_vidur-unseen"),
        "the same rows, each predicted by a fit that did not see it (every second size)",
        Target("mape_ratio", 0.25),
        ("constants start from one value for all systems; the formulas and the constants of nccl_lut stay",),
    )


def evaluate_micro(directory: Path, progress: Progress) -> FidelityResult:
    """Returns large collectives on 910B and A800."""
    progress(0.0, "collectives")
    return _result(
        read_micro(directory),
        "large all-gather and all-reduce on 2, 4 and 8 cards of 910B and A800",
        None,
        (
            "the rate of a 910B link was read off one row; no row of the A800 was used: A100's constants and its links",
            "four 910B cards fall 19 to 27 % short of a mesh; why is not published",
        ),
    )


COLLECTIVE_TABLES = (
    FidelityTable("nccl_lut", "NCCL all-reduce, look-up table", (LUT_DIRECTORY,), evaluate_lut),
    FidelityTable("comm_vidur", "NCCL on A100 and H100 clusters", (VIDUR_FILE,), evaluate_vidur),
    FidelityTable("ascend_micro_comm", "large collectives on 910B and A800", (MICRO_FILE,), evaluate_micro),
)


SLOW_COLLECTIVE_TABLES = (
    FidelityTable("comm_vidur-unseen", "rows a fit did not see", (VIDUR_FILE,), evaluate_vidur_unseen),
)
"""Evaluated only when named: it fits the constants twice."""


def _result(table: MeasuredCollectives, title: str, target: Target | None, notes: tuple[str, ...]) -> FidelityResult:
    parts = {}
    for name in dict.fromkeys(table.parts):
        chosen = [part == name for part in table.parts]
        parts[name] = scores(table.predicted_ns[chosen], table.measured_ns[chosen])
    return FidelityResult(
        table=table.name,
        title=title,
        scores=scores(table.predicted_ns, table.measured_ns),
        baselines={"data sheet": scores(table.data_sheet_ns, table.measured_ns)},
        parts=parts,
        target=target,
        notes=notes,
    )
