"""A simulated run for people and for scripts (``cannscope.run/1``)."""

from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.memory_trend import MemoryTrend, memory_trend
from engine.core.arrays import Int64Array
from engine.core.number_format import format_bytes
from engine.core.units import NS_PER_MS, NS_PER_US
from engine.workloads.results import ClassMemory, RunResult, RunStatus
from engine.workloads.scenario import Scenario

SCHEMA = "cannscope.run/1"
_EIGHTHS = 8


def run_document(result: RunResult, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a run; durations in µs, sizes in bytes, shares as ratios."""
    deadlock = result.deadlock
    tokens = result.tokens_per_s
    return {
        "schema": SCHEMA,
        "status": result.status.value,
        "deadlock": None
        if deadlock is None
        else {
            "ranks": list(deadlock.ranks),
            "operators": list(deadlock.operators),
            "cycle": list(deadlock.cycle),
            "stage_dependency": deadlock.stage_dependency,
            "message": deadlock.message,
        },
        "scenario": scenario_document(result.scenario),
        "step_time_us": (result.step_ns / NS_PER_US).tolist(),
        "tokens_per_s": tokens,
        "tokens_per_s_per_device": tokens / result.scenario.device_count,
        "ms_per_token": None,
        "memory": _memory_document(result),
        "communication_share_ratio": result.communication_share_ratio,
        "bubble_ratio": result.bubble_ratio,
        "history": _history_document(result),
        "provenance": provenance,
    }


def scenario_document(scenario: Scenario) -> dict[str, Any]:
    """Returns what was run, in the words of the scenario file."""
    parallel, batch, memory = scenario.parallel, scenario.batch, scenario.memory
    return {
        "name": scenario.name,
        "kind": scenario.kind.value,
        "seed": scenario.seed,
        "model": scenario.model.id,
        "device": scenario.device.id,
        "device_title": scenario.device.title,
        "device_count": scenario.device_count,
        "parallel": {
            "data": parallel.data,
            "tensor": parallel.tensor,
            "tensor_mode": parallel.tensor_mode.value,
            "pipeline": parallel.pipeline,
            "virtual_pipeline": parallel.virtual_pipeline,
            "context": parallel.context,
            "expert": parallel.expert,
            "schedule": parallel.schedule.value,
            "sequence_parallel": parallel.sequence_parallel,
            "distributed_optimizer": parallel.distributed_optimizer,
        },
        "batch": {
            "micro": batch.micro,
            "global": batch.global_sequences,
            "sequence_length": batch.lengths.mean,
            "distribution": batch.lengths.distribution.value,
        },
        "memory": {
            "allocator": memory.allocator,
            "limit_bytes": memory.limit_bytes,
            "on_out_of_memory": memory.on_out_of_memory.value,
            "recompute": memory.recompute.value,
            "tiering": None if memory.tiering is None else asdict(memory.tiering),
        },
        "steps": scenario.run.steps,
        "optimizations": {name: dict(values) for name, values in scenario.optimizations.items()},
    }


def _memory_document(result: RunResult) -> dict[str, Any]:
    worst = max(result.memory, key=lambda item: int(item.peak_reserved_bytes.max(initial=0)))
    trend = memory_trend(worst)
    return {
        **_peaks(worst),
        "component": "PTA",
        "stranded_bytes": trend.stranded_bytes,
        "reserved_slope_bytes_per_step": trend.reserved_slope_bytes_per_step,
        "headroom_bytes": worst.limit_bytes - int(worst.peak_reserved_bytes.max(initial=0)),
        "limit_bytes": worst.limit_bytes,
        "failed_bytes": worst.failed_bytes,
        "verdict": trend.verdict.value,
        "leaks": None,
        "per_rank": [
            {"rank": rank, **_peaks(item), "persistent_bytes": item.persistent_bytes}
            for rank, item in sorted((rank, item) for item in result.memory for rank in item.ranks)
        ],
    }


def _peaks(memory: ClassMemory) -> dict[str, Any]:
    allocated = int(memory.peak_allocated_bytes.max(initial=0))
    reserved = int(memory.peak_reserved_bytes.max(initial=0))
    return {
        "peak_allocated_bytes": allocated,
        "peak_reserved_bytes": reserved,
        "peak_active_bytes": allocated,
        "fragmentation_ratio": 1 - allocated / reserved if reserved else None,
    }


def _history_document(result: RunResult) -> list[dict[str, Any]]:
    """Returns one entry per class of ranks: what memory did in every step."""
    return [
        {
            "ranks": list(item.ranks),
            "peak_allocated_bytes": item.peak_allocated_bytes.tolist(),
            "peak_reserved_bytes": item.peak_reserved_bytes.tolist(),
            "live_after_step_bytes": item.end_allocated_bytes.tolist(),
            "stranded_bytes": [None if value < 0 else value for value in item.stranded_bytes.tolist()],
            "retries": item.retries.tolist(),
            "driver_calls": item.driver_calls.tolist(),
            "out_of_memory_caught": item.caught.tolist(),
            "allocator_stall_us": (item.stall_ns / NS_PER_US).tolist(),
            "migrated_bytes": item.migrated_bytes.tolist(),
            "simulator_only_compacted_bytes": item.compacted_bytes.tolist(),
        }
        for item in result.memory
    ]


def run_text(result: RunResult) -> RenderableType:
    """Returns the run for people: what it came to, then how it went over its length."""
    scenario = result.scenario
    lines = [Text(f"{scenario.name}: {run_ending(result)}", style="bold")]
    if len(result.step_ns):
        tokens = result.tokens_per_s
        step_ms = float(np.median(result.step_ns)) / NS_PER_MS
        lines.append(
            Text(
                f"{step_ms:,.1f} ms per step (median), {tokens:,.0f} tokens/s, "
                f"{tokens / scenario.device_count:,.0f} per device; communication "
                f"{result.communication_share_ratio:.1%}, bubbles {result.bubble_ratio:.1%} of the step"
            )
        )
    worst = max(result.memory, key=lambda item: int(item.peak_reserved_bytes.max(initial=0)))
    trend = memory_trend(worst)
    allocated, reserved = worst.peak_allocated_bytes.max(initial=0), worst.peak_reserved_bytes.max(initial=0)
    lines.append(
        Text(
            f"memory of the fullest rank: {format_bytes(int(allocated))} allocated, {format_bytes(int(reserved))} "
            f"reserved of {format_bytes(worst.limit_bytes)}; {trend.sentence}"
        )
    )
    compacted = sum(int(item.compacted_bytes.sum()) for item in result.memory)
    if compacted:
        lines.append(
            Text(f"{format_bytes(compacted)} of live tensors moved by compaction: only a simulator can do that")
        )
    parts: list[RenderableType] = [*lines]
    if len(result.step_ns) >= 2 * _EIGHTHS:
        parts.append(_course(result, worst, trend))
    return Group(*parts)


def run_ending(result: RunResult) -> str:
    """Returns how a run ended, in one phrase."""
    run, asked = len(result.step_ns), result.scenario.run.steps
    if result.status is RunStatus.OUT_OF_MEMORY:
        failed = max(item.failed_bytes for item in result.memory)
        return f"out of memory in step {run + 1} of {asked}: no room for {format_bytes(failed)}"
    if result.status is RunStatus.DEADLOCK:
        return f"deadlock in step {run + 1}: {result.deadlock.message if result.deadlock else ''}"
    return f"{asked} steps done"


def _course(result: RunResult, memory: ClassMemory, trend: MemoryTrend) -> Table:
    """Returns means by eighths of the run."""
    table = Table(
        "steps", "ms per step", "reserved", "live after step", "driver calls", "retries", "OOM caught", box=None
    )
    for column in table.columns[1:]:
        column.justify = "right"
    bounds = np.linspace(0, len(result.step_ns), _EIGHTHS + 1).astype(int)

    def mean(values: Int64Array, start: int, stop: int) -> float:
        return float(values[start:stop].mean())

    for start, stop in pairwise(bounds.tolist()):
        table.add_row(
            f"{start + 1}–{stop}",
            f"{mean(result.step_ns, start, stop) / NS_PER_MS:,.1f}",
            format_bytes(round(mean(memory.peak_reserved_bytes, start, stop))),
            format_bytes(round(mean(memory.end_allocated_bytes, start, stop))),
            f"{mean(memory.driver_calls, start, stop):.2f}",
            f"{mean(memory.retries, start, stop):.2f}",
            f"{mean(memory.caught, start, stop):.2f}",
        )
    table.caption = trend.sentence
    return table
