"""Holistic Trace Analysis' idle breakdown, by its rules: gaps between neighbouring rows of one stream."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.trace import Trace, TrackKind
from tests.support.hta_reference import _times

KERNEL_WAIT_TICKS = 30
"""HTA's code compares whole µs with it; its documentation says ns."""
_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"})


@dataclass(frozen=True)
class HtaIdle:
    """Ticks of one stream by HTA's category."""

    host_wait: int | None
    kernel_wait: int | None
    other: int | None


def hta_idle(
    trace: Trace, step_names: set[str], base_ns: int | None, *, joins_first_event: bool = True
) -> dict[int, HtaIdle]:
    """Returns the breakdown of every stream that has a gap.

    A row's gap runs from the end of the row before it, negative where they overlap. It is ``host_wait`` where the
    launch began after that end, else ``kernel_wait`` below 30 µs, else ``other``. A row whose launch is not in the file
    takes the first event of the file for it.
    """
    events = trace.events
    start, duration = _times(trace, base_ns, rounds=True)
    stream = np.array([t.stream if t.kind is TrackKind.DEVICE_STREAM else -1 for t in trace.tracks])[events.track]
    names = trace.strings.texts(events.name)
    is_sync = np.isin(np.array(names, dtype=object), ("Event Sync", "Context Sync"))
    is_gpu = ((stream >= 0) & (events.correlation >= 0)) | is_sync
    kept = np.array([category in _CATEGORIES for category in trace.strings.texts(events.category)], dtype=np.bool_)
    kept &= stream != -1
    if len(step_names) >= 2:
        is_step = np.array(["ProfilerStep" in name for name in names], dtype=np.bool_)
        limit = start[is_step & ~is_gpu].max()
        launches = events.correlation[~is_gpu & (start < limit)]
        kept &= is_gpu & np.isin(events.correlation, launches)
    rows = np.flatnonzero(kept)
    launch = _launch_ticks(trace, start, stream, rows, joins_first_event=joins_first_event)
    found = {}
    for number in np.unique(stream[rows]).tolist():
        own = rows[stream[rows] == number]
        # The file's order decides between rows that begin together.
        own = own[np.lexsort((events.args_offset[own], start[own]))]
        found[number] = _of_stream(start[own], duration[own], launch[own])
    return {number: item for number, item in found.items() if item is not None}


def _launch_ticks(
    trace: Trace, start: Int64Array, stream: Int64Array, rows: Int64Array, *, joins_first_event: bool
) -> Int64Array:
    """Returns when each row was launched, by event row; the file's first event where no launch is known."""
    correlation = trace.events.correlation
    host = np.flatnonzero((stream == -1) & (correlation >= 0))
    by_number = dict(zip(correlation[host].tolist(), start[host].tolist(), strict=True))
    offsets = trace.events.args_offset
    known = np.flatnonzero(offsets >= 0)
    never = int(np.iinfo(np.int64).min)
    first = int(start[known[np.argmin(offsets[known])]]) if joins_first_event else never
    launched = np.full(len(start), np.iinfo(np.int64).min, dtype=np.int64)
    for row in rows.tolist():
        launched[row] = by_number.get(int(correlation[row]), first)
    return launched


def _of_stream(start: Int64Array, duration: Int64Array, launch: Int64Array) -> HtaIdle | None:
    if len(start) < 2:
        return None
    end = (start + duration)[:-1]
    gap = start[1:] - end
    host = launch[1:] > end
    kernel = ~host & (gap < KERNEL_WAIT_TICKS)
    sums: dict[str, int] = defaultdict(int)
    parts = {"host_wait": host, "kernel_wait": kernel, "other": ~host & ~kernel}
    for name, mask in parts.items():
        if mask.any():
            sums[name] = int(gap[mask].sum())
    return HtaIdle(sums.get("host_wait"), sums.get("kernel_wait"), sums.get("other"))
