"""Stitching of free pages: see ``STITCHING.summary``."""

from engine.optimizations.answers import switched_on
from engine.optimizations.interface import (
    Group,
    Optimization,
    Switch,
)
from engine.optimizations.memory.policies import (
    UNFIT_HOLES,
    other_allocator_check,
    policy_change,
    policy_check,
    shipped_policy,
)

ID = "memory.stitching"


_policy = shipped_policy("stitching")

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
    check_scenario=other_allocator_check("stitching", UNFIT_HOLES),
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy),
    conflicts=(),
    simulator_only=True,
    risk="mapping many pages costs driver calls",
    undo="as for the switch above",
    verify="reserved memory and step time after the same number of steps",
)
