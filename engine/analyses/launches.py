"""Which host call handed each device task to the device."""

import numpy as np

from engine.core.arrays import BoolArray, Int32Array
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

MAX_CLOCK_LAG_NS = 1_000_000
HOST_KINDS = (TrackKind.HOST_THREAD, TrackKind.CANN_THREAD)
DEVICE_KINDS = (TrackKind.DEVICE_STREAM, TrackKind.COMMUNICATION_GROUP)


def launch_events(trace: Trace) -> Int32Array:
    """Returns the host event row that launched each event, int32, shape (events,); −1 for others and unknown ones.

    Equal ``correlation`` numbers decide (one graph launch may own many tasks; of several host calls with one number
    the innermost is the launch). Tasks without a partner take the source of a flow that ends on them: Level0 captures
    of Ascend have no CANN layer, so there the ``Dequeue`` that ran the framework's operator is the launch, or the
    operator itself (``async_npu``) where it did not go through the task queue.
    """
    result = np.full(len(trace.events), ABSENT, dtype=np.int32)
    host_rows = trace.events_of(*HOST_KINDS)
    device_rows = trace.events_of(*DEVICE_KINDS)
    if len(host_rows) == 0 or len(device_rows) == 0:
        return result
    _fill_by_correlation(trace, host_rows, device_rows, result)
    _fill_by_flow(trace, result)
    return result


def queue_links(trace: Trace) -> tuple[Int32Array, Int32Array]:
    """Returns the task queue's ``(enqueue, dequeue)`` event rows, int32, shape (n,) each."""
    wanted = trace.flows.kind == trace.strings.id_of("async_task_queue")
    wanted &= (trace.flows.source >= 0) & (trace.flows.target >= 0)
    return trace.flows.source[wanted], trace.flows.target[wanted]


def clock_lag_ns(trace: Trace, launch: Int32Array) -> int:
    """Returns by how much the device's clock runs behind the host's at least: no task can start before its launch.

    Ascend's two clocks are joined by the profiler with an error that differs from capture to capture (0 to 79 µs in the
    CNN captures). Differences beyond 1 ms are wrong links, not clocks.

    Args:
        trace: The trace.
        launch: ``launch_events(trace)``.
    """
    tasks = np.flatnonzero(launch != ABSENT)
    early_ns = trace.events.start_ns[launch[tasks]] - trace.events.start_ns[tasks]
    plausible = early_ns[(early_ns > 0) & (early_ns < MAX_CLOCK_LAG_NS)]
    return int(plausible.max()) if len(plausible) else 0


def operator_events(trace: Trace) -> Int32Array:
    """Returns the framework operator's row behind each device task, int32, shape (events,); −1 where unknown.

    The operator is the source of an ``async_npu`` flow, or the nearest enclosing ``cpu_op`` of the launch on its thread
    (``External id`` is not used: in many Kineto files it names a wrong operator).
    """
    launch = launch_events(trace)
    result = np.full(len(trace.events), ABSENT, dtype=np.int32)
    is_operator = _has_category(trace, ("cpu_op", "operator"))
    launched = np.flatnonzero(launch != ABSENT)
    candidate = launch[launched].copy()
    # At most one turn per nesting level; each turn moves every undecided task one level out.
    while True:
        outward = (candidate != ABSENT) & ~is_operator[candidate]
        if not np.any(outward):
            break
        candidate[outward] = trace.events.parent[candidate[outward]]
    result[launched] = candidate
    source, target = _host_to_device_flows(trace)
    direct = is_operator[source]
    result[target[direct]] = source[direct]
    return result


def _fill_by_correlation(trace: Trace, host_rows: Int32Array, device_rows: Int32Array, result: Int32Array) -> None:
    correlation = trace.events.correlation
    host_rows = host_rows[correlation[host_rows] > ABSENT]
    device_rows = device_rows[correlation[device_rows] > ABSENT]
    if len(host_rows) == 0 or len(device_rows) == 0:
        return
    order = np.lexsort((trace.events.start_ns[host_rows], correlation[host_rows]))
    host_rows = host_rows[order]
    known = correlation[host_rows]
    last = np.searchsorted(known, correlation[device_rows], side="right") - 1
    found = (last >= 0) & (known[np.maximum(last, 0)] == correlation[device_rows])
    result[device_rows[found]] = host_rows[last[found]]


def _fill_by_flow(trace: Trace, result: Int32Array) -> None:
    source, target = _host_to_device_flows(trace)
    open_targets = result[target] == ABSENT
    source, target = source[open_targets], target[open_targets]
    # The CANN call is closer to the launch than the operator: written last, it wins.
    order = np.argsort(_on_kinds(trace, (TrackKind.CANN_THREAD,))[source], kind="stable")
    result[target[order]] = _through_queue(trace, source[order])


def _through_queue(trace: Trace, operators: Int32Array) -> Int32Array:
    """Returns for each row the ``Dequeue`` that ran it later (its ``Enqueue`` lies in it), else the row itself."""
    enqueue, dequeue = queue_links(trace)
    queued_as = np.arange(len(trace.events), dtype=np.int32)
    holder = trace.events.parent[enqueue]
    queued_as[holder[holder != ABSENT]] = dequeue[holder != ABSENT]
    return queued_as[operators]


def _host_to_device_flows(trace: Trace) -> tuple[Int32Array, Int32Array]:
    source, target = trace.flows.source, trace.flows.target
    if len(source) == 0:
        return source, target
    wanted = (source >= 0) & (target >= 0)
    wanted &= _on_kinds(trace, HOST_KINDS)[source] & _on_kinds(trace, DEVICE_KINDS)[target]
    return source[wanted], target[wanted]


def _on_kinds(trace: Trace, kinds: tuple[TrackKind, ...]) -> BoolArray:
    """Returns whether each event lies on a track of these kinds, bool, shape (events,)."""
    of_track = np.array([track.kind in kinds for track in trace.tracks], dtype=np.bool_)
    answer: BoolArray = of_track[trace.events.track]
    return answer


def _has_category(trace: Trace, words: tuple[str, ...]) -> BoolArray:
    """Returns whether each event's category is one of ``words`` (lower case), bool, shape (events,)."""
    categories = np.unique(trace.events.category)
    wanted = [category for category in categories.tolist() if trace.strings.text(category).casefold() in words]
    answer: BoolArray = np.isin(trace.events.category, np.array(wanted, dtype=np.int32))
    return answer
