"""Two runs side by side: steps by position, operators by type."""

from dataclasses import dataclass
from statistics import median_high

from engine.analyses.device import device_totals
from engine.analyses.memory import memory_analysis
from engine.analyses.operators import operator_statistics
from engine.analyses.steps import Step, steps
from engine.trace.job import Job
from engine.trace.trace import TimeRange, Trace


@dataclass(frozen=True, slots=True)
class OperatorDelta:
    """One operator type in both runs; a side that lacks it counts 0."""

    name: str
    baseline_ns: int
    candidate_ns: int
    baseline_count: int
    candidate_count: int

    @property
    def delta_ns(self) -> int:
        """Candidate − baseline."""
        return self.candidate_ns - self.baseline_ns


@dataclass(frozen=True, slots=True)
class StepDelta:
    """One step of both runs, paired by position; the numbers the profilers gave them may differ."""

    position: int
    baseline_step: int | None
    candidate_step: int | None
    baseline_ns: int
    candidate_ns: int

    @property
    def delta_ns(self) -> int:
        """Candidate − baseline."""
        return self.candidate_ns - self.baseline_ns


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from the baseline to the candidate, on the slowest rank both have.

    Attributes:
        baseline_step_ns: Median step, or the device span where there are no steps; None without device work.
        candidate_step_ns: Same.
        speedup_ratio: baseline ÷ candidate step.
        step_time_delta_ns: candidate − baseline.
        peak_reserved_delta_bytes: None where a side has no memory curve.
        operators: The largest change first; of the steps both have where one side has more.
        rank: Rank of the baseline that was compared; None where no rank of both has device work.
        candidate_rank: Its counterpart.
        steps: Steps of both, by position; what one side has more is left out.
    """

    baseline_step_ns: int | None
    candidate_step_ns: int | None
    speedup_ratio: float | None
    step_time_delta_ns: int | None
    peak_reserved_delta_bytes: int | None
    operators: tuple[OperatorDelta, ...]
    rank: int | None = None
    candidate_rank: int | None = None
    steps: tuple[StepDelta, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One rank of one run with its measured step."""

    rank: int
    trace: Trace
    steps: tuple[Step, ...]
    step_ns: int | None
    from_steps: bool


def compare(baseline: Job, candidate: Job) -> Comparison:
    """Returns the comparison of two jobs.

    The slowest rank of the baseline that the candidate has too is compared, because the slowest rank sets the pace.
    Jobs of one capture each are compared whatever their ranks are called. Where only one side has numbered steps, both
    are measured by their device span, so that like is compared with like.
    """
    pair = _slowest_pair(_sides(baseline), _sides(candidate))
    if pair is None:
        return Comparison(None, None, None, None, None, ())
    left, right = pair
    before_ns, after_ns = left.step_ns, right.step_ns
    if left.from_steps != right.from_steps:
        before_ns, after_ns = _span_ns(left.trace), _span_ns(right.trace)
    known = before_ns is not None and after_ns is not None
    return Comparison(
        baseline_step_ns=before_ns,
        candidate_step_ns=after_ns,
        speedup_ratio=before_ns / after_ns if before_ns is not None and after_ns else None,
        step_time_delta_ns=after_ns - before_ns if before_ns is not None and after_ns is not None else None,
        peak_reserved_delta_bytes=_reserved_delta(left, right),
        operators=_operator_deltas(left, right),
        rank=left.rank if known else None,
        candidate_rank=right.rank if known else None,
        steps=_step_deltas(left, right),
    )


def _sides(job: Job) -> list[_Side]:
    sides = []
    for entry in job.ranks:
        found = steps(entry.trace)
        lengths = [step.range.duration_ns for step in found if step.step is not None and step.range.duration_ns > 0]
        # The upper middle of an even number is a step that happened; the mean of two would not be.
        step_ns = median_high(lengths) if lengths else _span_ns(entry.trace)
        sides.append(_Side(entry.rank, entry.trace, found, step_ns, bool(lengths)))
    return sides


def _span_ns(trace: Trace) -> int | None:
    totals = device_totals(trace)
    return None if totals is None else totals.span_ns


def _slowest_pair(baseline: list[_Side], candidate: list[_Side]) -> tuple[_Side, _Side] | None:
    if len(baseline) == 1 and len(candidate) == 1:
        return baseline[0], candidate[0]
    by_rank = {side.rank: side for side in candidate}
    pairs = [(side, by_rank[side.rank]) for side in baseline if side.rank in by_rank]
    measured = [pair for pair in pairs if pair[0].step_ns is not None and pair[1].step_ns is not None]
    # Ranks without kernels (only communication was recorded) cannot be compared operator by operator.
    with_operators = [pair for pair in measured if all(operator_statistics(side.trace) for side in pair)]
    chosen = with_operators or measured or pairs
    return max(chosen, key=lambda pair: pair[0].step_ns or 0, default=None)


def _reserved_delta(left: _Side, right: _Side) -> int | None:
    peaks = []
    for side in (left, right):
        memory = memory_analysis(side.trace, side.steps)
        peaks.append(None if memory is None else memory.peak_reserved_bytes)
    before, after = peaks
    return None if before is None or after is None else after - before


def _step_deltas(left: _Side, right: _Side) -> tuple[StepDelta, ...]:
    if not (left.from_steps and right.from_steps):
        return ()
    pairs = zip(left.steps, right.steps, strict=False)
    return tuple(
        StepDelta(index, before.step, after.step, before.range.duration_ns, after.range.duration_ns)
        for index, (before, after) in enumerate(pairs)
    )


def _common_windows(left: _Side, right: _Side) -> tuple[TimeRange | None, TimeRange | None]:
    """Returns what of each run operators are summed over: all, or the steps both have where one side has more."""
    common = min(len(left.steps), len(right.steps))
    if not (left.from_steps and right.from_steps) or len(left.steps) == len(right.steps):
        return None, None
    ranges = [(side.steps[0].range.start_ns, side.steps[common - 1].range.end_ns) for side in (left, right)]
    return TimeRange(*ranges[0]), TimeRange(*ranges[1])


def _operator_deltas(left: _Side, right: _Side) -> tuple[OperatorDelta, ...]:
    totals: dict[str, list[int]] = {}
    for side, (entry, window) in enumerate(zip((left, right), _common_windows(left, right), strict=True)):
        # A type may stand in several rows, one per kind of core.
        for item in operator_statistics(entry.trace, window):
            found = totals.setdefault(item.type, [0, 0, 0, 0])
            found[side] += item.total_ns
            found[2 + side] += item.count
    deltas = [OperatorDelta(name, *values) for name, values in totals.items()]
    return tuple(sorted(deltas, key=lambda item: (-abs(item.delta_ns), -item.baseline_ns, item.name)))
