"""Device memory: holes, headroom, leaks, and the allocator's own time."""

from collections.abc import Mapping, Sequence

from engine.advisor.cures import STRANDED_RATIO
from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Evidence, Finding, Severity, Toggle, Unit
from engine.advisor.rules.rule import Rule, danger
from engine.analyses.memory import Leak
from engine.analyses.memory_trend import MemoryVerdict, memory_trend
from engine.core.errors import MissingDataError
from engine.core.number_format import format_bytes, format_count, format_ratio
from engine.core.units import MIB
from engine.optimizations.interface import Switch
from engine.replay.capture_policy import capture_policy
from engine.replay.capture_requests import capture_requests
from engine.replay.memory_replay import policy_outcome

_TIGHT_RATIO = 0.95
"""Share of the limit above which the next longer batch may not fit; a choice."""
_MEANINGFUL_LEAK_RATIO = 0.001
"""Of the peak: less is left behind by many operators and fills no device; a choice."""
_SAME_STEPS_RATIO = 0.5
"""Share of the steps that must leave something behind; a choice."""
_FEWEST_STEPS = 3
"""What two steps leave behind may be caches that fill; a choice."""
_LEAST_STRANDED_BYTES = 64 * MIB
"""Less is not worth a switch, whatever share of a small job it is; a choice."""

CURES = (
    "memory.expandable_segments",
    "memory.amc",
    "memory.max_split_size",
    "memory.gc_threshold",
    "memory.stitching",
    "memory.static_plan",
    "memory.periodic_check",
    "memory.restart",
)
"""What is tried against holes, and against the slowdown they cause."""
CRUDE = ("memory.periodic_check", "memory.restart")
"""What costs time by itself: tried only where a run has become slower."""
_THOROUGH = ("memory.expandable_segments", "memory.amc")
"""What makes the others needless where it works."""
SAVERS = (
    "memory.expandable_segments",
    "memory.recompute",
    "memory.reuse_fp32_parameters",
    "memory.tiering",
    "memory.offload",
)
"""What is tried where memory is short."""


