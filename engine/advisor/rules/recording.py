"""What recording hides or adds: idle time without a recorded cause, and the time the profiler itself takes."""

from collections.abc import Sequence

from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Finding
from engine.advisor.rules.idle import idle_finding
from engine.advisor.rules.rule import Rule
from engine.analyses.idle import IdleCause
from engine.optimizations.interface import Switch


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
    return idle_finding(
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
    return idle_finding(
        examination,
        IdleCause.UNKNOWN,
        "host.unexplained",
        Category.HOST,
        "is idle for no recorded reason",
        "the next task was launched in time, or its launch was not recorded; nothing in the capture fills the gaps",
        action,
    )


RULES = (
    Rule("host.unexplained", "Idle time without a recorded cause", unexplained),
    Rule("record.overhead", "Time the profiler itself takes", profiler_overhead),
)
