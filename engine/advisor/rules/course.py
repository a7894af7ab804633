"""How a long run goes: slowing down and why, and out-of-memory errors to come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.advisor.bottlenecks import Loss
from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Evidence, Finding, Severity, Toggle, Unit
from engine.advisor.layout_variants import layout_variants
from engine.advisor.rules.memory import SAVERS, cures
from engine.advisor.rules.rule import Rule, danger, loss
from engine.analyses.memory_trend import MemoryVerdict
from engine.analyses.slowdown import RunCourse, Slowdown, pettitt_chance, run_course, stall_share_of_variance
from engine.analyses.step_history import StepHistory
from engine.analyses.steps import Step
from engine.analyses.typical_step import measured_steps, step_length_ns
from engine.core.arrays import Float64Array, Int64Array
from engine.core.errors import MissingDataError
from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from engine.optimizations.interface import Switch
from engine.whatif.results import Side
from engine.workloads.results import RunStatus

_FEWEST_STEPS = 8
"""Below this a capture's steps say nothing about a drift."""
_SIGNIFICANCE = 1e-3
"""Largest probability of a drift by chance, as for simulated runs (``analyses.slowdown``); a choice."""
_DRIFT_RATIO = 0.03
"""A drift that is certain but smaller is not worth a sentence, as there; a choice."""
_ALLOCATOR_RATIO = 0.1
"""Share of the growth of steps from which on the allocator's stalls are why, as there; a choice."""
_GROWING_RATIO = 0.02
"""Growth of the envelope over the second half of a run, as a share of the limit, that counts; a choice."""
_PARTS = 4
"""A capture's first and last quarter are compared."""
_GROWN = {
    "computing": (Category.COMPUTE, "the device computes longer: longer input, or a lower frequency"),
    "waiting": (Category.COMMUNICATION, "the rank waits longer for others"),
    "transfer": (Category.COMMUNICATION, "transfers take longer: a slower link or more bytes"),
    "idle": (
        Category.HOST,
        "the host keeps the device waiting longer: garbage collection, data loading, or the allocator",
    ),
}
"""Component of a step → what a growth of it is about, and what it means."""


def fragmentation_slowdown(examination: Examination) -> Sequence[Finding]:
    """Returns the slowdown of a run that the allocator causes, with its onset and what it does per step by then."""
    rank, course = _slowest_course(examination)
    slowdown = course.slowdown
    if slowdown is None or not _by_allocator(course):
        return ()
    history = examination.histories[rank]
    explained = stall_share_of_variance(history, 0, len(history))
    leaking = course.trend.verdict is MemoryVerdict.LEAK
    evidence = [
        Evidence(
            "step before", float(slowdown.before_ns), Unit.NS, rank=rank, how="mean before the onset, equal tokens"
        ),
        Evidence("step at the end", float(slowdown.after_ns), Unit.NS, rank=rank, how="mean of the last eighth"),
        Evidence("onset", float(slowdown.onset), Unit.STEP, rank=rank, how="where a flat line has to rise to fit best"),
        Evidence("retries per step at the end", slowdown.retries_per_step, Unit.COUNT, rank=rank),
        Evidence("driver calls per step at the end", slowdown.driver_calls_per_step, Unit.COUNT, rank=rank),
        Evidence("caught out-of-memory errors per step at the end", slowdown.caught_per_step, Unit.COUNT, rank=rank),
    ]
    if explained is not None:
        evidence.append(
            Evidence("of the step's variance goes with allocator stalls", explained, Unit.RATIO, rank=rank, how="R²")
        )
    remedies = [Toggle(name) for name in SAVERS] if leaking else cures(examination)
    return [
        loss(
            examination,
            "memory.fragmentation_slowdown",
            Category.MEMORY,
            f"The run slows down from step {slowdown.onset:,} on: {format_duration_ns(slowdown.before_ns)} → "
            f"{format_duration_ns(slowdown.after_ns)} per step (+{format_ratio(slowdown.loss_ratio)})",
            course.trend.sentence,
            float(slowdown.after_ns - slowdown.before_ns),
            evidence,
            remedies,
        )
    ]


def step_drift(examination: Examination) -> Sequence[Finding]:
    """Returns a drift of the step time the allocator does not cause, split into what grew."""
    if examination.histories:
        rank, course = _slowest_course(examination)
        if course.slowdown is None or _by_allocator(course):
            return ()
        return [_unexplained(examination, rank, course.slowdown)]
    drifts = [
        finding
        for entry in examination.summary.ranks
        if (finding := _captured_drift(examination, entry.rank, measured_steps(entry.steps))) is not None
    ]
    if not any(window.step_count >= _FEWEST_STEPS for window in examination.windows.values()):
        raise MissingDataError(f"series of at least {_FEWEST_STEPS} steps", "record more steps, or keep a step history")
    return sorted(drifts, key=lambda item: -(item.cost_ns or 0.0))[:1]


