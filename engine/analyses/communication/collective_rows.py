"""Every collective one rank took part in, from whatever its capture offers: tables, device events, host annotations."""

import re
from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity
from engine.core.arrays import Int32Array, Int64Array, UInt8Array
from engine.core.units import NS_PER_US
from engine.trace.builder import take
from engine.trace.intervals import covered_ns, union
from engine.trace.strings import ABSENT
from engine.trace.tables import CollectiveTable
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

INDEXED_NAME = re.compile(r"^(?:hcom_|Hccl)?(?P<operation>[A-Za-z]+)_*__(?P<group>\d+)_(?P<index>\d+)_(?P<part>\d+)$")
"""``hcom_allReduce__612_4_1``: operation, last digits of the group's hash, running number in the group, part."""

_NCCL_NAME = re.compile(r"^(?:nccl|rccl)(?:Dev)?Kernel(?:_Generic)?_(?P<operation>[A-Za-z]+)", re.IGNORECASE)
_HOST_NAME = re.compile(r"^(?:gloo|mpi|ucc):_?(?P<operation>\w+)$")
_LAUNCH_NAME = re.compile(r"^(?:nccl|hccl|rccl|xccl):_?(?P<operation>\w+)$")
"""Annotations of libraries that work on the device: on the host they are launches, never the collective."""
_DISPATCH_NAME = re.compile(r"^c10d::_?(?P<operation>\w+?)_?$")

SENDS = frozenset({"send", "isend"})
RECEIVES = frozenset({"recv", "irecv", "receive"})
POINT_TO_POINT = SENDS | RECEIVES | {"batchsendrecv"}
"""Operations of a sender and a receiver. NCCL's kernel ``SendRecv`` is not here: it runs all-to-all too."""

MAY_LEAVE_EARLY = POINT_TO_POINT | {"broadcast", "reduce", "scatter", "gather"}
"""Operations in which a member may be done before the last one arrived: its data are already under way."""

MAX_ROUNDING_NS = NS_PER_US
"""No format writes times coarser than 1 µs; a larger common divisor of a few starts is chance."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveRows:
    """The collectives of one rank by start. Columns have shape (n,).

    Attributes:
        table: Times, payload and the profiler's own split.
        name: As the capture names it.
        operation: Lower case without separators (``"allreduce"``).
        group: Group id; the last digits of it where only the operator's name tells; "" where unknown.
        shape: What the operation moves as the capture words it, for telling groups apart; "" where unknown.
        on_host: Whether the rows are host annotations, because no device event is a collective.
        rounding_ns: The step in which the starts are written: the error of comparing them.
    """

    table: CollectiveTable
    name: tuple[str, ...]
    operation: tuple[str, ...]
    group: tuple[str, ...]
    shape: tuple[str, ...]
    on_host: bool
    rounding_ns: int

    def __len__(self) -> int:
        return len(self.name)


def collective_rows(trace: Trace, activity: UInt8Array) -> CollectiveRows:
    """Returns the collectives of ``trace``, whose events have the given Activity.

    Rows of the capture's own communication table come first; communication events it does not mention are added.
    Host annotations (``gloo:all_reduce``, or the dispatching ``c10d::allreduce_``) count only where the trace has
    no other collective: beside device kernels they are mere launches.
    """
    extra = _undescribed(trace, np.flatnonzero(activity == Activity.COMMUNICATION).astype(np.int32))
    on_host = len(trace.collectives) + len(extra) == 0
    if on_host:
        extra = _host_events(trace)
    table = _with_events(trace, extra)
    names = trace.strings.texts(table.name)
    groups = trace.strings.texts(table.group)
    return CollectiveRows(
        table=table,
        name=tuple(names),
        operation=tuple(map(operation_of, names)),
        group=tuple(map(_group, groups, names)),
        shape=_shapes(trace, table.event) if on_host else tuple(_sizes(table.bytes)),
        on_host=on_host,
        rounding_ns=_rounding_ns(table.start_ns + (trace.metadata.epoch_ns or 0)),
    )


def operation_of(name: str) -> str:
    """Returns the kind of a collective: ``"allreduce"`` for all the ways of writing it."""
    for pattern in (INDEXED_NAME, _NCCL_NAME, _HOST_NAME, _LAUNCH_NAME, _DISPATCH_NAME):
        found = pattern.match(name)
        if found:
            return found["operation"].replace("_", "").lower()
    return name.replace("_", "").lower()


def _group(recorded: str, name: str) -> str:
    """Returns the recorded group unless the operator's name contradicts it: some tracks are merely titled."""
    found = INDEXED_NAME.match(name)
    return recorded if found is None or (recorded and recorded.endswith(found["group"])) else found["group"]


