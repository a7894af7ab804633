"""What the communication optimizations of a scenario ask for, read once and checked."""

from dataclasses import dataclass

from engine.core.errors import ScenarioError
from engine.devices.catalogue import topology_of
from engine.runtime.collectives import Algorithm, Network, network_of
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_keys import Table

OVERLAP, CHUNKING, ALGORITHM = (f"communication.{name}" for name in ("overlap_gradients", "chunking", "algorithm"))
TOP_K, QUANTIZED = "communication.topk_compression", "communication.quantized_gradients"
STREAMS, MC2 = "host.streams", "fusion.matmul_all_reduce"
FULL_BITS = 32
"""Of a main gradient."""
DEFAULT_RATIO = 0.01
"""Share of gradients that are sent (assumed: 0.1 to 1 % is usual in the literature on sparse gradients)."""
DEFAULT_CHUNKS = 4
"""Between the 2, 4 and 8 MindSpeed offers as --coc-parallel-num."""
MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class CommunicationSettings:
    """How a job communicates, beside the overlaps that have no parameter.

    Attributes:
        bucket_bytes: Gradients that are exchanged together while the backward pass runs; 0 for those of one layer.
        sent_ratio: Share of the gradients each replica sends, 1 for all.
        error_feedback: What is not sent is kept and added to the gradients of the next step.
        gradient_bits: Bits of a gradient on the wire.
        chunks: Pieces in which transfers of tensor groups run beside their products; 1 for whole.
        one_queue: Transfers of layers and exchanges of replicas stand in one queue.
    """

    bucket_bytes: int = 0
    sent_ratio: float = 1.0
    error_feedback: bool = False
    gradient_bits: int = FULL_BITS
    chunks: int = 1
    one_queue: bool = False

    @property
    def compresses(self) -> bool:
        """Whether gradients are changed before they are exchanged."""
        return self.sent_ratio < 1.0 or self.gradient_bits < FULL_BITS


def communication_settings(scenario: Scenario) -> CommunicationSettings:
    """Returns how a scenario communicates. Raises ScenarioError for a parameter that does not fit."""
    _refuse(scenario, TOP_K, QUANTIZED, "both change what the replicas exchange")
    _refuse(scenario, CHUNKING, MC2, "MC2 hides a product's transfer already")
    sent_ratio, error_feedback = _top_k(scenario)
    return CommunicationSettings(
        bucket_bytes=_integer(scenario, OVERLAP, "bucket_bytes", 0, 0, 1 << 40),
        sent_ratio=sent_ratio,
        error_feedback=error_feedback,
        gradient_bits=_gradient_bits(scenario),
        chunks=_integer(scenario, CHUNKING, "chunks", DEFAULT_CHUNKS, 1, MOST_CHUNKS, absent=1),
        one_queue=_integer(scenario, STREAMS, "count", 2, 1, 8) == 1,
    )


def job_network(scenario: Scenario) -> Network:
    """Returns the links of a scenario with the algorithm its collectives use. Raises ScenarioError."""
    network = network_of(topology_of(scenario.device), scenario.devices_per_node)
    if not scenario.enabled(ALGORITHM):
        return network
    table = _table(scenario, ALGORITHM)
    name = table.word("name", ("auto", *(item.value for item in Algorithm)), "auto")
    table.finish()
    return network.using(None if name == "auto" else Algorithm(name))


def _table(scenario: Scenario, identifier: str) -> Table:
    return Table(f"optimizations.{identifier}", scenario.optimizations[identifier])


def _refuse(scenario: Scenario, one: str, other: str, reason: str) -> None:
    if scenario.enabled(one) and scenario.enabled(other):
        raise ScenarioError(f"optimizations: {one} and {other} exclude each other: {reason}; switch one of them off")


def _integer(
    scenario: Scenario, identifier: str, key: str, default: int, least: int, most: int, *, absent: int | None = None
) -> int:
    """Returns the one parameter of an optimization; ``absent`` (else the default) where it is not switched on."""
    if not scenario.enabled(identifier):
        return default if absent is None else absent
    table = _table(scenario, identifier)
    value = table.integer(key, default, minimum=least)
    table.finish()
    if value > most:
        raise table.wrong(key, f"is {value}; it must be at most {most}")
    return value


def _top_k(scenario: Scenario) -> tuple[float, bool]:
    if not scenario.enabled(TOP_K):
        return 1.0, False
    table = _table(scenario, TOP_K)
    ratio, feedback = table.number("ratio", DEFAULT_RATIO), table.flag("error_feedback", True)
    table.finish()
    if not 0.0 < ratio < 1.0:
        raise table.wrong("ratio", f"is {ratio:g}; it must be above 0 and below 1: the share of gradients that is sent")
    return ratio, feedback


def _gradient_bits(scenario: Scenario) -> int:
    if not scenario.enabled(QUANTIZED):
        return FULL_BITS
    table = _table(scenario, QUANTIZED)
    bits = table.integer("bits", 16)
    table.finish()
    if bits not in (8, 16):
        raise table.wrong("bits", f"is {bits}; it must be 16 or 8")
    return bits
