"""What a training loop does about its memory every so many steps: releasing the cache, starting anew."""

from dataclasses import dataclass

from engine.core.units import NS_PER_S
from engine.workloads.executed import Executed, Stall
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_keys import Table

CHECK, RESTART = "memory.periodic_check", "memory.restart"
_CHECK_EVERY, _RESTART_EVERY = 100, 1000
"""Assumed: nobody publishes an interval."""
_RESTART_S = 300.0
"""Assumed: starting processes, building groups, loading a checkpoint; minutes in published reports of large jobs."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """When the loop intervenes.

    Attributes:
        check_steps: After every so many steps the cache is given back to the driver; 0 for never.
        restart_steps: Before every so many steps the job is started anew; 0 for never.
        restart_ns: What that takes.
    """

    check_steps: int = 0
    restart_steps: int = 0
    restart_ns: int = 0

    def checks(self, step: int) -> bool:
        """Returns whether the cache is released after a step."""
        return bool(self.check_steps) and (step + 1) % self.check_steps == 0

    def restarts(self, step: int) -> bool:
        """Returns whether the job is started anew before a step."""
        return bool(self.restart_steps) and step > 0 and step % self.restart_steps == 0


def upkeep_of(scenario: Scenario) -> Upkeep:
    """Returns what a scenario's loop does. Raises ScenarioError."""
    check_steps = restart_steps = restart_ns = 0
    if scenario.enabled(CHECK):
        table = Table(f"optimizations.{CHECK}", scenario.optimizations[CHECK])
        check_steps = table.integer("every_steps", _CHECK_EVERY)
        table.finish()
    if scenario.enabled(RESTART):
        table = Table(f"optimizations.{RESTART}", scenario.optimizations[RESTART])
        restart_steps = table.integer("every_steps", _RESTART_EVERY)
        restart_ns = round(table.number("cost_s", _RESTART_S) * NS_PER_S)
        table.finish()
    return Upkeep(check_steps, restart_steps, restart_ns)


def with_restart(executed: list[Executed], restart_ns: int) -> list[Executed]:
    """Returns the items of a step whose first block begins after a restart."""
    first = next(index for index, part in enumerate(executed) if part.template is not None)
    stall = Stall(0, restart_ns, True, (("restart", restart_ns),))
    changed = executed[first]._replace(stalls=(stall, *executed[first].stalls))
    return [*executed[:first], changed, *executed[first + 1 :]]
