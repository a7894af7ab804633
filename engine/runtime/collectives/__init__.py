"""How long collectives take on the links a group can really use."""

from engine.runtime.collectives.algorithms import Algorithm
from engine.runtime.collectives.durations import collective_durations, point_to_point_durations
from engine.runtime.collectives.network import LinkTiming, Network, network_of

__all__ = [
    "Algorithm",
    "LinkTiming",
    "Network",
    "collective_durations",
    "network_of",
    "point_to_point_durations",
]
