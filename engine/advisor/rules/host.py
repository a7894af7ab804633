"""The device waits for the host: why, and what could be done."""

from collections.abc import Sequence

from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Finding, Toggle
from engine.advisor.rules.idle import idle_evidence, idle_finding, longest_calls, worst_idle
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.idle import IdleCause
from engine.core.number_format import format_count, format_duration_ns, format_ratio
from engine.optimizations.interface import Switch

_NPU_OPTIONS = "Ascend/pytorch docs/zh/api/environment_variable"


def host_bound(examination: Examination) -> Sequence[Finding]:
    """Returns the idle time in which the host had not launched the next task yet."""
    idle = worst_idle(examination, IdleCause.HOST_SLOW, IdleCause.DEQUEUE_SLOW)
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
            idle_evidence(idle, "idle while the host was late"),
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
    idle = worst_idle(examination, IdleCause.HOST_SYNCHRONIZATION)
    if idle is None:
        return ()
    names = longest_calls(examination, idle)
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
            idle_evidence(idle, "idle after synchronising calls"),
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
        estimate=None,
        risk="more host memory and processes",
        undo="restore the former arguments",
        verify="data-loading gaps in the idle table, after 5 warm steps",
    )
    return idle_finding(
        examination,
        IdleCause.DATA_LOADING,
        "io.data_loading",
        Category.INPUT,
        "waits for data",
        "the data loader has no batch ready when the step begins",
        action,
        wins_all=True,
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
        estimate=None,
        risk="host memory grows between collections",
        undo="gc.enable()",
        verify="garbage-collection gaps in the idle table, over 100 steps",
    )
    return idle_finding(
        examination,
        IdleCause.GARBAGE_COLLECTION,
        "host.garbage_collection",
        Category.HOST,
        "waits while Python collects garbage",
        "a collection holds every Python thread",
        action,
        wins_all=True,
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
        estimate=None,
        risk="precompiled kernels may be slower than ones compiled for the shape",
        undo="set_compile_mode(jit_compile=True)" if examination.is_ascend else "compile as before",
        verify="compilation gaps in the idle table, after 5 warm steps",
    )
    return idle_finding(
        examination,
        IdleCause.COMPILATION,
        "host.compilation",
        Category.HOST,
        "waits for operators to be compiled",
        "new shapes, or first calls inside the recorded steps",
        action,
        wins_all=True,
    )


RULES = (
    Rule("host.bound", "A host that launches too slowly", host_bound),
    Rule("host.synchronization", "Calls in which the host waits for the device", synchronization),
    Rule("io.data_loading", "Waiting for data", data_loading),
    Rule("host.garbage_collection", "Garbage collection in the step", garbage_collection),
    Rule("host.compilation", "Compilation in the step", compilation),
)
