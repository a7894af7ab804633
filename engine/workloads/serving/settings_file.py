"""Reading the ``[serving]`` table of a scenario, and what optimizations make of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.units import NS_PER_MS, NS_PER_S
from engine.workloads.scenario_keys import Table
from engine.workloads.serving.settings import (
    Arrival,
    Batching,
    Preemption,
    RequestSettings,
    ServingSettings,
    TokenLengths,
    WeightFormat,
)

OPTIMIZATION_IDS = (
    "serving.dynamic_batching",
    "serving.prefix_cache",
    "serving.chunked_prefill",
    "serving.speculative",
    "serving.quantization",
    "host.graph_mode",
)
"""What changes how a service is run."""
USUAL_GUESSES = 3
USUAL_ACCEPTANCE_RATIO = 0.44
"""Chance that a guessed token is right after right ones with which 23.9 % of three guessed tokens are accepted: the
accept rate of suffix decoding in vllm-ascend's table for Qwen3-32B on an Atlas 800T A2 (at 182b75ea,
suffix_speculative_decoding.md)."""
KEEP_WAIT_MS = -1.0
"""``max_wait_ms`` of dynamic batching that leaves the scenario's own; of counts and tokens 0 does."""


def read_serving(table: Table, folder: Path) -> ServingSettings:
    """Returns the settings in a serving table. Raises ScenarioError.

    The article's ``prefix_cache_enable`` and ``prefix_cache_size`` (tokens) are read as ``prefix_cache`` and
    ``prefix_cache_tokens``: names of the simulator.
    """
    usual = ServingSettings()
    requests = table.table("requests")
    settings = ServingSettings(
        requests=_requests(requests, table, folder),
        batching=table.choice("batching", Batching, usual.batching),
        max_batch=table.integer("max_batch", usual.max_batch),
        max_wait_ns=_ns(table, "max_wait_ms", NS_PER_MS),
        max_batched_tokens=table.integer("max_batched_tokens", usual.max_batched_tokens),
        chunked_prefill=table.flag("chunked_prefill", usual.chunked_prefill),
        bucket_tokens=table.integer("bucket_tokens", usual.bucket_tokens, minimum=0),
        block_tokens=table.integer("block_tokens", usual.block_tokens),
        memory_ratio=_ratio(table, "memory_ratio", usual.memory_ratio),
        kv_block_count=table.integer("kv_blocks") if table.has("kv_blocks") else None,
        preemption=table.choice("preemption", Preemption, usual.preemption),
        timeout_ns=_ns(table, "timeout_s", NS_PER_S),
        max_queue=table.integer("max_queue", usual.max_queue, minimum=0),
        prefix_cache=table.flag(_spelled(table, "prefix_cache", "prefix_cache_enable"), usual.prefix_cache),
        prefix_cache_tokens=table.integer(
            _spelled(table, "prefix_cache_tokens", "prefix_cache_size"), usual.prefix_cache_tokens, minimum=0
        ),
        speculative_tokens=table.integer("speculative_tokens", usual.speculative_tokens, minimum=0),
        acceptance_ratio=_ratio(table, "acceptance_ratio", usual.acceptance_ratio),
        weights=table.choice("weights", WeightFormat, usual.weights),
        graph_mode=table.flag("graph_mode", usual.graph_mode),
        slo_ttft_ns=_ns(table, "slo_ttft_ms", NS_PER_MS),
        slo_tpot_ns=_ns(table, "slo_tpot_ms", NS_PER_MS),
    )
    table.finish()
    return settings


def _requests(table: Table, serving: Table, folder: Path) -> RequestSettings:
    usual = RequestSettings()
    settings = RequestSettings(
        arrival=table.choice("arrival", Arrival, usual.arrival),
        rate_per_s=table.number("rate_per_s", usual.rate_per_s, minimum=1e-9),
        burst=table.integer("burst", usual.burst),
        users=table.integer("users", usual.users),
        think_s=table.number("think_s", usual.think_s),
        count=table.integer("count", usual.count),
        prompt=_lengths(table, "prompt_tokens", usual.prompt),
        output=_lengths(table, "output_tokens", usual.output),
        turns=table.integer("turns", usual.turns),
        shared_prefixes=table.integer("shared_prefixes", usual.shared_prefixes, minimum=0),
        shared_tokens=table.integer("shared_tokens", usual.shared_tokens, minimum=0),
    )
    table.finish()
    if not serving.has("file"):
        return settings
    return replace(settings, file=str(folder / serving.text("file")))


def _lengths(requests: Table, key: str, usual: TokenLengths) -> TokenLengths:
    """Returns lengths given as a number, or as a table of mean, sigma and max."""
    if not isinstance(requests.raw(key, {}), Mapping):
        return TokenLengths(requests.number(key, usual.mean, minimum=1.0))
    table = requests.table(key)
    lengths = TokenLengths(
        mean=table.number("mean", usual.mean, minimum=1.0),
        sigma=table.number("sigma", usual.sigma),
        maximum=table.integer("max", usual.maximum),
    )
    table.finish()
    return lengths


def _ns(table: Table, key: str, factor: int) -> int:
    return round(table.number(key, 0.0) * factor)


def _ratio(table: Table, key: str, usual: float) -> float:
    value = table.number(key, usual)
    if value > 1.0:
        raise table.wrong(key, f"is {value:g}; it is a share of at most 1")
    return value


def _spelled(table: Table, key: str, other: str) -> str:
    """Returns which of two words for one thing the file uses. Raises ScenarioError where it uses both."""
    if table.has(key) and table.has(other):
        raise table.wrong(key, f"and {other} say the same thing; keep one")
    return other if table.has(other) else key


def optimized(settings: ServingSettings, optimizations: Mapping[str, Mapping[str, Any]]) -> ServingSettings:
    """Returns the settings with what optimizations switch on. Raises ScenarioError for parameters that do not fit."""
    for identifier, parameters in optimizations.items():
        if identifier in OPTIMIZATION_IDS:
            settings = _changed(settings, identifier, Table(f"optimizations.{identifier}", parameters))
    return settings


def _changed(settings: ServingSettings, identifier: str, table: Table) -> ServingSettings:
    if identifier == "serving.dynamic_batching":
        wait_ms = table.number("max_wait_ms", KEEP_WAIT_MS, minimum=KEEP_WAIT_MS)
        changed = replace(
            settings,
            batching=Batching.CONTINUOUS,
            max_batch=table.integer("max_batch", 0, minimum=0) or settings.max_batch,
            max_wait_ns=settings.max_wait_ns if wait_ms < 0 else round(wait_ms * NS_PER_MS),
        )
    elif identifier == "serving.prefix_cache":
        tokens = table.integer("tokens", 0, minimum=0) or settings.prefix_cache_tokens
        changed = replace(settings, prefix_cache=True, prefix_cache_tokens=tokens)
    elif identifier == "serving.chunked_prefill":
        tokens = table.integer("max_batched_tokens", 0, minimum=0) or settings.max_batched_tokens
        changed = replace(settings, chunked_prefill=True, max_batched_tokens=tokens)
    elif identifier == "serving.speculative":
        changed = replace(
            settings,
            speculative_tokens=table.integer("tokens", USUAL_GUESSES),
            acceptance_ratio=_ratio(table, "acceptance", USUAL_ACCEPTANCE_RATIO),
        )
    elif identifier == "serving.quantization":
        changed = replace(settings, weights=table.choice("weights", WeightFormat, WeightFormat.W8A8))
    else:
        changed = replace(settings, graph_mode=True)
    table.finish()
    return changed