_CUDA = "PyTorch notes, CUDA semantics, memory management"
_CUDA_SWITCHES = {
    "memory.expandable_segments": Switch("PyTorch", "", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", _CUDA),
    "memory.max_split_size": Switch("PyTorch", "", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:N", _CUDA),
    "memory.gc_threshold": Switch("PyTorch", "", "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:T", _CUDA),
}


def cures(examination: Examination) -> list[Toggle]:
    """Returns what is tried against holes; what is crude or partial only where nothing thorough cures them."""
    own = {} if examination.is_ascend else _CUDA_SWITCHES
    return [
        Toggle(name, how_to_apply=(own[name],) if name in own else (), only_if_needed=name not in _THOROUGH)
        for name in CURES
    ]


def fragmentation(examination: Examination) -> Sequence[Finding]:
    """Returns the rank with the largest share of stranded bytes, where it is more than usual.

    Of a simulated run they were measured at every miss; of a capture its log is replayed on the allocator it names.
    """
    shares = _simulated_stranded(examination) if examination.histories else _replayed_stranded(examination)
    rank = max(shares, key=lambda each: shares[each][0] / max(shares[each][1], 1))
    stranded, reserved, how = shares[rank]
    ratio = stranded / max(reserved, 1)
    if ratio <= STRANDED_RATIO or stranded < _LEAST_STRANDED_BYTES:
        return ()
    evidence = (
        Evidence("stranded", float(stranded), Unit.BYTES, STRANDED_RATIO * reserved, rank, how=how),
        Evidence("reserved at the peak", float(reserved), Unit.BYTES, rank=rank, how="peak of the run"),
        Evidence("share stranded", ratio, Unit.RATIO, STRANDED_RATIO, rank, how="stranded ÷ reserved"),
    )
    return [
        danger(
            "memory.fragmentation",
            Category.MEMORY,
            f"{format_bytes(stranded)} of {format_bytes(reserved)} reserved on rank {rank} "
            f"({format_ratio(ratio)}) are free but too scattered to be used",
            "blocks that stay alive pin partly used segments; what is asked for next does not fit between them",
            evidence,
            [item for item in cures(examination) if item.optimization not in CRUDE],
            severity=Severity.MEDIUM,
        )
    ]


def _simulated_stranded(examination: Examination) -> Mapping[int, tuple[int, int, str]]:
    return {
        rank: (
            max(int(history.stranded_bytes.max(initial=-1)), 0),
            int(history.peak_reserved_bytes.max(initial=0)),
            "free in partly used segments and smaller than what was asked, at the worst miss of the run",
        )
        for rank, history in examination.histories.items()
    }


def _replayed_stranded(examination: Examination) -> Mapping[int, tuple[int, int, str]]:
    found = {}
    for entry in examination.job.ranks:
        try:
            policy = capture_policy(entry.trace)
            outcome = policy_outcome(policy, capture_requests(entry.trace, policy.settings.pad_bytes))
        except MissingDataError:
            continue
        how = f"memory log replayed on {policy.title}, at the worst miss or the step's peak"
        found[entry.rank] = (outcome.stranded_bytes or 0, outcome.peak_reserved_bytes, how)
    if not found:
        raise MissingDataError("list of allocated blocks", "record with profile_memory=True")
    return found


def headroom(examination: Examination) -> Sequence[Finding]:
    """Returns the fullest rank where little of its limit is left."""
    levels = {
        rank: (int(history.peak_reserved_bytes.max(initial=0)), history.limit_bytes)
        for rank, history in examination.histories.items()
    }
    for entry in examination.summary.ranks:
        capacity = examination.trace(entry.rank).metadata.device_memory_bytes
        if (
            entry.rank not in levels
            and entry.memory is not None
            and capacity
            and entry.memory.headroom_bytes is not None
        ):
            levels[entry.rank] = (capacity - entry.memory.headroom_bytes, capacity)
    if not levels:
        raise MissingDataError("memory size of the device beside its memory log")
    rank = max(levels, key=lambda each: levels[each][0] / levels[each][1])
    used, limit = levels[rank]
    if used <= _TIGHT_RATIO * limit:
        return ()
    return [
        danger(
            "memory.headroom",
            Category.MEMORY,
            f"Rank {rank} reserves {format_bytes(used)} of {format_bytes(limit)}: {format_bytes(limit - used)} left",
            "a longer batch, another communicator or a little more fragmentation will not fit",
            (
                Evidence("held at the peak", float(used), Unit.BYTES, _TIGHT_RATIO * limit, rank, how="peak reserved"),
                Evidence("limit", float(limit), Unit.BYTES, rank=rank, how="what may be reserved"),
            ),
            [Toggle(name) for name in SAVERS],
            severity=Severity.MEDIUM,
        )
    ]


def leak(examination: Examination) -> Sequence[Finding]:
    """Returns live memory that grows over a run, or blocks an operator leaves behind step after step."""
    for rank, history in examination.histories.items():
        trend = memory_trend(history)
        if trend.verdict is MemoryVerdict.LEAK:
            per_step = trend.live_growth_bytes / max(len(history) - 1, 1)
            evidence = (
                Evidence("live after a step, end − begin", float(trend.live_growth_bytes), Unit.BYTES, rank=rank),
                Evidence(
                    "growth", per_step, Unit.BYTES_PER_STEP, rank=rank, how="medians of the first and last eighth"
                ),
            )
            return [_leaking(rank, trend.live_growth_bytes, "tensors born in steps are never released", evidence)]
    found, known = [], bool(examination.histories)
    for entry in examination.summary.ranks:
        memory, window = entry.memory, examination.windows.get(entry.rank)
        if memory is None or window is None or window.step_count < _FEWEST_STEPS:
            continue
        known = True
        needed = max(_FEWEST_STEPS, _SAME_STEPS_RATIO * window.step_count)
        least = _MEANINGFUL_LEAK_RATIO * (memory.peak_allocated_bytes or 0)
        found += [(entry.rank, item) for item in memory.leaks if item.step_count >= needed and item.bytes >= least]
    if not known:
        raise MissingDataError(
            f"memory log over {_FEWEST_STEPS} or more steps", "record more steps with profile_memory=True"
        )
    return [_leaking_operator(rank, item) for rank, item in found[:3]]


def _leaking_operator(rank: int, item: Leak) -> Finding:
    evidence = (
        Evidence(
            f"left behind by {item.operator}",
            float(item.bytes),
            Unit.BYTES,
            rank=rank,
            how="never freed in the capture",
        ),
        Evidence("blocks", float(item.count), Unit.COUNT, rank=rank),
        Evidence("steps that leave some behind", float(item.step_count), Unit.COUNT, float(_FEWEST_STEPS), rank),
    )
    cause = f"{item.operator} leaves {format_count(item.count)} blocks behind in {item.step_count} steps"
    return _leaking(rank, item.bytes, cause, evidence)


def _leaking(rank: int, size_bytes: int, cause: str, evidence: Sequence[Evidence]) -> Finding:
    action = Action(
        id="release_references",
        title="Release what outlives its step",
        how_to_apply=(
            Switch(
                "PyTorch",
                "",
                "keep loss.item() or loss.detach() instead of the loss; clear lists and caches of tensors every step",
                "PyTorch FAQ, “My model reports out of memory”",
                "find it with a snapshot: torch.npu.memory._dump_snapshot() at two steps",
            ),
        ),
        estimate=None,
        risk="none, if nothing reads the released tensors",
        undo="keep the references again",
        verify="live memory after steps stays flat over 100 steps",
    )
    return danger(
        "memory.leak",
        Category.MEMORY,
        f"Live memory of rank {rank} grows by {format_bytes(size_bytes)} over the capture",
        cause,
        evidence,
        (action,),
    )


RULES = (
    Rule("memory.fragmentation", "Memory that is free but too scattered to be used", fragmentation),
    Rule("memory.headroom", "Memory left up to the limit", headroom),
    Rule("memory.leak", "Live memory that grows", leak),
)
