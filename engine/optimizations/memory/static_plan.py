"""Static memory plan: see ``STATIC_PLAN.summary``."""

from engine.optimizations.answers import switched_on
from engine.optimizations.interface import (
    Conflict,
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

ID = "memory.static_plan"


_policy = shipped_policy("static")

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
    check_scenario=other_allocator_check("static", UNFIT_HOLES),
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy),
    conflicts=(Conflict("memory.stitching", "each of them is an allocator of its own"),),
    risk="needs a step whose allocations repeat exactly; dynamic shapes break the plan",
    undo='set optimize_level to "O0"',
    verify="reserved memory and step time after the same number of steps",
)
