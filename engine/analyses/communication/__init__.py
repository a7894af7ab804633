"""Collectives: payload, waiting and transfer, the late rank, and what could be hidden."""

from engine.analyses.communication.collectives import SlowRank
from engine.analyses.communication.job_communication import (
    Arrival,
    Collective,
    JobCommunication,
    LinkStatistic,
    communication,
    split_waiting,
)

__all__ = [
    "Arrival",
    "Collective",
    "JobCommunication",
    "LinkStatistic",
    "SlowRank",
    "communication",
    "split_waiting",
]
