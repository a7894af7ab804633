"""Switches of the environment that cost time, and parallel configurations that stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Evidence, Finding, Severity, Unit
from engine.advisor.rules.rule import Rule, danger
from engine.core.errors import MissingDataError
from engine.optimizations.interface import Switch
from engine.workloads.results import RunStatus

_VARIABLES = "Ascend/pytorch docs/zh/api/environment_variable"
_ADVISOR = "msprof_analyze/advisor/rules/en/environment_variable_info.yaml"


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable that costs time where it is set in a certain way.

    Attributes:
        name: Of the variable.
        is_bad: Whether a value is.
        problem: What it does.
        set_to: What to set instead.
        documented_in: Where.
        risk: Of changing it.
        severity: How much it matters.
    """

    name: str
    is_bad: Callable[[str], bool]
    problem: str
    set_to: str
    documented_in: str
    risk: str
    severity: Severity


def _below(limit: int) -> Callable[[str], bool]:
    return lambda value: value.strip().isdecimal() and int(value) < limit


VARIABLES = (
    _Variable(
        "ASCEND_LAUNCH_BLOCKING",
        lambda value: value.strip() == "1",
        "every operator is launched synchronously and the task queue is off",
        "export ASCEND_LAUNCH_BLOCKING=0",
        f"{_VARIABLES}/op_execution",
        "errors are reported later than the call that caused them",
        Severity.HIGH,
    ),
    _Variable(
        "TASK_QUEUE_ENABLE",
        lambda value: value.strip() == "0",
        "operators are not dispatched through the task queue",
        "export TASK_QUEUE_ENABLE=1 (2 for the deeper queue, at a higher memory peak)",
        f"{_VARIABLES}/performance_tuning",
        "errors are reported later than the call that caused them",
        Severity.HIGH,
    ),
    _Variable(
        "PYTORCH_NO_NPU_MEMORY_CACHING",
        lambda value: value.strip() not in ("", "0"),
        "every allocation goes to the driver",
        "unset PYTORCH_NO_NPU_MEMORY_CACHING",
        f"{_VARIABLES}/memory_management",
        "none",
        Severity.HIGH,
    ),
    _Variable(
        "ASCEND_GLOBAL_LOG_LEVEL",
        lambda value: value.strip() in ("0", "1", "2"),
        "more than errors is logged",
        "export ASCEND_GLOBAL_LOG_LEVEL=3",
        _ADVISOR,
        "less is logged",
        Severity.LOW,
    ),
    _Variable(
        "HCCL_ALGO",
        lambda value: bool(value.strip()),
        "a forced algorithm switches the adaptive choice off",
        "unset HCCL_ALGO",
        _ADVISOR,
        "none",
        Severity.LOW,
    ),
    _Variable(
        "ACLNN_CACHE_LIMIT",
        _below(10_000),
        "the cache of compiled operator calls is small",
        "export ACLNN_CACHE_LIMIT=100000",
        _ADVISOR,
        "host memory grows",
        Severity.LOW,
    ),
    _Variable(
        "HOST_CACHE_CAPACITY",
        lambda value: value.strip() == "0",
        "the host's cache for dynamic shapes is off",
        "export HOST_CACHE_CAPACITY=20",
        _ADVISOR,
        "host memory grows",
        Severity.LOW,
    ),
    _Variable(
        "HCCL_DETERMINISTIC",
        lambda value: value.strip().lower() in ("true", "1", "strict"),
        "collectives reduce in a fixed order, which is slower",
        "export HCCL_DETERMINISTIC=false",
        "HCCL environment variables",
        "results may differ in the last bits from run to run",
        Severity.LOW,
    ),
)


def environment(examination: Examination) -> Sequence[Finding]:
    """Returns the variables that are set to something slow."""
    if not examination.is_recorded:
        return ()
    if not any(entry.trace.metadata.environment for entry in examination.job.ranks):
        raise MissingDataError("environment variables", "captures of torch_npu 2.1 and later hold them")
    found = []
    for variable in VARIABLES:
        value = examination.environment.get(variable.name, "")
        if value and variable.is_bad(value):
            found.append(_finding(examination, variable, value))
    return found


def _finding(examination: Examination, variable: _Variable, value: str) -> Finding:
    ranks = sum(entry.trace.metadata.environment.get(variable.name) == value for entry in examination.job.ranks)
    action = Action(
        id=f"environment.{variable.name}",
        title=f"Set {variable.name} differently",
        how_to_apply=(Switch("CANN / torch_npu", "", variable.set_to, variable.documented_in),),
        estimate=None,
        risk=variable.risk,
        undo=f"export {variable.name}={value}",
        verify="step time, after 5 warm steps",
    )
    return danger(
        "config.environment",
        Category.CONFIGURATION,
        f"{variable.name}={value}: {variable.problem}",
        "set in the environment the capture was recorded in",
        (Evidence(f"ranks with {variable.name}={value}", ranks, Unit.COUNT, how="profiler_metadata of the capture"),),
        (action,),
        severity=variable.severity,
    )


def deadlock(examination: Examination) -> Sequence[Finding]:
    """Returns the deadlock a simulated run ended in; a recorded run went on, so it had none."""
    side = examination.side
    if side is None or side.status is not RunStatus.DEADLOCK:
        return ()
    found = None if side.run is None else side.run.deadlock
    steps = len(side.step_ns)
    message = "ranks wait for each other" if found is None else found.message
    waits = () if found is None else found.cycle
    action = Action(
        id="parallel.resolve_deadlock",
        title="Let all ranks enter these collectives in one order",
        how_to_apply=(
            Switch("scenario", "", "; ".join(waits[:4]) or "see cannscope simulate", "docs/runtime.md", message),
        ),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="cannscope simulate ends with status done",
    )
    return [
        danger(
            "parallel.deadlock",
            Category.CONFIGURATION,
            f"The run stops for ever in step {steps + 1}: {message}",
            "; ".join(waits[:4]) or message,
            (Evidence("steps before it", float(steps), Unit.COUNT),),
            (action,),
            stops_run=True,
        )
    ]


RULES = (
    Rule("config.environment", "Environment variables that cost time", environment, ascend_only=True),
    Rule("parallel.deadlock", "Deadlocks", deadlock),
)
