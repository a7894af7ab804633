"""The scenario a run acts on: what optimizations say about fields the scenario has anyway is written into them."""

from dataclasses import replace

from engine.workloads.precision import with_mixed_precision
from engine.workloads.relayout import with_layout
from engine.workloads.scenario import Recompute, Scenario
from engine.workloads.scenario_keys import Table
from engine.workloads.tiering_keys import enabled_tiering

RECOMPUTE = "memory.recompute"


def acting_scenario(scenario: Scenario) -> Scenario:
    """Returns the scenario with the layout, element type, recomputation and tiers its optimizations ask for.

    Raises:
        ScenarioError: A parameter that does not fit.
    """
    acting = _with_recompute(with_mixed_precision(with_layout(scenario)))
    tiering = enabled_tiering(acting.memory.tiering, acting.optimizations)
    return replace(acting, memory=replace(acting.memory, tiering=tiering))


def _with_recompute(scenario: Scenario) -> Scenario:
    if not scenario.enabled(RECOMPUTE):
        return scenario
    table = Table(f"optimizations.{RECOMPUTE}", scenario.optimizations[RECOMPUTE])
    granularity = table.choice("granularity", Recompute, Recompute.FULL)
    table.finish()
    rest = {name: values for name, values in scenario.optimizations.items() if name != RECOMPUTE}
    memory = replace(scenario.memory, recompute=granularity)
    return replace(scenario, memory=memory, optimizations=rest)
