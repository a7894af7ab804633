"""Which event or range comes next: pure questions to a trace."""

import numpy as np

from engine.trace import Trace


def neighbour_on_lane(trace: Trace, event: int, *, forward: bool) -> int | None:
    """Returns the next (or previous) event of the same track and depth; None at the end."""
    events = trace.events
    part = trace.track_slices[int(events.track[event])]
    depth = events.depth[event]
    if forward:
        found = np.flatnonzero(events.depth[event + 1 : part.stop] == depth)
        return event + 1 + int(found[0]) if len(found) else None
    found = np.flatnonzero(events.depth[part.start : event] == depth)
    return part.start + int(found[-1]) if len(found) else None


def first_event_in(trace: Trace, start_ns: int, end_ns: int) -> int | None:
    """Returns the event that starts first in a range; None where none does."""
    starts_ns = trace.events.start_ns
    inside = np.flatnonzero((starts_ns >= start_ns) & (starts_ns < end_ns))
    return int(inside[np.argmin(starts_ns[inside])]) if len(inside) else None


def along_flow(trace: Trace, event: int, *, forward: bool) -> int | None:
    """Returns the other end of the event's outgoing (or incoming) arrow, the nearest in time; None without any."""
    flows = trace.flows
    here, there = (flows.source, flows.target) if forward else (flows.target, flows.source)
    ends = there[here == event]
    if len(ends) == 0:
        return None
    distance_ns = np.abs(trace.events.start_ns[ends] - trace.events.start_ns[event])
    return int(ends[int(np.argmin(distance_ns))])
