"""Idle time for which the host was in the driver's allocator."""

from collections.abc import Sequence

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, at_best, loss
from engine.analyses.idle import IdleCause
from engine.core.number_format import format_duration_ns
from engine.optimizations.interface import Switch

_WARM_STEPS = Action(
    id="record.warm_steps",
    title="Record warm steps instead of the start of the process",
    how_to_apply=(
        Switch(
            "PyTorch",
            "",
            "profile(schedule=schedule(wait=5, warmup=2, active=3)) and prof.step() after every step",
            "torch.profiler",
        ),
    ),
    estimate=None,
    risk="none",
    undo="nothing to undo",
    verify="the capture has numbered steps",
)


def allocator_time(examination: Examination) -> Sequence[Finding]:
    """Returns the device's idle time for which the host was in the driver's allocator."""
    best, cost_ns = None, 0.0
    for entry in examination.with_kernels():
        gaps = [gap for gap in entry.idle if gap.cause is IdleCause.ALLOCATOR]
        start_ns = np.array([gap.start_ns for gap in gaps], dtype=np.int64)
        length_ns = np.array([gap.end_ns - gap.start_ns for gap in gaps], dtype=np.int64)
        total_ns = examination.per_step(entry.rank, start_ns, length_ns)
        if total_ns > cost_ns:
            best, cost_ns = (entry.rank, gaps), total_ns
    if best is None or examination.share(cost_ns) < WORTH_RATIO:
        return ()
    rank, gaps = best
    gaps.sort(key=lambda gap: gap.start_ns - gap.end_ns)
    events = tuple(gap.evidence for gap in gaps[:12] if gap.evidence >= 0)
    cause = "the cache has no block that fits, or was emptied: every miss is a driver call that waits for the device"
    remedies: tuple[Toggle | Action, ...] = (Toggle("memory.expandable_segments"),)
    if not examination.has_steps:
        cause = (
            "no steps were recorded, so that the first allocations of the process count in: they always need the driver"
        )
        remedies = (_WARM_STEPS,)
    elif examination.is_recorded:
        remedies = (*remedies, _keep_cache(examination, cost_ns))
    return [
        loss(
            examination,
            "memory.allocator_time",
            Category.MEMORY,
            f"Rank {rank} is idle {format_duration_ns(cost_ns)} per step while memory is taken from the driver",
            cause,
            cost_ns,
            (
                Evidence(
                    "idle in allocator calls", cost_ns, Unit.NS, rank=rank, events=events, how="gaps ≥ 20 µs, per step"
                ),
                Evidence("gaps", float(len(gaps)), Unit.COUNT, rank=rank, how="whole capture"),
            ),
            remedies,
        )
    ]


def _keep_cache(examination: Examination, cost_ns: float) -> Action:
    return Action(
        id="keep_cache",
        title="Keep memory from going back to the driver in the step: no empty_cache()",
        how_to_apply=(
            Switch(
                "torch_npu",
                "",
                "remove torch.npu.empty_cache() from the training loop",
                "msprof-analyze advisor, memory",
            ),
        )
        if examination.is_ascend
        else (
            Switch("PyTorch", "", "remove torch.cuda.empty_cache() from the training loop", "PyTorch CUDA semantics"),
        ),
        estimate=at_best(cost_ns),
        risk="more memory stays reserved between phases",
        undo="call it again after an epoch or phase",
        verify="allocator gaps in the idle table, after 5 warm steps",
    )


RULES = (Rule("memory.allocator_time", "Time in the driver's allocator", allocator_time),)
