"""Runs a serving scenario."""

from dataclasses import dataclass
from pathlib import Path

from engine.analyses.serving.tables import ServedRun
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.devices.catalogue import topology_of
from engine.runtime.collectives import network_of
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.serving.engine_costs import engine_costs
from engine.workloads.serving.forward import Shard
from engine.workloads.serving.iteration_prices import IterationPrices
from engine.workloads.serving.pricing import iteration_prices, kv_block_count
from engine.workloads.serving.recorded_requests import recorded_requests
from engine.workloads.serving.request_stream import RequestStream, drawn_requests
from engine.workloads.serving.serve import serve
from engine.workloads.serving.settings import Batching, ServingSettings
from engine.workloads.serving.settings_file import OPTIMIZATION_IDS, optimized
from engine.workloads.serving.static_batches import serve_static


@dataclass(frozen=True, slots=True, eq=False)
class ServingResult:
    """A served scenario.

    Attributes:
        scenario: What was run.
        settings: Of the engine, optimizations included.
        shard: What one device has of the model.
        prices: Of its iterations.
        run: Requests, iterations, phases.
    """

    scenario: Scenario
    settings: ServingSettings
    shard: Shard
    prices: IterationPrices
    run: ServedRun

    @property
    def peak_memory_bytes(self) -> int:
        """Weights and the blocks of keys and values in use at most, of one device."""
        steps = self.run.iterations
        blocks = int((steps.kv_blocks + steps.cached_blocks).max(initial=0))
        return self.shard.weight_bytes + blocks * self.settings.block_tokens * self.shard.kv_bytes_per_token


def simulate_serving(
    scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> ServingResult:
    """Serves a scenario's requests on its device and returns what came of it.

    Raises:
        ScenarioError: It asks for something a simulated service cannot do.
        OperationCancelled: Cancelled.
    """
    check_served(scenario)
    settings = optimized(scenario.serving, scenario.optimizations)
    return served_with(scenario, settings, progress, cancel)


def served_with(
    scenario: Scenario,
    settings: ServingSettings,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> ServingResult:
    """Returns a scenario served with settings of one's own: those of the scenario and its optimizations are left out.

    Raises:
        ScenarioError: It asks for something a simulated service cannot do.
        OperationCancelled: Cancelled.
    """
    shard = served_shard(scenario, settings)
    device = scenario.device
    network = network_of(topology_of(device), scenario.devices_per_node)
    prices = iteration_prices(shard, device, network, settings, engine_costs(device))
    blocks = kv_block_count(shard, device, settings)
    stream = requests_of(scenario, settings)
    if settings.batching is Batching.STATIC:
        run = serve_static(stream, settings, prices, blocks, progress, cancel)
    else:
        run = serve(stream, settings, prices, blocks, scenario.seed, progress, cancel)
    return ServingResult(scenario, settings, shard, prices, run)


def served_shard(scenario: Scenario, settings: ServingSettings) -> Shard:
    """Returns what one device of a scenario has of its model."""
    parallel = scenario.parallel
    return Shard(scenario.model, parallel.tensor, parallel.expert, settings.weights)


def requests_of(scenario: Scenario, settings: ServingSettings) -> RequestStream:
    """Returns the requests of a scenario, drawn or read. Raises ScenarioError."""
    asked = settings.requests
    return recorded_requests(Path(asked.file)) if asked.file else drawn_requests(asked, scenario.seed)


def check_served(scenario: Scenario) -> None:
    """Raises ScenarioError for what a simulated service cannot do."""
    if scenario.kind is not WorkloadKind.SERVING:
        raise ScenarioError('kind must be "serving" to serve requests')
    parallel, model = scenario.parallel, scenario.model
    for identifier in scenario.optimizations:
        if identifier not in OPTIMIZATION_IDS:
            known = ", ".join(OPTIMIZATION_IDS)
            raise ScenarioError(f"optimizations: {identifier} does not act on a simulated service; known: {known}")
    if parallel.pipeline > 1 or parallel.context > 1:
        raise ScenarioError("serving: parallel.pipeline and parallel.context must be 1; use tensor and expert")
    if model.heads % parallel.tensor or model.vocab % parallel.tensor:
        raise ScenarioError(f"parallel.tensor = {parallel.tensor} does not divide the heads or the vocabulary")
    if parallel.expert > 1 and (not model.experts or model.experts % parallel.expert):
        raise ScenarioError(f"parallel.expert = {parallel.expert} does not divide the {model.experts} experts")
