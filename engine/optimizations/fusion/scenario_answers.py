"""Whether a fusion does something to a simulated job: already on, no such operators, or how many it replaces."""

from collections.abc import Callable
from typing import TypeAlias

from engine.optimizations.answers import already_listed, already_on, applies, no_effect
from engine.optimizations.interface import Applicability, Parameters, ScenarioCheck
from engine.workloads.scenario import Scenario, WorkloadKind

Answer: TypeAlias = Callable[[Scenario], Applicability | None]
"""An answer of one fusion's own, None where it has nothing against it."""


def fusion_check(optimization_id: str, replaced: Callable[[Scenario], str], *answers: Answer) -> ScenarioCheck:
    """Returns the check of a fusion the lowering of a training step acts on.

    Args:
        optimization_id: What is switched on.
        replaced: What is replaced, with a number.
        *answers: Asked in order; the first that answers decides.
    """

    def check(scenario: Scenario, parameters: Parameters) -> Applicability:
        del parameters
        listed = already_listed(scenario, optimization_id)
        if listed is not None:
            return listed
        if scenario.kind is not WorkloadKind.TRAINING:
            return no_effect("simulated serving prices layers as inference engines run them, fused")
        for answer in answers:
            found = answer(scenario)
            if found is not None:
                return found
        return applies(replaced(scenario))

    return check


def shipped_on_cuda(what: str) -> Answer:
    """Returns an answer that says a CUDA job runs with it: Megatron-LM has always shipped these kernels."""

    def answer(scenario: Scenario) -> Applicability | None:
        if scenario.device.vendor == "NVIDIA":
            return already_on(f"Megatron-LM's CUDA kernels {what}")
        return None

    return answer


def only_gated(otherwise: str) -> Answer:
    """Returns an answer that rules out models of the GPT family, which have no gate, RMSNorm or rotary positions."""

    def answer(scenario: Scenario) -> Applicability | None:
        return None if scenario.model.gated else no_effect(f"{scenario.model.id} {otherwise}")

    return answer


def layer_passes(scenario: Scenario) -> int:
    """Returns how often a layer runs forward in a step of one replica."""
    return scenario.model.layers * scenario.micro_batch_count
