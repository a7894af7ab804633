"""Every device gap of at least 20 µs, with one cause."""

from dataclasses import dataclass

from engine.analyses.activity import activities
from engine.analyses.idle.device_gaps import device_gaps
from engine.analyses.idle.from_allocations import causes_from_allocations
from engine.analyses.idle.from_host import causes_from_host
from engine.analyses.idle.verdicts import IdleCause
from engine.analyses.launches import HOST_KINDS, launch_events
from engine.trace.trace import Trace

__all__ = ["MIN_GAP_NS", "IdleCause", "IdleGap", "idle_gaps"]

MIN_GAP_NS = 20_000


@dataclass(frozen=True, slots=True)
class IdleGap:
    """One stretch in which no device work ran.

    Attributes:
        start_ns: From the trace start.
        end_ns: First ns of the next work.
        cause: Why.
        evidence: Event row that shows it (the late launch, the synchronising call), or −1.
        next_event: The device task that ended the gap, or −1.
    """

    start_ns: int
    end_ns: int
    cause: IdleCause
    evidence: int
    next_event: int


def idle_gaps(trace: Trace) -> tuple[IdleGap, ...]:
    """Returns the gaps in the union of device work, in order.

    The rules stand in ``idle_from_host`` and, for captures without host rows, in ``idle_from_allocations``. A capture
    without device streams has no gaps: what ran between its collectives is not known.
    """
    kinds = activities(trace)
    launch = launch_events(trace)
    gaps = device_gaps(trace, kinds, launch, MIN_GAP_NS)
    if len(trace.events_of(*HOST_KINDS)):
        verdicts = causes_from_host(trace, gaps, kinds, launch)
    else:
        verdicts = causes_from_allocations(trace, gaps)
    columns = (gaps.start_ns, gaps.end_ns, verdicts.evidence, gaps.next_event)
    # One object per gap, not per event.
    return tuple(
        IdleGap(start_ns, end_ns, cause, evidence, next_event)
        for cause, start_ns, end_ns, evidence, next_event in zip(
            verdicts.causes(), *(column.tolist() for column in columns), strict=True
        )
    )
