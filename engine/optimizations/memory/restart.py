"""Periodic restart."""

from engine.optimizations.answers import applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import varying_sizes
from engine.optimizations.memory.twin_only import twin_check
from engine.workloads.scenario import Scenario

ID = "memory.restart"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if not varying_sizes(scenario):
        return no_effect("every step asks for the same blocks, so nothing accumulates that a restart would clear")
    return applies("the allocator starts afresh, at the price of the restart")


RESTART = Optimization(
    id=ID,
    title="Periodic restart",
    group=Group.MEMORY,
    summary=(
        "The job is stopped and resumed from a checkpoint every so many steps, "
        "which clears all fragments: the crude cure."
    ),
    parameters=(
        Parameter(
            "every_steps", "steps between two restarts", 1000, minimum=1, provenance="assumed: no published interval"
        ),
        Parameter(
            "cost_s",
            "time of one restart, s",
            300.0,
            minimum=0.0,
            provenance="assumed: depends on checkpoint and cluster; measure yours",
        ),
    ),
    switches=(
        Switch(
            "any",
            "",
            "stop and resume from the last checkpoint every 1000 steps",
            "the framework's checkpointing guide",
            "costs the time of the restart, and steps since the checkpoint",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check("a capture of a few steps shows no growth from step to step"),
    risk="time of the restart; random state must be part of the checkpoint",
    undo="stop restarting",
    verify="mean step time with the restarts counted in",
)
