"""Whether a long run slows down, from which step on, and whether the allocator is why."""

import math
from dataclasses import dataclass

import numpy as np

from engine.analyses.memory_trend import MemoryTrend, MemoryVerdict, memory_trend
from engine.analyses.step_history import StepHistory
from engine.core.arrays import Float64Array, Int64Array
from engine.core.number_format import format_duration_ns, format_ratio

_FEWEST_STEPS = 32
"""Below this a drift cannot be told from chance."""
_SIGNIFICANCE = 1e-3
"""Largest probability of a drift by chance; a choice."""
_SMALLEST_LOSS_RATIO = 0.03
"""A drift that is certain but smaller than this is not worth a sentence; a choice."""
_ONSETS = 250
"""Steps tried as the onset."""
_FINEST = 2_000
"""Longer runs are looked at in as many parts: the onset needs no finer answer."""
_RISES = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Lengths of the rise that are tried, as shares of the run."""
_USUAL_RATIO = 0.99
_ALLOCATOR_SHARE = 0.1
"""Share of the growth of steps from which on the allocator is named as a reason; a choice."""
_LAST_PART = 8
"""An eighth of the run stands for its end."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """A run that became slower.

    Attributes:
        onset: First step (counted from 0, as profilers count) of the slower part: from where a flat line has to rise
            to fit the times best, the first unusually slow step; where the allocator is why, the first step that it
            stalled unusually, since steps alone are also slow by chance.
        before_ns: Mean step before the onset, the first one left out, at the run's usual number of tokens.
        after_ns: Mean step of the last eighth, likewise: slow steps come in bursts, which a median would not see.
        chance: Probability of such a drift without one.
        retries_per_step: Mean of the last eighth.
        driver_calls_per_step: Likewise.
        caught_per_step: Likewise.
        stall_share_ratio: Growth of the allocator's own stalls ÷ growth of the step. The rest is work done twice after
            caught errors, or something else.
    """

    onset: int
    before_ns: int
    after_ns: int
    chance: float
    retries_per_step: float
    driver_calls_per_step: float
    caught_per_step: float
    stall_share_ratio: float

    @property
    def loss_ratio(self) -> float:
        """How much longer a step takes at the end."""
        return self.after_ns / self.before_ns - 1


@dataclass(frozen=True, slots=True)
class RunCourse:
    """How a run went.

    Attributes:
        slowdown: None where step time is steady, or the run too short to say.
        trend: What memory does.
        sentence: For people.
    """

    slowdown: Slowdown | None
    trend: MemoryTrend
    sentence: str


def run_course(history: StepHistory) -> RunCourse:
    """Returns whether the run slows down and why.

    Step times are first brought to the same number of tokens by least squares. Pettitt's test (1979) says whether a
    drift is more than chance; the onset is where a flat line has to rise to fit the times best.
    """
    trend = memory_trend(history)
    if len(history) < _FEWEST_STEPS:
        return RunCourse(None, trend, f"{len(history)} steps are too few to say how step time develops.")
    times = _without_tokens(history)
    chance = pettitt_chance(times)
    part = max(len(times) // _LAST_PART, 1)
    onset = _onset(times, history.stall_ns.astype(np.float64), part)
    # The first step warms the allocator up.
    before, after = float(times[1 : onset + 1].mean()), float(times[-part:].mean())
    if chance > _SIGNIFICANCE or after < before * (1 + _SMALLEST_LOSS_RATIO):
        middle = format_duration_ns(float(np.median(history.step_ns)))
        return RunCourse(None, trend, f"Step time is steady at {middle}: {trend.sentence}.")
    last = slice(len(times) - part, None)
    grown = float(history.stall_ns[last].mean()) - float(history.stall_ns[: max(onset, 1)].mean())
    slowdown = Slowdown(
        onset=onset,
        before_ns=round(before),
        after_ns=round(after),
        chance=chance,
        retries_per_step=float(history.retries[last].mean()),
        driver_calls_per_step=float(history.driver_calls[last].mean()),
        caught_per_step=float(history.caught[last].mean()),
        stall_share_ratio=grown / (after - before),
    )
    return RunCourse(slowdown, trend, _sentence(history, slowdown, trend))


def stall_share_of_variance(history: StepHistory, first: int, stop: int) -> float | None:
    """Returns R² of step time against the allocator's stalls over steps ``first``…``stop`` (exclusive).

    Step times are first brought to the same number of tokens, by the whole run. None for fewer than three steps, and
    where either does not vary: then the allocator explains nothing of it.
    """
    times, stalls = _without_tokens(history)[first:stop], history.stall_ns[first:stop].astype(np.float64)
    if len(times) < 3 or not np.ptp(times) or not np.ptp(stalls):
        return None
    return float(np.corrcoef(times, stalls)[0, 1] ** 2)


def pettitt_chance(values: Float64Array) -> float:
    """Returns the approximate probability that a series without a change drifts as much: 2 exp(−6 K² ÷ (n³ + n²))."""
    count = len(values)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(count, dtype=np.float64)
    ranks[order] = np.arange(1, count + 1)
    # Equal values share their mean rank, so that a flat run has no drift.
    _, place, many = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.bincount(place, ranks) / many)[place]
    moments = np.arange(1, count + 1)
    largest = float(np.abs(2 * np.cumsum(ranks) - moments * (count + 1)).max())
    return min(1.0, 2 * math.exp(-6 * largest**2 / (count**3 + count**2)))


def _without_tokens(history: StepHistory) -> Float64Array:
    """Returns step times as they would be with the mean number of tokens; the drift over time is fitted beside it."""
    times = history.step_ns.astype(np.float64)
    tokens = history.tokens - history.tokens.mean()
    if not tokens.any():
        return times
    moment = np.linspace(-1.0, 1.0, len(times))
    design = np.column_stack((np.ones_like(times), tokens, moment, moment**2))
    slope = float(np.linalg.lstsq(design, times, rcond=None)[0][1])
    adjusted: Float64Array = times - slope * tokens
    return adjusted


def _bend(times: Float64Array) -> int:
    """Returns the step from which on a line that is flat, rises, and is flat again fits the times best.

    By least squares over onsets and lengths of the rise, from a jump to one that lasts to the end.
    """
    stride = -(-len(times) // _FINEST)
    parts = times[: len(times) // stride * stride].reshape(-1, stride).mean(axis=1)
    count = len(parts)
    centred = parts - parts.mean()
    step = np.arange(count, dtype=np.float64)
    onsets: Int64Array = np.unique(np.linspace(1, count - 2, min(_ONSETS, count - 2)).astype(np.int64))
    best, found = -1.0, 1
    # A few hundred onsets, each vectorised over the steps.
    for onset in onsets.tolist():
        for length in _RISES:
            rise = np.clip(step - onset, 0.0, max(length * count, 1.0))
            rise -= rise.mean()
            explained = max(float(rise @ centred), 0.0) ** 2 / float(rise @ rise)
            if explained > best:
                best, found = explained, onset
    return found * stride


def _onset(times: Float64Array, stalls: Float64Array, part: int) -> int:
    """Returns the first step of the slower part; ``part`` steps stand for the run's end.

    Times vary from step to step, so that a slow one comes by chance; stalls do not come without a reason. Where they
    grow by a share of what steps grow by, they tell.
    """
    bend = _bend(times)
    growths = [float(values[-part:].mean() - values[1 : bend + 1].mean()) for values in (stalls, times)]
    return _first_unusual(stalls if growths[0] > _ALLOCATOR_SHARE * max(growths[1], 0.0) else times, bend)


def _first_unusual(values: Float64Array, bend: int) -> int:
    """Returns the first step from the bend on whose value is above all but one in a hundred before it."""
    usual = float(np.quantile(values[1 : bend + 1], _USUAL_RATIO))
    unusual = np.flatnonzero(values[bend:] > usual)
    return bend + int(unusual[0]) if len(unusual) else bend


def _sentence(history: StepHistory, slowdown: Slowdown, trend: MemoryTrend) -> str:
    what = (
        f"From step {slowdown.onset:,} of {len(history):,} on the run slows down: "
        f"{format_duration_ns(slowdown.before_ns)} → {format_duration_ns(slowdown.after_ns)} per step on average "
        f"(+{format_ratio(slowdown.loss_ratio)})"
    )
    allocator = (
        slowdown.retries_per_step + slowdown.caught_per_step > 0 or slowdown.stall_share_ratio > _ALLOCATOR_SHARE
    )
    if not allocator:
        return f"{what}; the allocator is not why: it neither retries nor runs out of memory. {_memory_sentence(trend)}"
    why = {
        MemoryVerdict.FRAGMENTATION: "memory is fragmented",
        MemoryVerdict.LEAK: "live memory grows to the limit",
    }.get(trend.verdict, "memory is short")
    return (
        f"{what}, because {why}: {slowdown.retries_per_step:.1f} retries, {slowdown.driver_calls_per_step:.0f} driver "
        f"calls and {slowdown.caught_per_step:.1f} caught out-of-memory errors per step at the end; the allocator "
        f"itself takes {format_ratio(min(slowdown.stall_share_ratio, 1.0))} of the lost time. "
        f"{_memory_sentence(trend)}"
    )


def _memory_sentence(trend: MemoryTrend) -> str:
    return trend.sentence[:1].upper() + trend.sentence[1:] + "."
