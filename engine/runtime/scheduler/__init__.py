"""When every task of a graph runs: queues, predecessors, meetings of ranks, and transfers that slow computing."""

from engine.runtime.scheduler.interference import contention, memory_contention, uniform_slowdown
from engine.runtime.scheduler.meetings import MeetingFault, Meetings, find_meetings
from engine.runtime.scheduler.schedule import Schedule, schedule

__all__ = [
    "MeetingFault",
    "Meetings",
    "Schedule",
    "contention",
    "find_meetings",
    "memory_contention",
    "schedule",
    "uniform_slowdown",
]
