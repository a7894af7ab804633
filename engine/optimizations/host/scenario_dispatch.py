"""Whether the host of a simulated job is ahead of its devices, from the prices of one layer."""

from dataclasses import dataclass

import numpy as np

from engine.core.number_format import format_duration_ns
from engine.optimizations.answers import no_effect
from engine.optimizations.interface import Applicability
from engine.workloads.acting import acting_scenario
from engine.workloads.communication_settings import job_network
from engine.workloads.host_dispatch import dispatching_device
from engine.workloads.layers import layer_backward, layer_forward
from engine.workloads.program import lowering_of
from engine.workloads.scenario import Scenario
from engine.workloads.templates import Machine, priced

AHEAD_RATIO = 0.5
"""A host that dispatches a layer in less than half the device's time is ahead whatever a pass begins with."""


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """One layer, forward and backward.

    Attributes:
        operators: How many.
        host_ns: To dispatch them.
        device_ns: To run them.
    """

    operators: int
    host_ns: int
    device_ns: int


def layer_times(scenario: Scenario) -> LayerTimes:
    """Returns what a layer costs the host and the device for sequences of the mean length. Raises ScenarioError."""
    acting = acting_scenario(scenario)
    split = acting.parallel.context * (acting.parallel.tensor if acting.parallel.sequence_parallel else 1)
    length = max(round(acting.batch.lengths.mean / split), 1) * split
    low = lowering_of(acting, np.array([length], dtype=np.int64))
    machine = Machine(dispatching_device(acting), job_network(acting), acting.parallel)
    window = acting.model.window_of(0)
    blocks = [priced(block(low, window), machine, 1) for block in (layer_forward, layer_backward)]
    return LayerTimes(
        operators=sum(len(block.host_ns) for block in blocks),
        host_ns=sum(int(block.host_ns.sum()) for block in blocks),
        device_ns=sum(int(block.device_ns[:, 0].sum()) for block in blocks),
    )


def host_is_ahead(times: LayerTimes) -> Applicability | None:
    """Returns that less host time would win nothing, None where it may."""
    if times.host_ns >= AHEAD_RATIO * times.device_ns:
        return None
    return no_effect(
        f"the host is ahead of the device: the {times.operators} operators of a layer cost it "
        f"{format_duration_ns(times.host_ns)}, the device {format_duration_ns(times.device_ns)}"
    )
