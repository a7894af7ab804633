"""Slices and instants of a Chrome trace from all the phases that draw one, and a count of those that draw none."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.core.errors import SourcePosition
from engine.formats.events.flow_binding import lanes_of
from engine.formats.events.slice_matching import match_pairs
from engine.formats.events.trace_events import ABSENT_TIME_NS, RawEvents
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.tables import INSTANT, UNFINISHED

_HANDLED = "XBEiIRMCstfbneSTpF"
_ASYNC = "bneSTpF"


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Slices and instants in file order; columns of shape (n,).

    Attributes:
        row: int64, row of the event; of the begin, for pairs.
        lane: int32, the thread, or, from ``thread_count`` on, the async operation.
        duration_ns: int64.
        flags: uint8, INSTANT | UNFINISHED.
        lane_row: int64, shape (lanes,): a row of each lane.
        thread_count: Lanes that are threads.
    """

    row: Int64Array
    lane: Int32Array
    duration_ns: Int64Array
    flags: UInt8Array
    lane_row: Int64Array
    thread_count: int


def gather_slices(raw: RawEvents, diagnostics: DiagnosticLog, position: SourcePosition) -> Slices:
    """Returns everything in ``raw`` that has a place on a track; what has none is counted."""
    thread_lane, thread_row = lanes_of(raw)
    async_lane, async_row = _async_lanes(raw, len(thread_row))
    placed = raw.start_ns != ABSENT_TIME_NS
    complete = np.flatnonzero(placed & (raw.phase == ord("X")))
    message = "complete events have no duration; it is taken as 0"
    absent_count = int(np.count_nonzero(raw.duration_ns[complete] < 0))
    diagnostics.add("missing-duration", Severity.NOTICE, message, count=absent_count, position=position)
    instants = _rows(raw, placed, "iIR")
    async_instants = _rows(raw, placed, "nTp")
    parts = [
        (complete, thread_lane[complete], np.maximum(raw.duration_ns[complete], 0), _flags(complete, 0)),
        (instants, thread_lane[instants], np.zeros(len(instants), np.int64), _flags(instants, INSTANT)),
        (
            async_instants,
            async_lane[async_instants],
            np.zeros(len(async_instants), np.int64),
            _flags(async_instants, INSTANT),
        ),
    ]
    end_ns = _last_ns(raw, placed)
    for letters, lane in (("BE", thread_lane), ("be", async_lane), ("SF", async_lane)):
        parts.append(_pairs(raw, _rows(raw, placed, letters), ord(letters[0]), lane, end_ns, diagnostics, position))
    row, lane, duration_ns, flags = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    count_unused_phases(raw, _HANDLED, diagnostics, position)
    return Slices(
        row[order],
        lane[order],
        duration_ns[order],
        flags[order],
        np.concatenate((thread_row, async_row)),
        len(thread_row),
    )


def count_unused_phases(raw: RawEvents, used: str, diagnostics: DiagnosticLog, position: SourcePosition) -> None:
    """Counts events whose phase is not among the letters ``used``, one diagnostic per phase."""
    counts = np.bincount(raw.phase, minlength=256)
    for phase in np.flatnonzero(counts).tolist():
        letter = chr(phase)
        if letter in used:
            continue
        known = f"phase {letter!r}" if phase else "no or an unreadable phase"
        diagnostics.add(
            f"unused-phase-{letter}" if phase else "unused-phase",
            Severity.NOTICE,
            f"events of {known} are not shown",
            count=int(counts[phase]),
            position=position,
        )


def _rows(raw: RawEvents, placed: BoolArray, letters: str) -> Int64Array:
    rows: Int64Array = np.flatnonzero(placed & np.isin(raw.phase, [ord(letter) for letter in letters]))
    return rows


def _flags(rows: Int64Array, flag: int | np.uint8) -> UInt8Array:
    return np.full(len(rows), flag, dtype=np.uint8)


def _last_ns(raw: RawEvents, placed: BoolArray) -> int:
    if not placed.any():
        return 0
    return int((raw.start_ns[placed] + np.maximum(raw.duration_ns[placed], 0)).max())


def _pairs(
    raw: RawEvents,
    rows: Int64Array,
    begin_phase: int,
    lane: Int32Array,
    end_ns: int,
    diagnostics: DiagnosticLog,
    position: SourcePosition,
) -> tuple[Int64Array, Int32Array, Int64Array, UInt8Array]:
    """Returns row, lane, duration and flags of the slices that the begins and ends among ``rows`` make."""
    matched = match_pairs(lane[rows], raw.start_ns[rows], raw.phase[rows] == begin_phase, raw.name[rows])
    begin = rows[matched.begin]
    finished = matched.end >= 0
    closing_ns = np.where(finished, raw.start_ns[rows[matched.end]] if len(rows) else 0, end_ns)
    message = "slices that began and did not end; they are drawn to the end of the trace"
    unfinished_count = int(np.count_nonzero(~finished))
    diagnostics.add("unfinished-slice", Severity.NOTICE, message, count=unfinished_count, position=position)
    message = "ends of slices that never began"
    diagnostics.add("end-without-begin", Severity.NOTICE, message, count=matched.orphan_count, position=position)
    flags = np.where(finished, np.uint8(0), UNFINISHED).astype(np.uint8)
    return begin, lane[begin], closing_ns - raw.start_ns[begin], flags


def _async_lanes(raw: RawEvents, first_lane: int) -> tuple[Int32Array, Int64Array]:
    """Returns the lane of every async event (−1 for others), one per (process, category, id), and a row of each."""
    lane = np.full(len(raw), -1, dtype=np.int32)
    rows = np.flatnonzero(np.isin(raw.phase, [ord(letter) for letter in _ASYNC]))
    if len(rows) == 0:
        return lane, rows
    keys = np.stack((raw.process[rows], raw.category[rows], raw.flow[rows]))
    _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    lane[rows] = first_lane + inverse.reshape(-1)
    return lane, rows[first]