def out_of_memory(examination: Examination) -> Sequence[Finding]:
    """Returns the error that ended a simulated run, or the one that its growth will lead to, with the time left."""
    if examination.side is not None and examination.side.status is RunStatus.OUT_OF_MEMORY:
        return [_ended(examination, examination.side)]
    limited = _limited(examination)
    if not limited:
        raise MissingDataError("memory log of several steps with the device's memory size")
    tried = (_forecast(examination, rank, levels) for rank, levels in limited.items())
    forecasts = [item for item in tried if item is not None]
    forecasts.sort(key=lambda item: item.evidence[0].value)
    return forecasts[:1]


def _savers_and_cures(examination: Examination) -> list[Toggle]:
    """Returns what is tried where memory runs out; for a simulated job other layouts too."""
    tried = {item.optimization: item for item in cures(examination)}
    found = [*(Toggle(name) for name in SAVERS), *(item for name, item in tried.items() if name not in SAVERS)]
    layouts = layout_variants(examination.scenario, Loss.MEMORY) if examination.scenario is not None else ()
    if layouts:
        found.append(Toggle("parallel.layout", layouts, "memory.layout", "Lay the job out in smaller parts"))
    return found


def _slowest_course(examination: Examination) -> tuple[int, RunCourse]:
    if not examination.histories:
        raise MissingDataError("step history", "captures of a few steps cannot show how a run goes")
    courses = {rank: run_course(history) for rank, history in examination.histories.items()}
    rank = max(courses, key=lambda each: _end_ns(courses[each]))
    return rank, courses[rank]


def _end_ns(course: RunCourse) -> int:
    return 0 if course.slowdown is None else course.slowdown.after_ns


def _by_allocator(course: RunCourse) -> bool:
    slowdown = course.slowdown
    if slowdown is None:
        return False
    return slowdown.retries_per_step + slowdown.caught_per_step > 0 or slowdown.stall_share_ratio > _ALLOCATOR_RATIO


def _unexplained(examination: Examination, rank: int, slowdown: Slowdown) -> Finding:
    return loss(
        examination,
        "course.step_drift",
        Category.HOST,
        f"The run slows down from step {slowdown.onset:,} on (+{format_ratio(slowdown.loss_ratio)}), at equal tokens",
        "not the allocator: it neither retries nor stalls more than before",
        float(slowdown.after_ns - slowdown.before_ns),
        (
            Evidence("step before", float(slowdown.before_ns), Unit.NS, rank=rank, how="mean before the onset"),
            Evidence("step at the end", float(slowdown.after_ns), Unit.NS, rank=rank, how="mean of the last eighth"),
            Evidence(
                "chance of such a drift without one", slowdown.chance, Unit.RATIO, _SIGNIFICANCE, rank, how="Pettitt"
            ),
        ),
        (_compare_early_and_late(),),
    )


