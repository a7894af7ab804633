"""The cause of each device gap, from the rows of the host.

The question is what became of the launch of the task that ended the gap:

* The call had returned before the gap began: the host is not to blame. A wait on the task's stream, or a task of
  another stream that ended as the gap began, makes it OTHER_STREAM. A short gap without either is DEVICE_SCHEDULING, a
  long one UNKNOWN: the task waited for something that was not recorded.
* Otherwise the host was late, and what filled the time from the start of the gap to the launch says why, in order:
  compiling, the driver's allocator (on whichever thread), a task enqueued before the gap and dequeued late
  (DEQUEUE_SLOW), data loading, garbage collection, a synchronising call; with none of these HOST_SLOW.

A call fills the time where such calls cover at least half of it. A synchronising call also counts when it was running
as the gap began: it is why the host had nothing queued.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity
from engine.analyses.idle.device_gaps import DeviceGaps
from engine.analyses.idle.host_calls import HostCall, host_call_rows
from engine.analyses.idle.verdicts import IdleCause, IdleVerdicts
from engine.analyses.launches import clock_lag_ns, queue_links
from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from engine.trace.intervals import covered_ns, union
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

DEVICE_START_NS = 200_000
"""What the device may take to start a task whose stream is free. A 910B whose profiler collects L2 cache hits takes
87–112 µs for every task (CNN captures), an MI300 20–23 µs."""

_CALLS_OF_ANY_THREAD = (HostCall.COLLECT_GARBAGE,)
"""Garbage collection holds every Python thread, and profilers give it a row of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """The time in which the host could still have avoided each gap: from its start to the launch, on the host's clock.

    Columns of shape (n,); ``queued`` where the launch had returned before the gap began.
    """

    start_ns: Int64Array
    end_ns: Int64Array
    launch: Int32Array
    queued: BoolArray


def causes_from_host(trace: Trace, gaps: DeviceGaps, kinds: UInt8Array, launch: Int32Array) -> IdleVerdicts:
    """Returns cause and evidence of every gap; UNKNOWN where the launch was not recorded and nothing filled the gap."""
    verdicts = IdleVerdicts(len(gaps))
    windows = _windows(trace, gaps, launch)
    _judge_queued(trace, gaps, kinds, windows, verdicts)
    calls = _calls_of_working_threads(trace, launch)
    for call, cause in ((HostCall.COMPILE, IdleCause.COMPILATION), (HostCall.ALLOCATE, IdleCause.ALLOCATOR)):
        verdicts.decide(*_filled(trace, calls[call], windows), cause)
    late, dequeue = _dequeued_late(trace, windows)
    verdicts.decide(late, dequeue, IdleCause.DEQUEUE_SLOW)
    for call, cause in (
        (HostCall.LOAD_DATA, IdleCause.DATA_LOADING),
        (HostCall.COLLECT_GARBAGE, IdleCause.GARBAGE_COLLECTION),
        (HostCall.SYNCHRONIZE, IdleCause.HOST_SYNCHRONIZATION),
    ):
        verdicts.decide(*_filled(trace, calls[call], windows), cause)
    verdicts.decide(*_running(trace, calls[HostCall.SYNCHRONIZE], windows.start_ns), IdleCause.HOST_SYNCHRONIZATION)
    verdicts.decide(windows.launch != ABSENT, windows.launch, IdleCause.HOST_SLOW)
    return verdicts


def _windows(trace: Trace, gaps: DeviceGaps, launch: Int32Array) -> _Windows:
    launched_by = launch[gaps.next_event]
    lag_ns = clock_lag_ns(trace, launch)
    gap_start_ns, gap_end_ns = gaps.start_ns + lag_ns, gaps.end_ns + lag_ns
    known = launched_by != ABSENT
    call = np.maximum(launched_by, 0)
    called_ns, returned_ns = trace.events.start_ns[call], trace.events.end_ns[call]
    queued = known & (returned_ns <= gap_start_ns)
    # A call that was running as the gap began held the task back until it returned.
    late_ns = np.clip(np.where(called_ns > gap_start_ns, called_ns, returned_ns), gap_start_ns, gap_end_ns)
    return _Windows(gap_start_ns, np.where(known & ~queued, late_ns, gap_end_ns), launched_by, queued)


def _judge_queued(trace: Trace, gaps: DeviceGaps, kinds: UInt8Array, windows: _Windows, verdicts: IdleVerdicts) -> None:
    """Decides the gaps whose next task was launched in time."""
    waited, wait = _waited_on_stream(trace, gaps, kinds)
    verdicts.decide(windows.queued & waited, wait, IdleCause.OTHER_STREAM)
    track = trace.events.track
    other = track[gaps.previous_event] != track[gaps.next_event]
    short = windows.queued & (gaps.end_ns - gaps.start_ns <= DEVICE_START_NS)
    verdicts.decide(short & other, gaps.previous_event, IdleCause.OTHER_STREAM)
    verdicts.decide(short, windows.launch, IdleCause.DEVICE_SCHEDULING)
    verdicts.decide(windows.queued, windows.launch, IdleCause.UNKNOWN)


