"""The scenario a run acts on: what optimizations say about fields the scenario has anyway is written into them."""

from dataclasses import replace

from engine.workloads.precision import with_mixed_precision
from engine.workloads.relayout import with_layout
from engine.workloads.scenario import Recompute, Scenario
from engine.workloads.scenario_keys import Table

RECOMPUTE = "memory.recompute"


def acting_scenario(scenario: Scenario) -> Scenario:
    """Returns the scenario with the layout, the element type and the recomputation its optimizations ask for.

    Raises:
        ScenarioError: A parameter that does not fit.
    """
    return _with_recompute(with_mixed_precision(with_layout(scenario)))


def _with_recompute(scenario: Scenario) -> Scenario:
    if not scenario.enabled(RECOMPUTE):
        return scenario
    table = Table(f"optimizations.{RECOMPUTE}", scenario.optimizations[RECOMPUTE])
    granularity = table.choice("granularity", Recompute, Recompute.FULL)
    table.finish()
    rest = {name: values for name, values in scenario.optimizations.items() if name != RECOMPUTE}
    memory = replace(scenario.memory, recompute=granularity)
    return replace(scenario, memory=memory, optimizations=rest)
