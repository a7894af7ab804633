"""The device waits for the host: why, and what could be done."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, at_best, loss
from engine.analyses.idle import IdleCause, IdleGap
from engine.core.number_format import format_count, format_duration_ns, format_ratio
from engine.optimizations.interface import Switch
from engine.trace.trace import TimeRange

_LISTED_GAPS = 12
_NPU_OPTIONS = "Ascend/pytorch docs/zh/api/environment_variable"


@dataclass(frozen=True, slots=True)
class _Idle:
    """Gaps of some causes on the rank that has most of them, per step."""

    rank: int
    gaps: tuple[IdleGap, ...]
    cost_ns: float


def host_bound(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time in which the host had not launched the next task yet."""
    idle = _worst(examination, IdleCause.HOST_SLOW, IdleCause.DEQUEUE_SLOW)
    if idle is None:
        return ()
    per_step = len(idle.gaps) / examination.windows[idle.rank].step_count
    return [
        loss(
            examination,
            "host.bound",
            Category.HOST,
            f"Rank {idle.rank} is host-bound: its device is idle {format_duration_ns(idle.cost_ns)} of the step "
            f"({format_ratio(examination.share(idle.cost_ns))}) in {format_count(round(per_step))} gaps",
            "the host launches operators more slowly than the device runs them",
            idle.cost_ns,
            _evidence(idle, "idle while the host was late"),
            (Toggle("host.graph_mode"), Toggle("host.async_dispatch"), _binding(examination)),
        )
    ]


def _binding(examination: Examination) -> Action:
    switch = (
        Switch(
            "torch_npu",
            "",
            "CPU_AFFINITY_CONF=2",
            f"{_NPU_OPTIONS}/performance_tuning",
            "skipped with a warning if the process has a CPU affinity already; some workloads get slower",
        )
        if examination.is_ascend
        else Switch("any", "", "numactl --cpunodebind=N --membind=N (the device's node)", "numactl(8)")
    )
    return Action(
        id="host.cpu_binding",
        title="Bind processes to the CPUs next to their device",
        how_to_apply=(switch,),
        estimate=None,
        risk="none to results; a wrong NUMA mapping inside containers slows down",
        undo="unset CPU_AFFINITY_CONF" if examination.is_ascend else "start without numactl",
        verify="host-slow gaps in the idle table, after 5 warm steps",
    )


