"""The allocators against real ones: addresses of snapshots, reserved memory of captures, published problems."""

import csv
from pathlib import Path

import numpy as np

from engine.core.progress import Progress
from engine.formats.opening import open_job
from engine.formats.readers import built_in_readers
from engine.formats.snapshots.allocator_snapshot import read_snapshot
from engine.replay.memory_replay import replay_memory
from engine.replay.snapshot_replay import replay_snapshot
from engine.runtime.allocators.static_plan import static_plan
from engine.workloads.fidelity.scores import Scores, scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityTable, Target

_SNAPSHOTS = "../../captures/snapshots"
_CAPTURES = {
    "Qwen3": ("rank_0", "rank_2"),
    "CNN": ("level0/rank0", "level0/rank1", "level1/rank0", "level1/rank1", "level2/rank0", "level2/rank1"),
}
_DIRECTORIES = {
    "Qwen3": "../../captures/ascend/910b-qwen3-0.6b-pp2dp2",
    "CNN": "../../captures/ascend/910b-cnn-ddp2-text",
}
_PLAN_FILES = tuple(f"minimalloc/{name}.1048576.csv" for name in "ABCDEFGHIJK")
_PLAN_CAPACITY = 1_048_576


def _pairs(rows: list[tuple[float, float]]) -> Scores:
    predicted, measured = np.array(rows, dtype=np.float64).T
    return scores(predicted, measured)


def _addresses(directory: Path, progress: Progress) -> FidelityResult:
    """Compares allocations at their recorded address with all allocations, one row per snapshot."""
    rows: dict[str, tuple[float, float]] = {}
    paths = sorted((directory / _SNAPSHOTS).iterdir())
    for done, path in enumerate(paths):
        progress(done / len(paths), path.name)
        found = replay_snapshot(read_snapshot(path))
        rows[path.name] = (found.addresses_matched, found.addresses_total)
    return FidelityResult(
        table="allocator-addresses",
        title="allocations of real snapshots that get the recorded address",
        scores=_pairs(list(rows.values())),
        parts={name: _pairs([row]) for name, row in rows.items()},
        target=Target("mape_ratio", 0.015),
        notes=("the log of 512_training begins in a state that its snapshot does not determine",),
    )


def _reserved(directory: Path, progress: Progress) -> FidelityResult:
    """Compares peak reserved of captures' memory logs under the policy they name with the recorded peak."""
    parts: dict[str, list[tuple[float, float]]] = {}
    for done, (name, ranks) in enumerate(_CAPTURES.items()):
        progress(done / len(_CAPTURES), name)
        for rank in ranks:
            path = directory / _DIRECTORIES[name] / f"{rank}_ascend_pt"
            (entry,) = open_job([path], built_in_readers()).ranks
            found = replay_memory(entry.trace)
            if found.recorded_peak_reserved_bytes:
                row = (float(found.outcome.peak_reserved_bytes), float(found.recorded_peak_reserved_bytes))
                parts.setdefault(name, []).append(row)
    return FidelityResult(
        table="allocator-reserved",
        title="peak reserved of captures, their blocks replayed under the policy they name",
        scores=_pairs([row for rows in parts.values() for row in rows]),
        parts={name: _pairs(rows) for name, rows in parts.items()},
        target=Target("p90_ratio", 0.05),
        notes=("where the blocks alive before a capture lay is not recorded; they are taken as one block",),
    )


def _plans(directory: Path, progress: Progress) -> FidelityResult:
    """Compares the height of static plans with the capacity that is known to suffice."""
    found, greedy = [], []
    for done, file in enumerate(_PLAN_FILES):
        progress(done / len(_PLAN_FILES), file)
        with (directory / file).open(encoding="utf-8") as text:
            rows = [(int(row["size"]), int(row["lower"]), int(row["upper"])) for row in csv.DictReader(text)]
        plan = static_plan(*np.array(rows, dtype=np.int64).T.copy())
        found.append((float(plan.height_bytes), float(_PLAN_CAPACITY)))
        greedy.append((float(plan.heuristic_height_bytes), float(_PLAN_CAPACITY)))
    return FidelityResult(
        table="static-plans",
        title="height of static plans against the capacity of published problems",
        scores=_pairs(found),
        baselines={"best of the greedy heuristics": _pairs(greedy)},
        target=Target("bias_ratio", 0.03),
    )


ALLOCATOR_TABLES = (
    FidelityTable("allocator-addresses", "addresses of real snapshots", (_SNAPSHOTS,), _addresses),
    FidelityTable("allocator-reserved", "peak reserved of captures", tuple(_DIRECTORIES.values()), _reserved),
)
"""Evaluated in seconds."""
SLOW_ALLOCATOR_TABLES = (FidelityTable("static-plans", "static plans of published problems", _PLAN_FILES, _plans),)
"""Minutes of search."""
