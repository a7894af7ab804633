"""What is known of one event: read and computed in a thread, without Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.core.errors import EngineError

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.core.arrays import Int32Array, Int64Array, UInt8Array
    from engine.trace import Trace
    from engine.trace.intervals import Intervals

MAX_LINKS = 20
"""Events listed one by one; the rest is counted."""


class EventIndex:
    """Columns over all events of a trace that facts are looked up in, each computed when first asked for.

    Belongs to the one thread that computes facts.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def launch(self) -> Int32Array:
        """int32, shape (events,): the host event that launched each event, or −1."""
        from engine.analyses.launches import launch_events

        return launch_events(self.trace)

    @cached_property
    def operator(self) -> Int32Array:
        """int32, shape (events,): the framework operator behind each device task, or −1."""
        from engine.analyses.launches import operator_events

        return operator_events(self.trace)

    @cached_property
    def activity(self) -> UInt8Array:
        """uint8, shape (events,): see ``engine.analyses.activity``."""
        from engine.analyses.activity import activities

        return activities(self.trace)

    @cached_property
    def computing(self) -> Intervals:
        """When the device computed."""
        from engine.analyses.device import device_work

        return device_work(self.trace, self.activity).computing


@dataclass(frozen=True, slots=True, eq=False)
class EventFacts:
    """One event.

    Attributes:
        event: Its row.
        self_ns: Duration less that of direct children.
        child_count: Direct children.
        launch: The host event that launched it, or −1.
        operator: The framework operator behind it, or −1.
        tasks: Device tasks launched by it or inside it, by start, MAX_LINKS at most.
        task_count: All of them.
        task_ns: Sum of their durations.
        incoming: (flow kind, other event), MAX_LINKS at most.
        outgoing: The same.
        flow_count: All arrows that begin or end here.
        exposed_ns: For communication: not covered by computing; None for everything else.
        allocations: Rows of blocks allocated by it or inside it, MAX_LINKS at most, the largest first.
        allocation_count: All of them.
        allocated_bytes: Their sum.
        arguments: As the source has them.
        arguments_error: Why they could not be read, "" where they could.
    """

    event: int
    self_ns: int
    child_count: int
    launch: int
    operator: int
    tasks: tuple[int, ...]
    task_count: int
    task_ns: int
    incoming: tuple[tuple[str, int], ...]
    outgoing: tuple[tuple[str, int], ...]
    flow_count: int
    exposed_ns: int | None
    allocations: tuple[int, ...]
    allocation_count: int
    allocated_bytes: int
    arguments: Mapping[str, Any]
    arguments_error: str


def event_facts(index: EventIndex, event: int) -> EventFacts:
    """Returns everything known of an event."""
    trace = index.trace
    events = trace.events
    family = _family(trace, event)
    children = family[events.parent[family] == event]
    tasks = _tasks(index, event, family)
    tasks = tasks[np.argsort(events.start_ns[tasks], kind="stable")]
    blocks = np.flatnonzero(np.isin(trace.memory.allocations.event, family))
    blocks = blocks[np.argsort(-trace.memory.allocations.size_bytes[blocks], kind="stable")]
    incoming, outgoing, flow_count = _flows(trace, event)
    arguments, arguments_error = _arguments(trace, event)
    return EventFacts(
        event=event,
        self_ns=max(int(events.duration_ns[event]) - int(events.duration_ns[children].sum()), 0),
        child_count=len(children),
        launch=int(index.launch[event]),
        operator=int(index.operator[event]),
        tasks=tuple(tasks[:MAX_LINKS].tolist()),
        task_count=len(tasks),
        task_ns=int(events.duration_ns[tasks].sum()),
        incoming=incoming,
        outgoing=outgoing,
        flow_count=flow_count,
        exposed_ns=_exposed_ns(index, event),
        allocations=tuple(blocks[:MAX_LINKS].tolist()),
        allocation_count=len(blocks),
        allocated_bytes=int(trace.memory.allocations.size_bytes[blocks].sum()),
        arguments=arguments,
        arguments_error=arguments_error,
    )


def _family(trace: Trace, event: int) -> Int64Array:
    """Returns the event and everything nested in it: rows of its track are sorted by start, so it stands close by."""
    events = trace.events
    stop = trace.track_slices[int(events.track[event])].stop
    end_ns = int(events.start_ns[event]) + int(events.duration_ns[event])
    last = event + int(np.searchsorted(events.start_ns[event:stop], end_ns, side="left"))
    rows = np.arange(event, max(last, event + 1))
    inside = (events.end_ns[rows] <= end_ns) & (events.depth[rows] > events.depth[event])
    inside[0] = True
    family: Int64Array = rows[inside]
    return family


def _tasks(index: EventIndex, event: int, family: Int64Array) -> Int64Array:
    from engine.analyses.launches import HOST_KINDS

    if index.trace.tracks[int(index.trace.events.track[event])].kind not in HOST_KINDS:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.isin(index.launch, family) | np.isin(index.operator, family))


def _flows(trace: Trace, event: int) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...], int]:
    flows = trace.flows
    incoming, outgoing = np.flatnonzero(flows.target == event), np.flatnonzero(flows.source == event)

    def named(rows: Int64Array, others: Int32Array) -> tuple[tuple[str, int], ...]:
        shown = rows[:MAX_LINKS]
        return tuple(zip(trace.strings.texts(flows.kind[shown]), others[shown].tolist(), strict=True))

    return named(incoming, flows.source), named(outgoing, flows.target), len(incoming) + len(outgoing)


def _exposed_ns(index: EventIndex, event: int) -> int | None:
    from engine.analyses.activity import Activity
    from engine.trace.intervals import covered_ns

    if index.activity[event] != Activity.COMMUNICATION:
        return None
    start_ns = index.trace.events.start_ns[event : event + 1]
    duration_ns = index.trace.events.duration_ns[event : event + 1]
    return int(duration_ns[0] - covered_ns(index.computing, start_ns, start_ns + duration_ns)[0])


def _arguments(trace: Trace, event: int) -> tuple[Mapping[str, Any], str]:
    try:
        return trace.arguments(event), ""
    except (EngineError, OSError, ValueError) as error:  # the file was moved, or is another one now
        return {}, str(error)
