"""Switching optimizations on in a scenario, one after another."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.errors import ScenarioError
from engine.optimizations.interface import Applicability, Verdict
from engine.optimizations.selection import Enabled, Refusal
from engine.workloads.run_state import check_simulated
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.scenario_checks import check_scenario
from engine.workloads.serving.simulate import check_served


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioChanges:
    """A scenario with optimizations switched on.

    Attributes:
        scenario: With everything that applies.
        applied: What was switched on, in order.
        applicability: Of each that was asked for, by id, as things stood at its turn.
        refused: What cannot be.
    """

    scenario: Scenario
    applied: tuple[Enabled, ...]
    applicability: dict[str, Applicability]
    refused: tuple[Refusal, ...]


def changed(scenario: Scenario, chosen: Sequence[Enabled]) -> ScenarioChanges:
    """Returns a scenario with ``chosen`` switched on in that order, without those that would change nothing."""
    applied: list[Enabled] = []
    applicability: dict[str, Applicability] = {}
    refused: list[Refusal] = []
    for item in chosen:
        try:
            verdict = item.optimization.check_scenario(scenario, item.parameters)
            applicability[item.id] = verdict
            if verdict.verdict is not Verdict.APPLIES:
                continue
            candidate = item.optimization.on_scenario(scenario, item.parameters)
            check_scenario(candidate)
            (check_served if candidate.kind is WorkloadKind.SERVING else check_simulated)(candidate)
        except ScenarioError as error:
            refused.append(Refusal(item.id, str(error)))
            continue
        scenario = candidate
        applied.append(item)
    return ScenarioChanges(scenario, tuple(applied), applicability, tuple(refused))
