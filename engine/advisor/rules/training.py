"""What training spends beside forward and backward: the optimizer, and computing things twice."""

from collections.abc import Sequence

from engine.advisor.examination import Examination
from engine.advisor.findings import HIGH_RATIO, Action, Category, Evidence, Finding, Severity, Toggle, Unit
from engine.advisor.rules.rule import Rule, danger, loss
from engine.core.errors import MissingDataError
from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from engine.optimizations.interface import Switch
from engine.workloads.scenario import Recompute

_OPTIMIZER = "optimizer"
_ROOM_RATIO = 0.3
"""Free share of the limit from which on recomputation is worth a doubt; whether it can go, a run without it says."""
_TWICE_RATIO = 1.8
"""Forward kernels per backward kernel from which on the forward pass is run twice."""
_FORWARD_BACKWARD = (("FlashAttentionScore", "FlashAttentionScoreGrad"), ("RmsNorm", "RmsNormGrad"))


_LESS = (
    Switch(
        "MindSpeed / Megatron",
        "",
        "--recompute-granularity selective, or remove --recompute-granularity / --recompute-num-layers",
        "MindSpeed docs/zh/features/recomputation.md",
        "saves about one forward pass of the layers that are no longer recomputed",
    ),
)


_SHARD = Action(
    id="optimizer.shard",
    title="Shard the optimizer over the replicas",
    how_to_apply=(
        Switch(
            "MindSpeed / Megatron",
            "",
            "--use-distributed-optimizer",
            "MindSpeed docs/zh/features/async-ddp.md",
            "each replica updates its part; parameters are gathered afterwards",
        ),
    ),
    estimate=None,
    risk="none to results; one gather of parameters more per step",
    undo="remove the flag",
    verify="device time of the optimizer and of the parameter gather, after 2 warm steps",
)


def optimizer_time(examination: Examination) -> Sequence[Finding]:
    """Returns the device time of the optimizer where it is a twentieth of the step."""
    totals = {
        entry.rank: sum(item.total_ns for item in entry.modules if item.phase == _OPTIMIZER)
        / examination.windows[entry.rank].step_count
        for entry in examination.with_kernels()
    }
    rank = max(totals, key=lambda each: totals[each])
    if examination.share(totals[rank]) < HIGH_RATIO:
        return ()
    sharded = examination.scenario is not None and examination.scenario.parallel.distributed_optimizer
    several = _has_replicas(examination, rank)
    return [
        loss(
            examination,
            "training.optimizer_time",
            Category.COMPUTE,
            f"The optimizer of rank {rank} takes {format_duration_ns(totals[rank])} of device time per step "
            f"({format_ratio(examination.share(totals[rank]))})",
            "an update passes over every weight with its gradient and its state, however little the batch computes",
            totals[rank],
            (
                Evidence(
                    "device time of the optimizer",
                    totals[rank],
                    Unit.NS,
                    HIGH_RATIO * examination.step_ns,
                    rank,
                    how="computing of the optimizer phase, per step",
                ),
            ),
            (Toggle("fusion.optimizer"), *(() if sharded or not several else (_SHARD,))),
        )
    ]


def _has_replicas(examination: Examination, rank: int) -> bool:
    """Returns whether several ranks hold the same weights, as far as the job says."""
    if examination.scenario is not None:
        return examination.scenario.parallel.data > 1
    metadata = examination.trace(rank).metadata
    size = metadata.parallel_sizes.get("data_parallel_size")
    if size is not None:
        return size > 1
    groups = [group for group in metadata.parallel_groups if group.name]
    if groups:
        return any(group.name.lower().startswith("dp") and len(group.ranks) > 1 for group in groups)
    return (metadata.world_size or len(examination.job.ranks)) > 1


def recompute(examination: Examination) -> Sequence[Finding]:
    """Returns recomputation where much of the memory it spares is never needed."""
    if examination.scenario is not None:
        return _simulated_recompute(examination)
    found = _recomputing_ranks(examination)
    if not found:
        return ()
    rooms = {}
    for rank in found:
        capacity = examination.trace(rank).metadata.device_memory_bytes
        memory = examination.summary.rank(rank).memory
        if capacity and memory is not None and memory.headroom_bytes is not None:
            rooms[rank] = (memory.headroom_bytes, capacity)
    if not rooms:
        raise MissingDataError("memory size of the device", "without it nobody can say whether recomputation is needed")
    rank = min(rooms, key=lambda each: rooms[each][0] / rooms[each][1])
    room, capacity = rooms[rank]
    remedy = Action(
        id="memory.less_recompute",
        title="Recompute less: there is room for activations",
        how_to_apply=_LESS,
        estimate=None,
        risk="memory: watch the peak of the first steps",
        undo="the former flags",
        verify="step time and peak reserved, after 5 warm steps",
    )
    return _needless(rank, room, capacity, found[rank], remedy) if room > _ROOM_RATIO * capacity else ()


def _simulated_recompute(examination: Examination) -> Sequence[Finding]:
    scenario = examination.scenario
    if scenario is None or scenario.memory.recompute is Recompute.NONE or not examination.histories:
        return ()
    rooms = {
        rank: (history.limit_bytes - int(history.peak_reserved_bytes.max(initial=0)), history.limit_bytes)
        for rank, history in examination.histories.items()
    }
    rank = min(rooms, key=lambda each: rooms[each][0] / rooms[each][1])
    room, limit = rooms[rank]
    what = f"the scenario recomputes ({scenario.memory.recompute.value})"
    remedy = Toggle(
        "parallel.layout",
        tuple({"recompute": item.value} for item in Recompute if item is not scenario.memory.recompute),
        "memory.less_recompute",
        "Recompute less: there is room for activations",
        None,
        _LESS,
    )
    return _needless(rank, room, limit, what, remedy) if room > _ROOM_RATIO * limit else ()


def _recomputing_ranks(examination: Examination) -> dict[int, str]:
    """Returns the ranks that run forward kernels twice, with the numbers that show it."""
    found = {}
    for entry in examination.with_kernels():
        counts: dict[str, int] = {}
        for item in entry.operators:
            counts[item.type] = counts.get(item.type, 0) + item.count
        for forward, backward in _FORWARD_BACKWARD:
            if counts.get(backward) and counts.get(forward, 0) >= _TWICE_RATIO * counts[backward]:
                found[entry.rank] = f"{counts[forward]} {forward} stand against {counts[backward]} {backward}"
                break
    return found


def _needless(rank: int, room: int, limit: int, why: str, remedy: Toggle | Action) -> Sequence[Finding]:
    return [
        danger(
            "training.recompute",
            Category.MEMORY,
            f"Recomputation buys memory nobody needs: {format_bytes(room)} of {format_bytes(limit)} stay free "
            f"on rank {rank}",
            why,
            (Evidence("free at the peak", float(room), Unit.BYTES, _ROOM_RATIO * limit, rank, how="fullest rank"),),
            (remedy,),
            severity=Severity.MEDIUM,
        )
    ]


RULES = (
    Rule("training.optimizer_time", "Time of the optimizer", optimizer_time),
    Rule("training.recompute", "Recomputation that buys nothing", recompute),
)
