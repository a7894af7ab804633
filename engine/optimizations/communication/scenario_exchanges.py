"""What a simulated job exchanges: the numbers behind the checks of communication optimizations."""

from engine.optimizations.answers import no_effect
from engine.optimizations.interface import Applicability
from engine.workloads.parameters import MAIN_GRADIENT_BYTES, replica_count, stage_weights
from engine.workloads.scenario import Scenario


def exchanging_replicas(scenario: Scenario) -> int:
    """Returns how many ranks reduce gradients with each other, 1 where nobody does."""
    return max(replica_count(scenario.parallel, is_expert) for is_expert in (False, True))


def gradient_bytes(scenario: Scenario) -> int:
    """Returns the fp32 gradients the fullest stage's ranks reduce with other replicas per step."""
    by_stage = []
    for stage in range(scenario.parallel.pipeline):
        counts = (
            tensor.element_count
            for tensor in stage_weights(scenario.model, scenario.parallel, stage)
            if replica_count(scenario.parallel, tensor.is_expert) > 1
        )
        by_stage.append(sum(counts) * MAIN_GRADIENT_BYTES)
    return max(by_stage)


def tensor_transfers_per_step(scenario: Scenario) -> int:
    """Returns how many tensor-parallel collectives a rank of one stage takes part in per step, about.

    With sequence parallelism both halves of a layer gather and scatter, forward and backward, and gather their inputs
    once more for the gradients of weights (4 + 4 + 2); without it every half reduces once in each direction.
    """
    per_layer = 10 if scenario.parallel.sequence_parallel else 4
    return per_layer * (scenario.model.layers // scenario.parallel.pipeline) * scenario.micro_batch_count


def no_replicas(scenario: Scenario) -> Applicability | None:
    """Returns that no gradients are exchanged, None where they are."""
    if exchanging_replicas(scenario) > 1:
        return None
    return no_effect("one replica (data = 1): no gradients are exchanged")


def no_tensor_group(scenario: Scenario) -> Applicability | None:
    """Returns that no layer is shared between devices, None where one is."""
    if scenario.parallel.tensor > 1:
        return None
    return no_effect("every device holds whole layers (tensor = 1): no transfer stands between products")