def _waited_on_stream(trace: Trace, gaps: DeviceGaps, kinds: UInt8Array) -> tuple[BoolArray, Int32Array]:
    """Returns where a wait on the next task's stream covers at least half of the gap, and its row."""
    rows = np.flatnonzero(kinds == Activity.SYNCHRONIZATION).astype(np.int32)
    if len(rows) == 0:
        return np.zeros(len(gaps), dtype=np.bool_), np.full(len(gaps), ABSENT, dtype=np.int32)
    # Rows ascend by (track, start): one search over both at once. Records last some ns and never cover half a gap.
    reach_ns = int(trace.events.start_ns.max()) + 1
    keys = trace.events.track[rows].astype(np.int64) * reach_ns + np.maximum(trace.events.start_ns[rows], 0)
    track = trace.events.track[gaps.next_event]
    last = np.searchsorted(keys, track.astype(np.int64) * reach_ns + np.minimum(gaps.end_ns, reach_ns - 1)) - 1
    row = rows[np.maximum(last, 0)]
    same = (last >= 0) & (trace.events.track[row] == track)
    covered = np.minimum(trace.events.end_ns[row], gaps.end_ns) - np.maximum(trace.events.start_ns[row], gaps.start_ns)
    return same & (2 * covered >= gaps.end_ns - gaps.start_ns), row


def _calls_of_working_threads(trace: Trace, launch: Int32Array) -> dict[HostCall, Int32Array]:
    """Returns the host's calls by kind, those of threads that neither launch nor enqueue left out."""
    enqueue, _ = queue_links(trace)
    working_rows = np.concatenate((launch[launch != ABSENT], enqueue))
    threads = {trace.tracks[track].thread_id for track in np.unique(trace.events.track[working_rows]).tolist()}
    works = np.array([not threads or track.thread_id in threads for track in trace.tracks], dtype=np.bool_)
    return {
        call: rows if call in _CALLS_OF_ANY_THREAD else rows[works[trace.events.track[rows]]]
        for call, rows in host_call_rows(trace).items()
    }


def _filled(trace: Trace, rows: Int32Array, windows: _Windows) -> tuple[BoolArray, Int32Array]:
    """Returns where calls cover at least half of the window, and the call that reaches furthest into it."""
    start_ns, end_ns = trace.events.start_ns[rows], trace.events.end_ns[rows]
    covered = covered_ns(union(start_ns, end_ns), windows.start_ns, windows.end_ns)
    filled = ~windows.queued & (covered > 0) & (2 * covered >= windows.end_ns - windows.start_ns)
    return filled, _furthest(rows, start_ns, end_ns, windows.end_ns)


def _running(trace: Trace, rows: Int32Array, moment_ns: Int64Array) -> tuple[BoolArray, Int32Array]:
    """Returns where one of the calls (rows by start) was running at each moment, and which."""
    start_ns, end_ns = trace.events.start_ns[rows], trace.events.end_ns[rows]
    call = _furthest(rows, start_ns, end_ns, moment_ns)
    return (call != ABSENT) & (trace.events.end_ns[np.maximum(call, 0)] >= moment_ns), call


def _furthest(rows: Int32Array, start_ns: Int64Array, end_ns: Int64Array, moment_ns: Int64Array) -> Int32Array:
    """Returns the row that ends last among those that begin before each moment, or −1."""
    if len(rows) == 0:
        return np.full(len(moment_ns), ABSENT, dtype=np.int32)
    reach_ns = np.maximum.accumulate(end_ns)
    leader = np.maximum.accumulate(np.where(end_ns == reach_ns, np.arange(len(rows)), 0))
    begun = np.searchsorted(start_ns, moment_ns, side="left") - 1
    furthest: Int32Array = np.where(begun >= 0, rows[leader[np.maximum(begun, 0)]], np.int32(ABSENT))
    return furthest


def _dequeued_late(trace: Trace, windows: _Windows) -> tuple[BoolArray, Int32Array]:
    """Returns where the task was enqueued before the gap began but not launched, and the ``Dequeue`` that did it."""
    enqueue, dequeue = queue_links(trace)
    nothing = np.full(len(windows.launch), ABSENT, dtype=np.int32)
    if len(dequeue) == 0:
        return np.zeros(len(nothing), dtype=np.bool_), nothing
    order = np.argsort(trace.events.start_ns[dequeue], kind="stable")
    enqueue, dequeue = enqueue[order], dequeue[order]
    launch = np.maximum(windows.launch, 0)
    begun = np.searchsorted(trace.events.start_ns[dequeue], trace.events.start_ns[launch], side="right") - 1
    runner = dequeue[np.maximum(begun, 0)]
    ran = (windows.launch != ABSENT) & (begun >= 0) & _holds(trace, runner, launch)
    enqueued_ns = trace.events.end_ns[enqueue[np.maximum(begun, 0)]]
    return ran & ~windows.queued & (enqueued_ns <= windows.start_ns), runner


def _holds(trace: Trace, outer: Int32Array, inner: AnyArray) -> BoolArray:
    """Returns whether each inner row begins inside the outer one, on the same host thread (of any layer)."""
    thread = np.unique([track.thread_id for track in trace.tracks], return_inverse=True)[1]
    begins_inside = trace.events.start_ns[inner] < trace.events.end_ns[outer]
    same_thread = thread[trace.events.track[inner]] == thread[trace.events.track[outer]]
    held: BoolArray = begins_inside & same_thread
    return held