def _captured_drift(examination: Examination, rank: int, steps: Sequence[Step]) -> Finding | None:
    """Returns the drift of a capture's steps with the part of each component, None where there is none."""
    if len(steps) < _FEWEST_STEPS:
        return None
    ordered = sorted(steps, key=lambda step: step.range.start_ns)
    times = np.array([step_length_ns(step) for step in ordered])
    part = max(len(times) // _PARTS, 1)
    before, after = float(times[:part].mean()), float(times[-part:].mean())
    if pettitt_chance(times) > _SIGNIFICANCE or after < before * (1 + _DRIFT_RATIO):
        return None
    grown = {name: _growth(values, part) for name, values in _components(ordered).items()}
    main = max(grown, key=lambda name: grown[name])
    category, cause = _GROWN[main]
    evidence = [
        Evidence(f"growth of {name}", ns, Unit.NS, rank=rank, how="mean of the last quarter − the first, per step")
        for name, ns in sorted(grown.items(), key=lambda item: -item[1])
    ]
    return loss(
        examination,
        "course.step_drift",
        category,
        f"Steps of rank {rank} grow from {format_duration_ns(before)} to {format_duration_ns(after)} "
        f"over {len(times)} steps",
        cause,
        after - before,
        evidence,
        (_compare_early_and_late(),),
    )


def _components(steps: Sequence[Step]) -> Mapping[str, Float64Array]:
    def column(values: Sequence[float | None]) -> Float64Array:
        return np.array([0.0 if value is None else value for value in values])

    exposed = column([step.communication_not_overlapped_ns for step in steps])
    waiting = np.minimum(column([step.wait_ns for step in steps]), exposed)
    return {
        "computing": column([step.computing_ns for step in steps]),
        "waiting": waiting,
        "transfer": exposed - waiting,
        "idle": column([step.free_ns for step in steps]),
    }


def _growth(values: Float64Array, part: int) -> float:
    return float(values[-part:].mean() - values[:part].mean())


def _compare_early_and_late() -> Action:
    return Action(
        id="compare_early_late",
        title="Record an early and a late step and compare them",
        how_to_apply=(Switch("cannscope", "", "cannscope compare EARLY LATE", "docs/advice.md"),),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="the operators and parts of the step that grew",
    )


def _ended(examination: Examination, side: Side) -> Finding:
    steps = len(side.step_ns)
    failed = 0 if side.run is None else max((item.failed_bytes for item in side.run.memory), default=0)
    limit = 0 if side.run is None else max((item.limit_bytes for item in side.run.memory), default=0)
    worst = side.worst_reserved_bytes or 0
    return danger(
        "memory.out_of_memory",
        Category.MEMORY,
        f"The run is out of memory in step {steps + 1}: no room for {format_bytes(failed)}",
        f"{format_bytes(worst)} of {format_bytes(limit)} are reserved by then",
        (
            Evidence("steps before the error", float(steps), Unit.COUNT),
            Evidence("asked for", float(failed), Unit.BYTES),
            Evidence("reserved", float(worst), Unit.BYTES, float(limit)),
        ),
        _savers_and_cures(examination),
        stops_run=True,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """What a rank holds at the peak of each step, int64, shape (steps,), and what it may."""

    held_bytes: Int64Array
    limit_bytes: int
    step_ns: float
    what: str


def _limited(examination: Examination) -> dict[int, _Levels]:
    found = {rank: _of_history(history) for rank, history in examination.histories.items()}
    for entry in examination.summary.ranks:
        capacity = examination.trace(entry.rank).metadata.device_memory_bytes
        memory = entry.memory
        if entry.rank in found or memory is None or not capacity or len(memory.steps) < _FEWEST_STEPS:
            continue
        held = [capacity - item.headroom_bytes for item in memory.steps if item.headroom_bytes is not None]
        if len(held) >= _FEWEST_STEPS:
            found[entry.rank] = _Levels(np.array(held, dtype=np.int64), capacity, examination.step_ns, "reserved")
    return found


def _of_history(history: StepHistory) -> _Levels:
    """Returns allocated peaks where the job catches errors and goes on (reserved stays at the limit), else reserved."""
    caught = bool(history.retries.any() or history.caught.any())
    held = history.peak_allocated_bytes if caught else history.peak_reserved_bytes
    step_ns = float(np.median(history.step_ns)) if len(history) else 0.0
    return _Levels(held, history.limit_bytes, step_ns, "allocated" if caught else "reserved")


def _forecast(examination: Examination, rank: int, levels: _Levels) -> Finding | None:
    """Returns when the envelope of a rank's peaks reaches its limit, None where it does not grow.

    The envelope is the highest peak so far: a slope through the peaks themselves would see the batch sizes. Its growth
    over the second half of the run is carried on.
    """
    envelope = np.maximum.accumulate(levels.held_bytes)
    half = len(envelope) // 2
    if half < _FEWEST_STEPS // 2:
        return None
    grown = int(envelope[-1] - envelope[half])
    left = levels.limit_bytes - int(envelope[-1])
    if grown < _GROWING_RATIO * levels.limit_bytes:
        return None
    per_step = grown / (len(envelope) - 1 - half)
    steps_left = max(left, 0) / per_step
    return danger(
        "memory.out_of_memory",
        Category.MEMORY,
        f"Rank {rank} will be out of memory in about {steps_left:,.0f} steps ({_hours(steps_left * levels.step_ns)})",
        f"the highest {levels.what} memory so far grows by {format_bytes(per_step)} per step and "
        f"{format_bytes(max(left, 0))} are left of {format_bytes(levels.limit_bytes)}",
        (
            Evidence("steps to the limit", steps_left, Unit.COUNT, rank=rank, how="room left ÷ growth of the envelope"),
            Evidence("growth of the envelope", per_step, Unit.BYTES_PER_STEP, rank=rank, how="second half of the run"),
            Evidence("room left", float(left), Unit.BYTES, rank=rank),
        ),
        _savers_and_cures(examination),
        severity=Severity.HIGH,
    )


def _hours(duration_ns: float) -> str:
    hours = duration_ns / 3.6e12
    return f"{hours:,.1f} h" if hours >= 1 else f"{hours * 60:,.1f} min"


RULES = (
    Rule("memory.fragmentation_slowdown", "A run that fragmentation slows down", fragmentation_slowdown),
    Rule("memory.out_of_memory", "Out-of-memory errors, met or to come", out_of_memory),
    Rule("course.step_drift", "Step time that drifts", step_drift),
)