def synchronization(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time after calls in which the host waited for the device."""
    idle = _worst(examination, IdleCause.HOST_SYNCHRONIZATION)
    if idle is None:
        return ()
    names = _names(examination, idle)
    action = Action(
        id="host.no_synchronization",
        title="Take calls that wait for the device out of the step",
        how_to_apply=(
            Switch(
                "PyTorch",
                "",
                "log loss.item() every n-th step; no tensor.cpu(), .nonzero() or print of tensors inside the step; "
                "copy with non_blocking=True from pinned memory",
                "PyTorch performance tuning guide",
            ),
        ),
        estimate=None,
        risk="none to results; values are logged less often",
        undo="log every step again",
        verify="host-synchronization gaps in the idle table, after 5 warm steps",
    )
    return [
        loss(
            examination,
            "host.synchronization",
            Category.HOST,
            f"Rank {idle.rank} is idle {format_duration_ns(idle.cost_ns)} per step after its host waited for it",
            f"while it waits it launches nothing{f': {names}' if names else ''}",
            idle.cost_ns,
            _evidence(idle, "idle after synchronising calls"),
            (action,),
        )
    ]


def data_loading(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time in which the host waited for its data loader."""
    action = Action(
        id="io.data_loading",
        title="Load data ahead of the step",
        how_to_apply=(
            Switch(
                "PyTorch",
                "",
                "DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True, prefetch_factor=4)",
                "torch.utils.data.DataLoader",
            ),
        ),
        estimate=at_best(_cost_ns(examination, IdleCause.DATA_LOADING)),
        risk="more host memory and processes",
        undo="restore the former arguments",
        verify="data-loading gaps in the idle table, after 5 warm steps",
    )
    return _simple(
        examination,
        IdleCause.DATA_LOADING,
        "io.data_loading",
        Category.INPUT,
        "waits for data",
        "the data loader has no batch ready when the step begins",
        action,
    )


def garbage_collection(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time in which Python collected garbage."""
    action = Action(
        id="host.garbage_collection",
        title="Keep Python's garbage collector out of the step",
        how_to_apply=(
            Switch(
                "Python",
                "",
                "gc.collect(); gc.freeze() after setting up, then gc.disable() and gc.collect() every n-th step",
                "gc — Garbage Collector interface",
                "break reference cycles first: the heap grows between collections",
            ),
        ),
        estimate=at_best(_cost_ns(examination, IdleCause.GARBAGE_COLLECTION)),
        risk="host memory grows between collections",
        undo="gc.enable()",
        verify="garbage-collection gaps in the idle table, over 100 steps",
    )
    return _simple(
        examination,
        IdleCause.GARBAGE_COLLECTION,
        "host.garbage_collection",
        Category.HOST,
        "waits while Python collects garbage",
        "a collection holds every Python thread",
        action,
    )


def compilation(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time in which operators were compiled."""
    switch = (
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu.set_compile_mode(jit_compile=False)",
            f"{_NPU_OPTIONS}/op_compilation",
            "a private format may be missed: compare cube operators",
        )
        if examination.is_ascend
        else Switch("PyTorch", "", "run warm-up steps before recording; torch.compile(dynamic=True)", "torch.compile")
    )
    action = Action(
        id="host.compilation",
        title="Compile before the run, not in it",
        how_to_apply=(switch,),
        estimate=at_best(_cost_ns(examination, IdleCause.COMPILATION)),
        risk="precompiled kernels may be slower than ones compiled for the shape",
        undo="set_compile_mode(jit_compile=True)" if examination.is_ascend else "compile as before",
        verify="compilation gaps in the idle table, after 5 warm steps",
    )
    return _simple(
        examination,
        IdleCause.COMPILATION,
        "host.compilation",
        Category.HOST,
        "waits for operators to be compiled",
        "new shapes, or first calls inside the recorded steps",
        action,
    )


def profiler_overhead(examination: Examination) -> Sequence[Finding]:
    """Returns the time the device takes to start tasks that were queued in time: what recording counters adds."""
    action = Action(
        id="record.without_counters",
        title="Record once more without hardware counters before trusting times",
        how_to_apply=(
            Switch(
                "torch_npu" if examination.is_ascend else "PyTorch",
                "",
                "experimental_config=_ExperimentalConfig(l2_cache=False, aic_metrics=AiCoreNone)"
                if examination.is_ascend
                else "profile without experimental counters",
                "torch_npu profiler documentation" if examination.is_ascend else "torch.profiler",
            ),
        ),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="device-scheduling gaps in the idle table",
    )
    return _simple(
        examination,
        IdleCause.DEVICE_SCHEDULING,
        "record.overhead",
        Category.CONFIGURATION,
        "starts queued tasks late",
        "tasks were queued and their stream free: the device's own start, which collecting counters lengthens; an "
        "unprofiled run does not lose this",
        action,
    )


def unexplained(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time whose cause the capture does not show."""
    action = Action(
        id="record.more",
        title="Record what the host does while the device is idle",
        how_to_apply=(
            Switch(
                "torch_npu" if examination.is_ascend else "PyTorch",
                "",
                "profile(activities=[CPU, NPU], with_stack=True), level 1 or more"
                if examination.is_ascend
                else "profile(activities=[CPU, CUDA], with_stack=True)",
                "profiler documentation",
                "recording itself slows the host down",
            ),
        ),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="gaps of unknown cause in the idle table",
    )
    return _simple(
        examination,
        IdleCause.UNKNOWN,
        "host.unexplained",
        Category.HOST,
        "is idle for no recorded reason",
        "the next task was launched in time, or its launch was not recorded; nothing in the capture fills the gaps",
        action,
    )


def _simple(
    examination: Examination, cause: IdleCause, rule: str, category: Category, what: str, why: str, action: Action
) -> Sequence[Finding]:
    idle = _worst(examination, cause)
    if idle is None:
        return ()
    return [
        loss(
            examination,
            rule,
            category,
            f"Rank {idle.rank} {what}: {format_duration_ns(idle.cost_ns)} of the step "
            f"({format_ratio(examination.share(idle.cost_ns))})",
            why,
            idle.cost_ns,
            _evidence(idle, cause.value.replace("_", " ")),
            (action,),
        )
    ]


def _worst(examination: Examination, *causes: IdleCause) -> _Idle | None:
    """Returns the gaps on the rank that has most, None where they are not worth a sentence."""
    best = None
    for entry in examination.with_kernels():
        window = examination.windows[entry.rank].range
        gaps = tuple(
            gap for gap in entry.idle if gap.cause in causes and window.start_ns <= gap.start_ns < window.end_ns
        )
        start_ns = np.array([gap.start_ns for gap in gaps], dtype=np.int64)
        length_ns = np.array([gap.end_ns - gap.start_ns for gap in gaps], dtype=np.int64)
        cost_ns = examination.per_step(entry.rank, start_ns, length_ns)
        if best is None or cost_ns > best.cost_ns:
            best = _Idle(entry.rank, gaps, cost_ns)
    return best if best is not None and examination.share(best.cost_ns) >= WORTH_RATIO else None


def _cost_ns(examination: Examination, cause: IdleCause) -> float:
    idle = _worst(examination, cause)
    return 0.0 if idle is None else idle.cost_ns


def _evidence(idle: _Idle, what: str) -> tuple[Evidence, ...]:
    longest = sorted(idle.gaps, key=lambda gap: gap.start_ns - gap.end_ns)[:_LISTED_GAPS]
    first = longest[0]
    events = tuple(dict.fromkeys(gap.evidence for gap in longest if gap.evidence >= 0))
    return (
        Evidence(
            what,
            idle.cost_ns,
            Unit.NS,
            rank=idle.rank,
            range=TimeRange(first.start_ns, first.end_ns),
            events=events,
            how="device gaps of 20 µs and more with this cause, per step; the range is the longest one",
        ),
        Evidence("gaps", float(len(idle.gaps)), Unit.COUNT, rank=idle.rank, how="all recorded steps"),
        Evidence("longest gap", float(first.end_ns - first.start_ns), Unit.NS, rank=idle.rank),
    )


def _names(examination: Examination, idle: _Idle) -> str:
    """Returns the calls behind the longest gaps."""
    trace = examination.trace(idle.rank)
    longest = sorted(idle.gaps, key=lambda gap: gap.start_ns - gap.end_ns)[:_LISTED_GAPS]
    names = dict.fromkeys(trace.name(gap.evidence) for gap in longest if gap.evidence >= 0)
    return ", ".join(list(names)[:3])


RULES = (
    Rule("host.bound", "A host that launches too slowly", host_bound),
    Rule("host.synchronization", "Calls in which the host waits for the device", synchronization),
    Rule("io.data_loading", "Waiting for data", data_loading),
    Rule("host.garbage_collection", "Garbage collection in the step", garbage_collection),
    Rule("host.compilation", "Compilation in the step", compilation),
    Rule("host.unexplained", "Idle time without a recorded cause", unexplained),
    Rule("record.overhead", "Time the profiler itself takes", profiler_overhead),
)
