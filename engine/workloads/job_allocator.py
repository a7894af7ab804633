"""The allocator a scenario asks for, by its memory table and its optimizations."""

from dataclasses import replace
from pathlib import Path

from engine.core.errors import ScenarioError
from engine.core.units import MIB
from engine.runtime.allocators.amc import AmcRules, read_amc_rules
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.catalogue import allocator_policy, new_allocator
from engine.runtime.allocators.interface import Allocator
from engine.workloads.host_dispatch import replays_graphs
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_keys import Table

GC_THRESHOLD, MAX_SPLIT_SIZE, AMC = "memory.gc_threshold", "memory.max_split_size", "memory.amc"
SMALLEST_SPLIT_LIMIT_MB = 21
"""torch_npu takes more than 20 MiB only: blocks up to that share segments of a fixed size."""


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
    rules = _rules(scenario) if name == "amc" else None
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
    if GC_THRESHOLD in chosen:
        table = Table(f"optimizations.{GC_THRESHOLD}", chosen[GC_THRESHOLD])
        ratio = table.number("threshold", 0.8)
        table.finish()
        if not 0.0 < ratio < 1.0:
            raise table.wrong("threshold", f"is {ratio:g}; it is a share of the limit between 0 and 1")
        settings = replace(settings, garbage_collection_ratio=ratio)
    if MAX_SPLIT_SIZE in chosen:
        table = Table(f"optimizations.{MAX_SPLIT_SIZE}", chosen[MAX_SPLIT_SIZE])
        size = table.integer("size_mb", 128, minimum=SMALLEST_SPLIT_LIMIT_MB)
        table.finish()
        settings = replace(settings, max_split_size_bytes=size * MIB)
    return replace(settings, device_memory_bytes=scenario.device.hbm_bytes)


def _rules(scenario: Scenario) -> AmcRules | None:
    """Returns the rules of automatic memory management: the optimization's file, else the memory table's."""
    path = scenario.memory.rules
    if AMC in scenario.optimizations:
        table = Table(f"optimizations.{AMC}", scenario.optimizations[AMC])
        path = table.text("rules", "") or path
        table.finish()
    return read_amc_rules(Path(path)) if path else None
