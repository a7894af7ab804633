"""Short ways to say whether an optimization does something, and the plain scenario change most of them share."""

from dataclasses import replace

from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Parameters,
    ScenarioChange,
    Verdict,
)
from engine.workloads.scenario import Scenario


def applies(reason: str) -> Applicability:
    """Returns that it does something."""
    return Applicability(Verdict.APPLIES, reason)


def no_effect(reason: str) -> Applicability:
    """Returns that it would change nothing."""
    return Applicability(Verdict.NO_EFFECT, reason)


def already_on(reason: str) -> Applicability:
    """Returns that the job runs with it."""
    return Applicability(Verdict.ALREADY_ON, reason)


def already_listed(scenario: Scenario, optimization_id: str) -> Applicability | None:
    """Returns that the scenario lists an optimization, None where it does not."""
    return already_on("the scenario switches it on") if scenario.enabled(optimization_id) else None


def needs_twin(reason: str) -> Applicability:
    """Returns that a capture alone cannot answer."""
    return Applicability(Verdict.NEEDS_TWIN, f"{reason}; make one with: cannscope twin PATH -o twin.toml")


def unknown(reason: str) -> Applicability:
    """Returns that something is missing."""
    return Applicability(Verdict.UNKNOWN, reason)


def switched_on(optimization_id: str) -> ScenarioChange:
    """Returns the change that lists an optimization in the scenario: lowering and runtime act on it."""

    def change(scenario: Scenario, parameters: Parameters) -> Scenario:
        chosen = {**scenario.optimizations, optimization_id: dict(parameters)}
        return replace(scenario, optimizations=chosen)

    return change


def capture_unchanged(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    """The change of an optimization no capture can answer; never called, since its check never says APPLIES."""
    del parameters, bound
    return plan
