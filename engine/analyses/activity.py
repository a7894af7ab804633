"""What each event of a trace is for the device: computing, communication, memory copy, waiting, or nothing.

Names decide what is communication, because every source tags it differently. This is the one place that knows.
"""

import re
from enum import IntEnum

import numpy as np

from engine.analyses.communication_names import communication_names
from engine.core.arrays import AnyArray, BoolArray, Int32Array, UInt8Array
from engine.trace.intervals import Intervals, covered_ns, union
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind


class Activity(IntEnum):
    """The device's kind of work in one event."""

    NONE = 0
    """Not a device task (host, annotation, the profiler's own overlap lanes, tasks inside a collective)."""
    COMPUTING = 1
    COMMUNICATION = 2
    MEMORY = 3
    """Copies and fills."""
    SYNCHRONIZATION = 4
    """Waits, event records, notifications: the stream is held, nothing is computed."""


_UNDECIDED = 254
"""A category nobody described: computing where the capture's kernel table or its Computing lane says so."""
_TRANSFER = 255
"""HCCL's own words for copies on a stream: part of a collective while one runs, a copy otherwise."""

_COMPUTING_CATEGORIES = frozenset(
    (
        *("ai_core", "ai_vector_core", "mix_aic", "mix_aiv", "ai_cpu", "dsa_sqe"),
        *("kernel_aicore", "kernel_aivec", "kernel_aicpu", "kernel_mix_aic", "kernel_mix_aiv"),
        *("kernel", "hpu_op", "mtia_ccp_events"),
    )
)
"""Accelerator cores of Ascend's tables and Task Types, and what Kineto calls a kernel. DSA (random masks) computes."""
_COMMUNICATION_CATEGORIES = frozenset(("hccl", "communication", "collective_comm"))
_MEMORY_CATEGORIES = frozenset(
    (
        *("gpu_memcpy", "gpu_memset", "memcpy", "memset", "memcpy_async", "memset_async"),
        *("memcpy_async_sqe", "pcie_dma_sqe", "sdma_sqe", "dma_sqe"),
    )
)
_UNSPECIFIC_CATEGORIES = frozenset(("", "n/a", "other"))
"""Level0 tables have no cores, and CANN 7 calls every task ``Other``: there the name decides, else it computes."""
_ROUNDING_NS = 2
"""Bounds of a collective and of its transfers are rounded apart."""
_HCCL_TRANSFERS = frozenset(("sdma", "rdma", "rdmasend", "reduce", "reduce_inline", "reduce_async"))
_SYNCHRONIZATION = re.compile(
    r"^(?:cuda_sync|xpu_sync)$|^event[ _](?:record|wait|reset|sync)|^notify[ _](?:wait|record|reset)|^write[ _]value"
    r"|^(?:stream|event|context|device)[ _]sync|^stream[ _]wait[ _]event|^capture_(?:record|wait)"
)
_NOT_WORK = re.compile(r"^profiling_(?:en|dis)able|^gpu_user_annotation$|^overhead$|^cuda_profiler_range$|^annotation$")
_MEMORY_NAME = re.compile(r"^memcpy_async\b|^memset_async\b|^memcpy (?:dtod|dtoh|htod|ptop)|^memset \(")


def activities(trace: Trace) -> UInt8Array:
    """Returns the Activity of every event, uint8, shape (events,).

    Decided by track kind, category and name, each text once; only HCCL's transfers on device streams need the time:
    those inside a collective belong to it and are NONE, so nothing is counted twice. Events far outside the trace's
    time range (one stray ``ts: 0``) are NONE as well: with them the device would be idle for years.
    """
    events = trace.events
    result = np.zeros(len(events), dtype=np.uint8)
    collective_rows = trace.events_of(TrackKind.COMMUNICATION_GROUP)
    result[collective_rows] = Activity.COMMUNICATION
    device_rows = trace.events_of(TrackKind.DEVICE_STREAM)
    result[device_rows] = _by_category_and_name(trace, device_rows)
    transfers = np.flatnonzero(result == _TRANSFER)
    if len(transfers):
        inside = _inside(trace, transfers, collective_rows)
        result[transfers] = np.where(inside, Activity.NONE, Activity.MEMORY)
    undecided = np.flatnonzero(result == _UNDECIDED)
    if len(undecided):
        computes = trace.kernel_row_of_event[undecided] != ABSENT
        computes |= _inside(trace, undecided, _computing_lane(trace))
        result[undecided] = np.where(computes, Activity.COMPUTING, Activity.NONE)
    result[_far_outside(trace)] = Activity.NONE
    return result


