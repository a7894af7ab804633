"""What allocator toggles share: putting a policy in place of the recorded one, and what that would change."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.core.number_format import format_bytes
from engine.core.units import MIB
from engine.optimizations.answers import already_on, applies, no_effect, unknown
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CaptureChange,
    CaptureCheck,
    CapturePlan,
    Parameters,
    ScenarioCheck,
)
from engine.optimizations.memory.outcomes import RankMemory, plan_memory, recorded_memory
from engine.replay.capture_policy import capture_policy
from engine.runtime.allocators.catalogue import AllocatorPolicy, allocator_policy
from engine.trace.trace import Trace
from engine.workloads.scenario import Scenario

PolicyOf = Callable[[AllocatorPolicy, CapturePlan, Parameters], AllocatorPolicy]
"""Given the recorded policy, the plan and the parameters: the policy to replay."""
SAME_RATIO = 0.005
"""Two peaks of reserved memory closer than this count as equal: the replay's own error on Qwen3 is 0.2 %
(docs/fidelity.md)."""
UNFIT_HOLES = "block sizes change from step to step, so holes do not fit what comes next"
"""Why an allocator that does without such holes does something to a job."""
ALLOCATOR_IDS = ("memory.expandable_segments", "memory.stitching", "memory.static_plan", "memory.amc")
"""Optimizations that each put another allocator in place: only one of them can be on."""


def recorded_policy(plan: CapturePlan) -> AllocatorPolicy:
    """Returns the policy the capture's first rank names."""
    return capture_policy(_first_trace(plan))


def _first_trace(plan: CapturePlan) -> Trace:
    return plan.capture.job.ranks[0].trace


def shipped_policy(name: str) -> PolicyOf:
    """Returns an allocator of the catalogue as it is, whatever was recorded."""

    def policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
        del recorded, plan, parameters
        return allocator_policy(name)

    return policy


def policy_change(policy_of: PolicyOf) -> CaptureChange:
    """Returns the change that replays the memory log under another policy."""

    def change(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
        del bound  # a policy is the same at both ends
        base = plan.allocator or recorded_policy(plan)
        return replace(plan, allocator=policy_of(base, plan, parameters))

    return change


def policy_check(
    policy_of: PolicyOf, is_on: Callable[[AllocatorPolicy], str | None] = lambda policy: None
) -> CaptureCheck:
    """Returns the check that replays the log under the policy and says what the fullest rank would reserve.

    Args:
        policy_of: The policy to try.
        is_on: Why a recorded policy is already what is asked for, None where it is not.
    """

    def check(plan: CapturePlan, parameters: Parameters) -> Applicability:
        on = is_on(recorded_policy(plan))
        if on is not None:
            return already_on(on)
        before = recorded_memory(plan.capture)
        if not before:
            return unknown("the capture lists no allocated blocks; record with profile_memory=True")
        after = plan_memory(policy_change(policy_of)(plan, parameters, Bound.EXPECTED))
        return _compared(before[_fullest(before)], after[_fullest(after)])

    return check


def _fullest(memory: Mapping[int, RankMemory]) -> int:
    return max(memory, key=lambda rank: memory[rank].outcome.peak_reserved_bytes)


def _compared(before: RankMemory, after: RankMemory) -> Applicability:
    old, new = before.outcome.peak_reserved_bytes, after.outcome.peak_reserved_bytes
    stranded = before.outcome.stranded_bytes
    words = f"{format_bytes(new)} instead of {format_bytes(old)} reserved on the fullest rank"
    if abs(new - old) <= SAME_RATIO * old:
        share = f"; {stranded / old:.1%} of it is stranded" if stranded is not None and old else ""
        return no_effect(f"{words}{share}: it would save nothing here")
    return applies(words if new < old else f"{words}: more, not less")


def scenario_allocator(scenario: Scenario) -> str:
    """Returns the allocator a scenario runs on, optimizations included."""
    named = {item: item.partition(".")[2] for item in ALLOCATOR_IDS if scenario.enabled(item)}
    words = {"expandable_segments": "expandable", "static_plan": "static"}
    for name in named.values():
        return words.get(name, name)
    return scenario.memory.allocator


def other_allocator_check(name: str, cure: str, also_on: Mapping[str, str] | None = None) -> ScenarioCheck:
    """Returns the check of an optimization that puts another allocator into a simulated job.

    Args:
        name: Of the allocator, as a scenario has it.
        cure: What it does about blocks that change from step to step.
        also_on: Allocators that include it → why.
    """

    def check(scenario: Scenario, parameters: Parameters) -> Applicability:
        del parameters
        running = scenario_allocator(scenario)
        if running == name:
            return already_on(f'the job runs with memory.allocator = "{name}"')
        if also_on and running in also_on:
            return already_on(also_on[running])
        if not varying_sizes(scenario):
            return no_effect("every step asks for the same blocks, so the cache of the first step fits all that follow")
        return applies(cure)

    return check


def varying_sizes(scenario: Scenario) -> bool:
    """Returns whether blocks of a simulated job differ from step to step, without which nothing fragments further."""
    lengths = scenario.batch.lengths
    return lengths.distribution.value != "fixed" or scenario.memory.long_lived.per_step > 0


def under_limit(policy: AllocatorPolicy, plan: CapturePlan) -> AllocatorPolicy:
    """Returns the policy with the device's memory as its limit, where the capture states it."""
    capacity = _first_trace(plan).metadata.device_memory_bytes
    return policy.under(capacity) if capacity else policy


def megabytes(value: object) -> int:
    """Returns bytes of a parameter in MiB (PyTorch writes MB and means 1024²)."""
    return int(float(str(value)) * MIB)
