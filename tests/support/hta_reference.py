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
class HtaRows:
    """GPU rows that HTA keeps, in its whole microseconds. Shape (n,)."""

    start_us: Int64Array
    duration_us: Int64Array
    names: list[str]

    def union_of(self, chosen: BoolArray) -> Intervals:
        return union(self.start_us[chosen], (self.start_us + self.duration_us)[chosen])

    def merged_us(self, chosen: BoolArray) -> int:
        """Returns the length of HTA's merged intervals: a row that rounding made 1 µs negative takes 1 µs off."""
        order = np.argsort(self.start_us[chosen], kind="stable")
        start_us = self.start_us[chosen][order]
        reach_us = np.maximum.accumulate(start_us + self.duration_us[chosen][order])
        first = np.concatenate(([True], start_us[1:] > reach_us[:-1]))
        ends = np.maximum.reduceat(start_us + self.duration_us[chosen][order], np.flatnonzero(first))
        return int((ends - start_us[first]).sum())

    def named(self, pattern: re.Pattern[str]) -> BoolArray:
        return np.array([pattern.match(name) is not None for name in self.names], dtype=np.bool_)


@dataclass(frozen=True)
class HtaTemporal:
    """One row of HTA's temporal breakdown, µs."""

    idle_us: int
    compute_us: int
    non_compute_us: int
    kernel_us: int


def hta_rows(trace: Trace, step_names: set[str], base_ns: int | None, *, drop_last_step: bool = True) -> HtaRows:
    """Returns the rows of streams that HTA measures.

    Args:
        trace: A Kineto trace.
        step_names: Distinct ``ProfilerStep`` names of all ranks of the job.
        base_ns: The file's ``baseTimeNanoseconds`` (0 where it has none), for times that are floats in the file: HTA
            rounds those. None for files in whole microseconds.
        drop_last_step: HTA always does; False shows what that rule alone changes.
    """
    events = trace.events
    start_us, duration_us = _rounded(trace, base_ns)
    # The annotation rows of a device carry no ``stream`` argument, only a row number.
    streams = [track.stream if track.kind is TrackKind.DEVICE_STREAM else -1 for track in trace.tracks]
    stream = np.array(streams)[events.track]
    names = trace.strings.texts(events.name)
    is_sync = np.isin(np.array(names, dtype=object), _SYNCHRONIZATIONS)
    is_gpu = ((stream >= 0) & (events.correlation >= 0)) | is_sync
    kept = stream != -1
    if drop_last_step and len(step_names) >= 2:
        is_step = np.array(["ProfilerStep" in name for name in names], dtype=np.bool_)
        limit_us = start_us[is_step & ~is_gpu].max()
        launches = events.correlation[~is_gpu & (start_us < limit_us)]
        kept &= is_gpu & np.isin(events.correlation, launches)
    rows = np.flatnonzero(kept)
    return HtaRows(start_us[rows], duration_us[rows], [names[row] for row in rows.tolist()])


def step_names(trace: Trace) -> set[str]:
    """Returns the distinct names HTA takes for steps."""
    return {name for name in trace.strings if "ProfilerStep" in name}


def hta_temporal(rows: HtaRows) -> HtaTemporal:
    """Returns HTA's breakdown: every row of a stream counts, synchronisation rows with it."""
    everything = np.ones(len(rows.names), dtype=np.bool_)
    kernel_us = int((rows.start_us + rows.duration_us).max() - rows.start_us.min())
    busy_us = rows.merged_us(everything)
    compute_us = rows.merged_us(~rows.named(NOT_COMPUTATION))
    return HtaTemporal(kernel_us - busy_us, compute_us, busy_us - compute_us, kernel_us)


def hta_overlap_percent(rows: HtaRows) -> float | None:
    """Returns HTA's computation-communication overlap in percent; None where HTA divides by zero."""
    communication = rows.union_of(rows.named(COMMUNICATION))
    computation = rows.union_of(~rows.named(NOT_COMPUTATION))
    if communication.total_ns == 0:
        return None
    return round(100 * intersection(communication, computation).total_ns / communication.total_ns, 2)


def _rounded(trace: Trace, base_ns: int | None) -> tuple[Int64Array, AnyArray]:
    """Returns starts and durations in µs as HTA rounds the file's floats: starts up, ends down."""
    if base_ns is None:
        return trace.events.start_ns // 1000, trace.events.duration_ns // 1000
    file_ns = trace.events.start_ns + (trace.metadata.epoch_ns or 0) - base_ns
    # Epoch ns do not fit float64: whole µs and the fraction are added, so there is one rounding, the file's own.
    file_us = file_ns // 1000 + (file_ns % 1000) / 1000
    end_us = np.floor(file_us + trace.events.duration_ns / 1000)
    start_us = np.ceil(file_us)
    return start_us.astype(np.int64), (end_us - start_us).astype(np.int64)