def activity_intervals(trace: Trace, kinds: UInt8Array, activity: Activity) -> Intervals:
    """Returns the union of the events whose entry in ``kinds`` (uint8, shape (events,)) is ``activity``."""
    rows = np.flatnonzero(kinds == activity)
    start_ns = trace.events.start_ns[rows]
    return union(start_ns, start_ns + trace.events.duration_ns[rows])


def _by_category_and_name(trace: Trace, rows: Int32Array) -> UInt8Array:
    """Returns uint8 verdicts for rows on device streams, shape of ``rows``."""
    verdicts = np.full(len(rows), _UNDECIDED, dtype=np.uint8)
    communicates = np.concatenate(([False], communication_names(trace.strings)))
    category, name = trace.events.category[rows] + 1, trace.events.name[rows] + 1
    # One turn per category a source uses: a dozen.
    for category_id in np.flatnonzero(np.bincount(category)).tolist():
        chosen = category == category_id
        kind = trace.strings.text(category_id - 1).strip().casefold()
        if kind in _MEMORY_CATEGORIES:
            verdicts[chosen] = Activity.MEMORY
        elif kind in _COMMUNICATION_CATEGORIES:
            verdicts[chosen] = Activity.COMMUNICATION
        elif kind in _COMPUTING_CATEGORIES:
            by_name = np.where(communicates[name[chosen]], Activity.COMMUNICATION, Activity.COMPUTING)
            verdicts[chosen] = by_name
        else:
            verdicts[chosen] = _by_name(trace, kind, name[chosen] - 1, communicates)
    return verdicts


def _by_name(trace: Trace, kind: str, name: Int32Array, communicates: BoolArray) -> UInt8Array:
    """Returns verdicts for tasks of a category that leaves the decision to the name, shape of ``name``."""
    distinct, inverse = np.unique(name, return_inverse=True)
    # One turn per distinct name of such tasks: copies, waits, records, and kernels of tables without types.
    verdicts = [_verdict(kind, trace.strings.text(item), bool(communicates[item + 1])) for item in distinct.tolist()]
    decided: UInt8Array = np.array(verdicts, dtype=np.uint8)[inverse]
    return decided


def _verdict(kind: str, name: str, communicates: bool) -> int:
    """Returns the Activity (or _TRANSFER, _UNDECIDED) of a task of a category that says little, on a device stream."""
    word = name.strip().casefold()
    if _NOT_WORK.match(kind) or _NOT_WORK.match(word):
        return Activity.NONE
    if _SYNCHRONIZATION.match(kind) or _SYNCHRONIZATION.match(word):
        return Activity.SYNCHRONIZATION
    if communicates:
        return Activity.COMMUNICATION
    if kind in _HCCL_TRANSFERS:
        return _TRANSFER
    if _MEMORY_NAME.match(word):
        return Activity.MEMORY
    return Activity.COMPUTING if kind in _UNSPECIFIC_CATEGORIES else _UNDECIDED


def _far_outside(trace: Trace) -> BoolArray:
    outside: BoolArray = trace.events.start_ns < trace.time_range.start_ns
    outside |= trace.events.start_ns > trace.time_range.end_ns
    return outside


def _computing_lane(trace: Trace) -> Int32Array:
    rows = trace.events_of(TrackKind.OVERLAP)
    lane: Int32Array = rows[trace.events.name[rows] == trace.strings.id_of("Computing")]
    return lane


def _inside(trace: Trace, rows: AnyArray, outer_rows: Int32Array) -> BoolArray:
    """Returns which rows lie wholly inside the union of the outer ones, bool, shape of ``rows``."""
    start_ns, end_ns = trace.events.start_ns, trace.events.end_ns
    outer = union(start_ns[outer_rows], end_ns[outer_rows])
    covered = covered_ns(outer, start_ns[rows], end_ns[rows])
    inside: BoolArray = covered >= trace.events.duration_ns[rows] - _ROUNDING_NS
    return inside
