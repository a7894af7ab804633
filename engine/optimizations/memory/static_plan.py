"""Static memory plan: see ``STATIC_PLAN.summary``."""

from engine.optimizations.answers import already_on, applies, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import policy_change, policy_check, scenario_allocator, varying_sizes
from engine.runtime.allocators.catalogue import AllocatorPolicy, allocator_policy
from engine.workloads.scenario import Scenario

ID = "memory.static_plan"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del recorded, plan, parameters
    return allocator_policy("static")


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario_allocator(scenario) == "static":
        return already_on('the job runs with memory.allocator = "static"')
    if not varying_sizes(scenario):
        return no_effect("every step asks for the same blocks, so the cache of the first step fits all that follow")
    return applies("block sizes change from step to step, so holes do not fit what comes next")


STATIC_PLAN = Optimization(
    id=ID,
    title="Static memory plan",
    group=Group.MEMORY,
    summary="Offsets of everything freed inside a step are planned ahead: nothing is searched for, nothing fragments.",
    parameters=(),
    switches=(
        Switch(
            "MindSpore",
            "2.x, key by key moved out of set_context since 2.5",
            'mindspore.runtime.set_memory(optimize_level="O1")',
            "mindspore-ai/docs features/runtime/memory_manager.md",
            "SOMAS, for whole graphs; eager PyTorch has no such plan",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy),
    conflicts=(Conflict("memory.stitching", "each of them is an allocator of its own"),),
    simulator_only=False,
    risk="needs a step whose allocations repeat exactly; dynamic shapes break the plan",
    undo='set optimize_level to "O0"',
    verify="reserved memory and step time after the same number of steps",
)
