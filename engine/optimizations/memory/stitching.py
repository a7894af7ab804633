"""Stitching of free pages: see ``STITCHING.summary``."""

from engine.optimizations.answers import switched_on
from engine.optimizations.interface import (
    CapturePlan,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import other_allocator_check, policy_change, policy_check
from engine.runtime.allocators.catalogue import AllocatorPolicy, allocator_policy

ID = "memory.stitching"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del recorded, plan, parameters
    return allocator_policy("stitching")


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
    check_scenario=other_allocator_check(
        "stitching", "block sizes change from step to step, so holes do not fit what comes next"
    ),
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy),
    conflicts=(),
    simulator_only=True,
    risk="mapping many pages costs driver calls",
    undo="as for the switch above",
    verify="reserved memory and step time after the same number of steps",
)