def _undescribed(trace: Trace, events: Int32Array) -> Int32Array:
    """Returns the communication events that no row of the capture's table stands for and that are no part of one."""
    table = trace.collectives
    events = _outside_whole_operators(trace, np.setdiff1d(events, table.event).astype(np.int32))
    # Table rows without an event name their operators uniquely (a running number is part of the name).
    unplaced = table.name[table.event == ABSENT]
    undescribed: Int32Array = events[~np.isin(trace.events.name[events], unplaced)]
    return undescribed


def _outside_whole_operators(trace: Trace, events: Int32Array) -> Int32Array:
    """Returns ``events`` without the kernels of a collective that a group track shows as a whole.

    HCCL's vector-core algorithms run as kernels (``…AivKernel``) on a stream, beside the operator on its group's track.
    """
    whole = trace.events_of(TrackKind.COMMUNICATION_GROUP)
    start_ns, end_ns = trace.events.start_ns, trace.events.end_ns
    operators = union(start_ns[whole], end_ns[whole])
    length_ns = end_ns[events] - start_ns[events]
    covered = covered_ns(operators, start_ns[events], end_ns[events]) == length_ns
    part = covered & (length_ns > 0) & ~np.isin(events, whole)
    outside: Int32Array = events[~part]
    return outside


def _host_events(trace: Trace) -> Int32Array:
    """Returns the host events that are collectives: the work itself where it is annotated, else its dispatch.

    Where a device library is launched (a group of one rank, or a capture without device rows) there are none.
    """
    host = trace.events_of(TrackKind.HOST_THREAD, TrackKind.CANN_THREAD)
    names = {index: trace.strings.text(index) for index in np.unique(trace.events.name[host]).tolist()}
    works = [index for index, name in names.items() if _HOST_NAME.match(name)]
    launched = any(_LAUNCH_NAME.match(name) for name in names.values())
    dispatches = [] if launched else [index for index, name in names.items() if _DISPATCH_NAME.match(name)]
    found: Int32Array = host[np.isin(trace.events.name[host], works or dispatches)]
    return found


def _with_events(trace: Trace, events: Int32Array) -> CollectiveTable:
    """Returns the capture's table and rows for ``events``, by start."""
    table = trace.collectives
    absent32 = np.full(len(events), ABSENT, dtype=np.int32)
    absent64 = absent32.astype(np.int64)
    added = CollectiveTable(
        event=events,
        name=trace.events.name[events],
        group=_track_groups(trace, events),
        start_ns=trace.events.start_ns[events],
        elapsed_ns=trace.events.duration_ns[events],
        bytes=absent64,
        vendor_transit_ns=absent64,
        vendor_wait_ns=absent64,
        vendor_synchronization_ns=absent64,
        vendor_idle_ns=absent64,
        step=_kernel_steps(trace, events),
    )
    columns = {
        column: np.concatenate((getattr(table, column), getattr(added, column))) for column in CollectiveTable.__slots__
    }
    merged = CollectiveTable(**columns)
    return take(merged, np.argsort(merged.start_ns, kind="stable"))


def _track_groups(trace: Trace, events: Int32Array) -> Int32Array:
    ids = np.array([trace.strings.id_of(track.group) if track.group else ABSENT for track in trace.tracks] or [ABSENT])
    return ids.astype(np.int32)[trace.events.track[events]]


def _kernel_steps(trace: Trace, events: Int32Array) -> Int32Array:
    rows = trace.kernel_row_of_event[events]
    steps = np.full(len(events), ABSENT, dtype=np.int32)
    known = rows >= 0
    steps[known] = trace.kernels.step[rows[known]]
    return steps


def _shapes(trace: Trace, events: Int32Array) -> tuple[str, ...]:
    """Returns the tensor sizes of host collectives; one lookup per collective, of which a host runs few."""
    return tuple(str(trace.arguments(event).get("Input Dims", "")) for event in events.tolist())


def _sizes(size_bytes: Int64Array) -> list[str]:
    return ["" if size < 0 else str(size) for size in size_bytes.tolist()]


def _rounding_ns(absolute_ns: Int64Array) -> int:
    """Returns the grid the starts stand on: 1000 for whole µs, 250 for µs in float64 of epoch size, 1 where none."""
    divisor = int(np.gcd.reduce(absolute_ns)) if len(absolute_ns) > 1 else 1
    return min(max(divisor, 1), MAX_ROUNDING_NS)
