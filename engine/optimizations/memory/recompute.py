"""Recomputation of activations."""

from engine.optimizations.answers import already_on, applies, capture_unchanged, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.twin_only import twin_check
from engine.workloads.scenario import Recompute, Scenario

ID = "memory.recompute"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario.memory.recompute is Recompute.FULL:
        return already_on('the job runs with memory.recompute = "full"')
    return applies("activations of all layers are kept from the forward to the backward pass")


RECOMPUTE = Optimization(
    id=ID,
    title="Recomputation of activations",
    group=Group.MEMORY,
    summary=("The backward pass computes activations again instead of keeping them: memory against time."),
    parameters=(Parameter("granularity", "what is computed again", "full", choices=("selective", "full")),),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
            "MindSpeed docs/zh/features/recomputation.md",
            "time rises by about one forward pass of the layers covered",
        ),
        Switch(
            "MindSpeed",
            "",
            "--recompute-activation-function",
            "MindSpeed docs/zh/features/activation-function-recompute.md",
            "the cheap part only; block method",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check(
        "which activations a layer keeps and what computing them again takes is not in a memory log"
    ),
    risk="none for accuracy; time rises by up to a forward pass",
    undo="remove the options",
    verify="peak allocated memory and step time after three warm steps",
)
