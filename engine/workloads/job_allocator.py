"""The allocator a scenario asks for, by its memory table and its optimizations."""

from dataclasses import replace
from pathlib import Path

from engine.core.errors import ScenarioError
from engine.runtime.allocators.amc import read_amc_rules
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.catalogue import allocator_policy, new_allocator
from engine.runtime.allocators.interface import Allocator
from engine.workloads.host_dispatch import replays_graphs
from engine.workloads.scenario import Scenario


def new_job_allocator(scenario: Scenario) -> Allocator:
    """Returns the allocator of a scenario under its limit.

    Raises:
        ScenarioError: Optimizations name several, or compaction is to move what is in two tiers.
        EngineError: The file of rules cannot be used.
    """
    memory, name = scenario.memory, _allocator_name(scenario)
    limit = memory.limit_bytes or scenario.device.hbm_usable_bytes
    policy = allocator_policy(name).under(limit)
    policy = replace(policy, settings=_tuned(policy.settings, scenario))
    rules = read_amc_rules(Path(memory.rules)) if memory.rules and name == "amc" else None
    if rules is not None and rules.simulator_only_compaction and memory.tiering is not None:
        raise ScenarioError("memory.tiering cannot be combined with simulator_only_compaction in memory.rules")
    return new_allocator(replace(policy, rules=rules), 2 if replays_graphs(scenario) else 1)


def _allocator_name(scenario: Scenario) -> str:
    chosen = {
        "memory.expandable_segments": "expandable",
        "memory.amc": "amc",
        "memory.stitching": "stitching",
        "memory.static_plan": "static",
    }
    named = [name for identifier, name in chosen.items() if scenario.enabled(identifier)]
    if len(named) > 1:
        raise ScenarioError(f"optimizations name several allocators: {', '.join(named)}; keep one")
    return named[0] if named else scenario.memory.allocator


def _tuned(settings: CachingSettings, scenario: Scenario) -> CachingSettings:
    chosen = scenario.optimizations
    if "memory.gc_threshold" in chosen:
        ratio = float(chosen["memory.gc_threshold"].get("threshold", 0.8))
        settings = replace(settings, garbage_collection_ratio=ratio)
    if "memory.max_split_size" in chosen:
        size = int(float(chosen["memory.max_split_size"].get("size_mb", 128)) * (1 << 20))
        settings = replace(settings, max_split_size_bytes=size)
    return replace(settings, device_memory_bytes=scenario.device.hbm_bytes)
