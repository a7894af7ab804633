"""Which slices the arrows of a Chrome trace connect: the Trace Event format's rules, for whole files at once."""

from dataclasses import dataclass

import numba
import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.errors import SourcePosition
from engine.formats.events.trace_events import ABSENT_TIME_NS, RawEvents
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.nesting import nest, nesting_order
from engine.trace.strings import StringInterner

_MAX_TABLE = 1 << 22
_START, _STEP, _FINISH = ord("s"), ord("t"), ord("f")


@dataclass(frozen=True, slots=True, eq=False)
class FlowBinding:
    """Arrows found, shape (n,).

    Attributes:
        source: int64, index into the slices given to ``bind_flows``.
        target: int64, likewise.
        category: int32 string id of the flow's category, −1 where absent.
    """

    source: Int64Array
    target: Int64Array
    category: Int32Array


def lanes_of(raw: RawEvents) -> tuple[Int32Array, Int64Array]:
    """Returns the lane of every event and the first row of every lane.

    A lane is a distinct (process, thread); lanes are numbered by first appearance. int32 shape (events,), and int64
    shape (lanes,).
    """
    process, thread = _compact(raw.process), _compact(raw.thread)
    width = int(thread.max(initial=0)) + 1
    key = process.astype(np.int64) * width + thread
    count = (int(process.max(initial=0)) + 1) * width
    if count > _MAX_TABLE:
        _, key = np.unique(key, return_inverse=True)
        count = int(key.max(initial=0)) + 1
    first = np.full(count, -1, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    order = present[np.argsort(first[present], kind="stable")]
    rank = np.full(count, -1, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[key], first[order]


def _compact(ids: Int32Array) -> Int32Array:
    """Returns ``ids`` (≥ −1) renumbered without gaps."""
    present = np.bincount(ids + 1) > 0
    return (np.cumsum(present, dtype=np.int32) - 1)[ids + 1]


def bind_flows(
    raw: RawEvents,
    slice_rows: Int64Array,
    slice_duration_ns: Int64Array,
    diagnostics: DiagnosticLog,
    position: SourcePosition,
    flow_rows: Int64Array | None = None,
) -> FlowBinding:
    """Connects the flow events (phases s, t, f) of a file with slices.

    An end belongs to the slice of its (process, thread) that starts at exactly its time (the innermost of several);
    without one, to the innermost slice around it, or, for an ``f`` without ``"bp": "e"``, to the next slice to start.
    Ends meet by (category, id): each ``t`` and ``f`` is joined to the latest ``s`` or ``t`` before it, or, where host
    and device clocks put it first, to the earliest after it; one ``s`` may have many ``f``.

    Args:
        raw: The events of the file.
        slice_rows: int64, shape (m,): rows that are slices (for B/E pairs, the row of the B).
        slice_duration_ns: int64, shape (m,).
        diagnostics: Counts ends without a slice and ends without a partner.
        position: Where to say they were found.
        flow_rows: Only these flow events; all where None.
    """
    flow_rows = _usable_rows(raw, flow_rows, diagnostics, position)
    to_next = (raw.phase[flow_rows] == _FINISH) & ~raw.encloses[flow_rows]
    bound = slices_at(raw, slice_rows, slice_duration_ns, flow_rows, to_next)
    phase = raw.phase[flow_rows]
    category, flow = raw.category[flow_rows], raw.flow[flow_rows]
    # Starts before steps before finishes at the same ns.
    place = np.where(phase == _START, 0, np.where(phase == _STEP, 1, 2))
    order = np.lexsort((place, raw.start_ns[flow_rows], flow, category))
    partner = np.full(len(order), -1, dtype=np.int64)
    partner[order] = _partners(category[order], flow[order], phase[order], order)
    targets = np.flatnonzero((partner >= 0) & (bound >= 0))
    targets = targets[bound[partner[targets]] >= 0]
    _count_undrawn(phase, partner, targets, diagnostics, position)
    return FlowBinding(bound[partner[targets]], bound[targets], category[targets])


def flow_kinds(binding: FlowBinding, strings: StringInterner) -> list[tuple[str, Int64Array, Int64Array]]:
    """Returns the arrows of each category as ``(category, source, target)``, as TraceBuilder.add_flows wants them."""
    texts = strings.table()
    return [
        (texts.text(category), binding.source[chosen], binding.target[chosen])
        for category in np.unique(binding.category).tolist()
        for chosen in [binding.category == category]
    ]


def _usable_rows(
    raw: RawEvents, flow_rows: Int64Array | None, diagnostics: DiagnosticLog, position: SourcePosition
) -> Int64Array:
    """Returns the flow events with a time (those without are counted with all other events) and an id."""
    if flow_rows is None:
        flow_rows = np.flatnonzero((raw.phase == _START) | (raw.phase == _STEP) | (raw.phase == _FINISH))
    flow_rows = flow_rows[raw.start_ns[flow_rows] != ABSENT_TIME_NS]
    named = raw.flow[flow_rows] >= 0
    message = "ends of arrows have no id that tells which other end they belong to"
    count = int(np.count_nonzero(~named))
    diagnostics.add("flow-without-id", Severity.NOTICE, message, count=count, position=position)
    return flow_rows[named]


def _count_undrawn(
    phase: UInt8Array, partner: Int64Array, targets: Int64Array, diagnostics: DiagnosticLog, position: SourcePosition
) -> None:
    """Counts every flow event that is part of no arrow once, by what it lacks."""
    used = np.zeros(len(phase), dtype=np.bool_)
    used[partner[partner >= 0]] = True
    drawn = np.zeros(len(phase), dtype=np.bool_)
    drawn[targets] = True
    drawn[partner[targets]] = True
    without_start = (phase != _START) & (partner < 0) & ~drawn
    without_end = (phase == _START) & ~used
    for code, message, counted in (
        ("flow-without-start", "ends of arrows have no start with their category and id", without_start),
        ("flow-without-end", "starts of arrows have no end with their category and id", without_end),
        (
            "flow-without-slice",
            "starts and ends of arrows are not drawn: one of the two has no slice on its thread at its time",
            ~drawn & ~without_start & ~without_end,
        ),
    ):
        count = int(np.count_nonzero(counted))
        diagnostics.add(code, Severity.NOTICE, message, count=count, position=position)


def slices_at(
    raw: RawEvents, slice_rows: Int64Array, slice_duration_ns: Int64Array, rows: Int64Array, to_next: BoolArray
) -> Int64Array:
    """Returns for events of ``raw`` the index of the slice they belong to by thread and time, or −1.

    Args:
        raw: The events of the file.
        slice_rows: int64, shape (m,): rows that are slices.
        slice_duration_ns: int64, shape (m,).
        rows: int64, shape (n,): the events to place.
        to_next: bool, shape (n,): without a slice that starts with it, the event belongs to the next one to start
            instead of the innermost one around it.
    """
    if len(slice_rows) == 0 or len(rows) == 0:
        return np.full(len(rows), -1, dtype=np.int64)
    lane, first = lanes_of(raw)
    slice_lane = lane[slice_rows]
    start_ns = raw.start_ns[slice_rows]
    order = nesting_order(slice_lane, start_ns, slice_duration_ns)
    if order is None:
        order = np.arange(len(slice_lane))
    lane_sorted, start_sorted = slice_lane[order], start_ns[order]
    duration_sorted = slice_duration_ns[order]
    _, parent = nest(lane_sorted, start_sorted, duration_sorted)
    bounds = np.searchsorted(lane_sorted, np.arange(len(first) + 1, dtype=np.int32))
    found = _bind(
        lane[rows],
        raw.start_ns[rows],
        to_next,
        bounds.astype(np.int64),
        start_sorted,
        start_sorted + duration_sorted,
        parent,
    )
    return np.where(found >= 0, order[found], -1)


@numba.njit(cache=True)
def _bind(
    flow_lane: Int32Array,
    flow_ns: Int64Array,
    next_to_start: BoolArray,
    bounds: Int64Array,
    start_ns: Int64Array,
    end_ns: Int64Array,
    parent: Int32Array,
) -> Int64Array:
    found = np.full(len(flow_ns), -1, np.int64)
    for index in range(len(flow_ns)):
        low, high = bounds[flow_lane[index]], bounds[flow_lane[index] + 1]
        time_ns = flow_ns[index]
        after = low + np.searchsorted(start_ns[low:high], time_ns, side="right")
        candidate = after - 1
        if candidate >= low and start_ns[candidate] == time_ns:
            found[index] = candidate
            continue
        if next_to_start[index]:
            if after < high:
                found[index] = after
            continue
        while candidate >= low and end_ns[candidate] < time_ns:
            candidate = parent[candidate]
        if candidate >= low:
            found[index] = candidate
    return found


@numba.njit(cache=True)
def _partners(category: Int32Array, flow: Int32Array, phase: UInt8Array, order: Int64Array) -> Int64Array:
    """Returns for events sorted by (category, id, time) which event each t and f continues, −1 for none."""
    count = len(order)
    partner = np.full(count, -1, np.int64)
    begin = 0
    while begin < count:
        end = begin
        while end < count and category[end] == category[begin] and flow[end] == flow[begin]:
            end += 1
        last = -1
        for index in range(begin, end):
            if phase[index] != _START and last >= 0:
                partner[index] = order[last]
            if phase[index] != _FINISH:
                last = index
        first = begin
        while first < end and phase[first] != _START:
            first += 1
        if first < end:
            for index in range(begin, first):
                if partner[index] < 0:
                    partner[index] = order[first]
        begin = end
    return partner
