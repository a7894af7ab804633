"""Periodic release of the cache."""

from engine.optimizations.answers import applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import scenario_allocator, varying_sizes
from engine.optimizations.memory.twin_only import twin_check
from engine.workloads.scenario import Scenario

ID = "memory.periodic_check"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario_allocator(scenario) in ("expandable", "amc"):
        return no_effect("expandable segments have little cached that a release could give back")
    if not varying_sizes(scenario):
        return no_effect("every step asks for the same blocks: what is given back is asked for again")
    return applies("segments that hold no block any more are given back and the holes in them with it")


PERIODIC_CHECK = Optimization(
    id=ID,
    title="Periodic release of the cache",
    group=Group.MEMORY,
    summary=("The training loop gives all cached memory back every so many steps, whether it is needed or not."),
    parameters=(
        Parameter(
            "every_steps", "steps between two releases", 100, minimum=1, provenance="assumed: no published interval"
        ),
    ),
    switches=(
        Switch(
            "torch_npu",
            "",
            "if step % 100 == 0: torch_npu.npu.empty_cache()",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "never on every step: the cache has to be filled again",
        ),
        Switch(
            "PyTorch",
            "",
            "if step % 100 == 0: torch.cuda.empty_cache()",
            "PyTorch notes, CUDA semantics, memory management",
            "never on every step: the cache has to be filled again",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=twin_check("a capture of a few steps shows no growth from step to step"),
    risk="every release costs the driver calls that fill the cache again",
    undo="remove the call",
    verify="reserved memory over thousands of steps, and the step after each release",
)
