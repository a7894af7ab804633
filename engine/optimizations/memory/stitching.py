"""Stitching of free pages: see ``STITCHING.summary``."""

from engine.optimizations.answers import already_on, applies, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import policy_change, policy_check, scenario_allocator, varying_sizes
from engine.runtime.allocators.catalogue import AllocatorPolicy, allocator_policy
from engine.workloads.scenario import Scenario

ID = "memory.stitching"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del recorded, plan, parameters
    return allocator_policy("stitching")


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    if scenario_allocator(scenario) == "stitching":
        return already_on('the job runs with memory.allocator = "stitching"')
    if not varying_sizes(scenario):
        return no_effect("every step asks for the same blocks, so the cache of the first step fits all that follow")
    return applies("block sizes change from step to step, so holes do not fit what comes next")


STITCHING = Optimization(
    id=ID,
    title="Stitching of free pages",
    group=Group.MEMORY,
    summary="Pages of several free blocks are mapped into one new range when no hole is large enough (as GMLake does).",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "HDK 23.0.0 or newer",
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "the nearest real thing: growing segments; stitching itself ships in no runtime for Ascend",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy),
    conflicts=(),
    simulator_only=True,
    risk="mapping many pages costs driver calls",
    undo="as for the switch above",
    verify="reserved memory and step time after the same number of steps",
)
