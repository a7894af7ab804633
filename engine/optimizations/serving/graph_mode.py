"""Whether replaying graphs does something to a service: only iterations that decode alone replay one."""

import numpy as np

from engine.core.number_format import format_duration_ns
from engine.devices.catalogue import topology_of
from engine.optimizations.answers import already_on, applies, no_effect
from engine.optimizations.interface import Applicability, Parameters
from engine.optimizations.serving.service import mean_answer, service_of
from engine.runtime.collectives import network_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.engine_costs import engine_costs
from engine.workloads.serving.iteration_prices import along
from engine.workloads.serving.pricing import iteration_prices
from engine.workloads.serving.settings import Batching
from engine.workloads.serving.simulate import served_shard


def check_served_graph_mode(scenario: Scenario, parameters: Parameters) -> Applicability:
    """Returns whether graph mode does something to a service, judged by an iteration of one sequence.

    Args:
        scenario: A service.
        parameters: None.
    """
    del parameters
    settings = service_of(scenario)
    if settings.graph_mode:
        return already_on("decoding replays captured graphs")
    if mean_answer(settings) == 1.0 and settings.batching is Batching.CONTINUOUS:
        return no_effect("answers are one token: nothing but prompts is computed, and graphs are of decoding")
    device = scenario.device
    network = network_of(topology_of(device), scenario.devices_per_node)
    prices = iteration_prices(served_shard(scenario, settings), device, network, settings, engine_costs(device))
    # An iteration of one sequence is the shortest there is: without attention, whose time only adds to the device's.
    device_ns = float(along(prices.tokens, prices.linear_ns, 1.0)) + float(np.asarray(prices.head_ns)[0])
    if device_ns >= prices.eager_host_ns:
        return no_effect(
            f"the device takes {format_duration_ns(device_ns)} for one token and the host dispatches it in "
            f"{format_duration_ns(prices.eager_host_ns)}: the host is ahead"
        )
    return applies(
        f"dispatching an iteration costs the host {format_duration_ns(prices.eager_host_ns)}, one token the device "
        f"{format_duration_ns(device_ns)}"
    )
