"""Automatic memory management by a file of rules: a preset of real mechanisms under a simulator's name."""

from dataclasses import replace
from pathlib import Path

from engine.core.errors import EngineError
from engine.optimizations.answers import switched_on, unknown
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import other_allocator_check, policy_change, policy_check
from engine.runtime.allocators.amc import amc_settings, default_amc_rules, read_amc_rules
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.workloads.scenario import Scenario

ID = "memory.amc"
RULES = "rules"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del plan
    path = str(parameters[RULES])
    rules = read_amc_rules(Path(path)) if path else default_amc_rules()
    settings = amc_settings(rules, recorded.settings.limit_bytes)
    return AllocatorPolicy("amc", "automatic memory management (simulator feature)", settings, rules)


_replayed = policy_check(_policy)


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    try:
        return _replayed(plan, parameters)
    except EngineError as error:
        return unknown(str(error))


def _on_scenario(scenario: Scenario, parameters: Parameters) -> Scenario:
    chosen = switched_on(ID)(scenario, parameters)
    path = str(parameters[RULES])
    return replace(chosen, memory=replace(chosen.memory, rules=path)) if path else chosen


_OTHER = "automatic memory management is an allocator of its own"
AMC = Optimization(
    id=ID,
    title="Automatic memory management (AMC)",
    group=Group.MEMORY,
    summary=(
        "Lifetime classes get segments of their own, and free pages go back to the driver at synchronisations when "
        "stranded memory passes a threshold; by a JSON file of reuse and defragmentation rules."
    ),
    parameters=(Parameter(RULES, "JSON file of rules (empty: the built-in ones)", ""),),
    switches=(
        Switch(
            "torch_npu",
            "HDK 23.0.0 or newer",
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "AMC is a simulator feature; this switch is its real counterpart for pages",
        ),
        Switch(
            "torch_npu",
            "",
            "export MULTI_STREAM_MEMORY_REUSE=2",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "AMC is a simulator feature; the counterpart for blocks that other streams hold (0 is for debugging only)",
        ),
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu.empty_cache()",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "AMC is a simulator feature; the counterpart for giving pages back: between phases, never on the step path",
        ),
    ),
    on_scenario=_on_scenario,
    check_scenario=other_allocator_check(
        "amc", "lifetimes are kept apart and free pages given back at synchronisations when much is stranded"
    ),
    on_capture=policy_change(_policy),
    check_capture=_check_capture,
    conflicts=(
        Conflict("memory.expandable_segments", _OTHER),
        Conflict("memory.stitching", _OTHER),
        Conflict("memory.static_plan", _OTHER),
        Conflict("memory.max_split_size", _OTHER),
        Conflict("memory.gc_threshold", _OTHER),
    ),
    simulator_only=True,
    risk="pages that are given back and mapped again cost driver calls",
    undo="unset the switches above",
    verify="reserved memory, allocation retries and step time after the same number of steps",
    provenance="every number of the built-in rules is assumed (engine/runtime/allocators/data/amc.json)",
)
