"""Holistic Trace Analysis' preprocessing and rules, applied to our traces, so that tests can show what differs and why.

Written from its documented behaviour (version 0.5.0). The product shows exact unions instead; ``docs/hta.md`` lists the
differences.
"""

import re
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int64Array
from engine.trace import Trace, TrackKind
from engine.trace.intervals import Intervals, intersection, union

COMMUNICATION = re.compile(r"^nccl.*Kernel")
NOT_COMPUTATION = re.compile(r"^nccl.*Kernel|.*Memcpy|Memset|.*Sync")
_SYNCHRONIZATIONS = ("Event Sync", "Context Sync")


@dataclass(frozen=True)
class HtaRules:
    """HTA's preprocessing rule by rule; switching one off shows what it alone changes."""

    drops_last_step: bool = True
    counts_synchronization: bool = True
    rounds: bool = True


HTA = HtaRules()


@dataclass(frozen=True)
class HtaRows:
    """Rows of streams that HTA keeps. Times in ticks of ``tick_ns``, shape (n,)."""

    start: Int64Array
    duration: Int64Array
    names: list[str]
    tick_ns: int

    def union_of(self, chosen: BoolArray) -> Intervals:
        return union(self.start[chosen], (self.start + self.duration)[chosen])

    def merged_ns(self, chosen: BoolArray) -> int:
        """Returns the length of HTA's merged intervals: a row that rounding made 1 µs negative takes 1 µs off."""
        order = np.argsort(self.start[chosen], kind="stable")
        start = self.start[chosen][order]
        end = start + self.duration[chosen][order]
        first = np.concatenate(([True], start[1:] > np.maximum.accumulate(end)[:-1]))
        reach = np.maximum.reduceat(end, np.flatnonzero(first))
        return int((reach - start[first]).sum()) * self.tick_ns

    def named(self, pattern: re.Pattern[str]) -> BoolArray:
        return np.array([pattern.match(name) is not None for name in self.names], dtype=np.bool_)


@dataclass(frozen=True)
class HtaTemporal:
    """One row of HTA's temporal breakdown, ns."""

    idle_ns: int
    compute_ns: int
    non_compute_ns: int
    kernel_ns: int


def hta_rows(trace: Trace, step_names: set[str], base_ns: int | None, rules: HtaRules = HTA) -> HtaRows:
    """Returns the rows of streams that HTA measures.

    Args:
        trace: A Kineto trace.
        step_names: Distinct ``ProfilerStep`` names of all ranks of the job.
        base_ns: The file's ``baseTimeNanoseconds`` (0 where it has none), for times that are floats in the file: HTA
            rounds those. None for files in whole microseconds.
        rules: Which rules apply.
    """
    events = trace.events
    start, duration = _times(trace, base_ns, rules.rounds)
    # The annotation rows of a device carry no ``stream`` argument, only a row number.
    streams = [track.stream if track.kind is TrackKind.DEVICE_STREAM else -1 for track in trace.tracks]
    stream = np.array(streams)[events.track]
    names = trace.strings.texts(events.name)
    is_sync = np.isin(np.array(names, dtype=object), _SYNCHRONIZATIONS)
    is_gpu = ((stream >= 0) & (events.correlation >= 0)) | is_sync
    kept = stream != -1
    if not rules.counts_synchronization:
        kept &= np.array([category != "cuda_sync" for category in trace.strings.texts(events.category)])
    if rules.drops_last_step and len(step_names) >= 2:
        is_step = np.array(["ProfilerStep" in name for name in names], dtype=np.bool_)
        limit = start[is_step & ~is_gpu].max()
        launches = events.correlation[~is_gpu & (start < limit)]
        kept &= is_gpu & np.isin(events.correlation, launches)
    rows = np.flatnonzero(kept)
    return HtaRows(start[rows], duration[rows], [names[row] for row in rows.tolist()], 1000 if rules.rounds else 1)


def step_names(trace: Trace) -> set[str]:
    """Returns the distinct names HTA takes for steps."""
    return {name for name in trace.strings if "ProfilerStep" in name}


def hta_temporal(rows: HtaRows) -> HtaTemporal:
    """Returns HTA's breakdown: every kept row of a stream is busy time."""
    everything = np.ones(len(rows.names), dtype=np.bool_)
    kernel_ns = int((rows.start + rows.duration).max() - rows.start.min()) * rows.tick_ns
    busy_ns = rows.merged_ns(everything)
    compute_ns = rows.merged_ns(~rows.named(NOT_COMPUTATION))
    return HtaTemporal(kernel_ns - busy_ns, compute_ns, busy_ns - compute_ns, kernel_ns)


def hta_overlap_percent(rows: HtaRows) -> float | None:
    """Returns HTA's computation-communication overlap in percent; None where HTA divides by zero."""
    communication = rows.union_of(rows.named(COMMUNICATION))
    computation = rows.union_of(~rows.named(NOT_COMPUTATION))
    if communication.total_ns == 0:
        return None
    return round(100 * intersection(communication, computation).total_ns / communication.total_ns, 2)


def _times(trace: Trace, base_ns: int | None, rounds: bool) -> tuple[Int64Array, AnyArray]:
    """Returns starts and durations: in µs as HTA rounds the file's floats (starts up, ends down), or in exact ns."""
    if not rounds:
        return trace.events.start_ns, trace.events.duration_ns
    if base_ns is None:
        return trace.events.start_ns // 1000, trace.events.duration_ns // 1000
    file_ns = trace.events.start_ns + (trace.metadata.epoch_ns or 0) - base_ns
    # Epoch ns do not fit float64: whole µs and the fraction are added, so there is one rounding, the file's own.
    file_us = file_ns // 1000 + (file_ns % 1000) / 1000
    end_us = np.floor(file_us + trace.events.duration_ns / 1000)
    start_us = np.ceil(file_us)
    return start_us.astype(np.int64), (end_us - start_us).astype(np.int64)
