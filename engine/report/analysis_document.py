"""The ``analyze`` document: durations in µs, sizes in bytes, shares as ratios, None where there is no value."""

from collections import defaultdict
from typing import Any

from engine.analyses.communication import Collective
from engine.analyses.device import DeviceTotals
from engine.analyses.fusion import FusionCandidate
from engine.analyses.headline import headline
from engine.analyses.idle import IdleGap
from engine.analyses.memory import MemoryAnalysis
from engine.analyses.serving.latency import ServingAnalysis
from engine.analyses.steps import Step
from engine.analyses.summary import JobSummary, RankSummary
from engine.core.units import NS_PER_US, ns_to_us
from engine.report.diagnostics import diagnostics_document
from engine.report.serving_numbers import latency_document, service_document
from engine.trace.job import Job


def analysis_document(job: Job, summary: JobSummary) -> dict[str, Any]:
    """Returns the document ``cannscope.analysis/1`` of CLI.md."""
    return {
        "schema": "cannscope.analysis/1",
        "path": job.path,
        "diagnostics": diagnostics_document(job, summary.communication.diagnostics),
        "ranks": [rank_document(summary, rank) for rank in summary.ranks],
        "slow_ranks": [
            {"rank": item.rank, "cause": item.cause, "cost_us": ns_to_us(item.cost_ns)}
            for item in summary.communication.slow_ranks
        ],
    }


def rank_document(summary: JobSummary, rank: RankSummary) -> dict[str, Any]:
    """Returns one element of ``ranks``."""
    first = headline(summary, rank.rank)
    return {
        "rank": rank.rank,
        "headline": first.sentence,
        "memory_headline": first.memory_sentence,
        "steps": [_step(step) for step in rank.steps],
        "device": None if rank.device is None else _device(rank.device),
        "memory": None if rank.memory is None else _memory(rank.memory),
        "idle": _idle(rank.idle),
        "operators": [
            {
                "name": item.name,
                "type": item.type,
                "core_type": item.core_type,
                "count": item.count,
                "total_us": ns_to_us(item.total_ns),
                "min_us": ns_to_us(item.min_ns),
                "max_us": ns_to_us(item.max_ns),
                "share_ratio": item.share_ratio,
            }
            for item in rank.operators
        ],
        "modules": [
            {
                "path": item.path,
                "phase": item.phase,
                "source": item.source,
                "count": item.count,
                "total_us": ns_to_us(item.total_ns),
                "inferred": item.inferred,
            }
            for item in rank.modules
        ],
        "pipeline": _pipeline(summary, rank.rank),
        "serving": None if rank.serving is None else _serving(rank.serving),
        "fusion_candidates": [_candidate(item) for item in rank.fusion_candidates],
        "communication": [_collective(item) for item in summary.communication.collectives.get(rank.rank, ())],
        "links": [
            {
                "link": item.link,
                "bytes": item.bytes,
                "transit_us": ns_to_us(item.transit_ns),
                "large_packet_ratio": item.large_packet_ratio,
            }
            for item in summary.communication.links.get(rank.rank, ())
        ],
    }


def _pipeline(summary: JobSummary, rank: int) -> dict[str, Any] | None:
    stages = summary.communication.stages
    return {"stage": stages[rank], "stages": max(stages.values()) + 1} if rank in stages else None


def _serving(serving: ServingAnalysis) -> dict[str, Any]:
    return {**service_document(serving), **latency_document(serving)}


def _us(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else duration_ns / NS_PER_US


def _step(step: Step) -> dict[str, Any]:
    return {
        "step": step.step,
        "start_us": ns_to_us(step.range.start_ns),
        "duration_us": ns_to_us(step.range.duration_ns),
        "computing_us": _us(step.computing_ns),
        "communication_us": _us(step.communication_ns),
        "communication_not_overlapped_us": _us(step.communication_not_overlapped_ns),
        "overlapped_us": _us(step.overlapped_ns),
        "free_us": _us(step.free_ns),
        "stage_us": _us(step.stage_ns),
        "bubble_us": _us(step.bubble_ns),
        "preparing_us": _us(step.preparing_ns),
        "wait_us": _us(step.wait_ns),
        "transfer_us": _us(step.transfer_ns),
        "from_file": list(step.from_file),
    }


def _device(device: DeviceTotals) -> dict[str, Any]:
    return {
        "span_us": ns_to_us(device.span_ns),
        "busy_us": ns_to_us(device.busy_ns),
        "idle_us": ns_to_us(device.idle_ns),
        "compute_us": ns_to_us(device.compute_ns),
        "communication_us": ns_to_us(device.communication_ns),
        "memory_us": ns_to_us(device.memory_ns),
        "overlap_us": ns_to_us(device.overlap_ns),
        "exposed_communication_us": ns_to_us(device.exposed_communication_ns),
        "overlap_ratio": device.overlap_ratio,
    }


def _memory(memory: MemoryAnalysis) -> dict[str, Any]:
    return {
        "component": memory.component,
        "peak_allocated_bytes": memory.peak_allocated_bytes,
        "peak_reserved_bytes": memory.peak_reserved_bytes,
        "peak_active_bytes": memory.peak_active_bytes,
        "peak_at_us": _us(memory.peak_at_ns),
        "fragmentation_ratio": memory.fragmentation_ratio,
        "stranded_bytes": memory.stranded_bytes,
        "reserved_slope_bytes_per_step": memory.reserved_slope_bytes_per_step,
        "headroom_bytes": memory.headroom_bytes,
        "process_bytes": memory.process_bytes,
        "other_bytes": memory.other_bytes,
        "unfreed_count": memory.unfreed_count,
        "unfreed_bytes": memory.unfreed_bytes,
        "alive_at_peak": [
            {"operator": item.operator, "bytes": item.bytes, "count": item.count} for item in memory.alive_at_peak
        ],
        "leaks": [
            {
                "operator": item.operator,
                "bytes": item.bytes,
                "count": item.count,
                "first_allocated_at_us": ns_to_us(item.first_allocated_at_ns),
                "step": item.step,
                "steps": item.step_count,
            }
            for item in memory.leaks
        ],
        "steps": [
            {
                "step": item.step,
                "peak_allocated_bytes": item.peak_allocated_bytes,
                "peak_reserved_bytes": item.peak_reserved_bytes,
                "peak_active_bytes": item.peak_active_bytes,
                "headroom_bytes": item.headroom_bytes,
            }
            for item in memory.steps
        ],
    }


def _idle(gaps: tuple[IdleGap, ...]) -> list[dict[str, Any]]:
    by_cause: dict[str, list[int]] = defaultdict(list)
    for gap in gaps:
        by_cause[gap.cause.value].append(gap.end_ns - gap.start_ns)
    rows = [
        {"cause": cause, "count": len(lengths), "total_us": ns_to_us(sum(lengths))}
        for cause, lengths in by_cause.items()
    ]
    return sorted(rows, key=lambda row: -float(row["total_us"]))


def _candidate(item: FusionCandidate) -> dict[str, Any]:
    saving = item.saving_ns
    return {
        "pattern": item.pattern,
        "title": item.title,
        "replacement": item.replacement,
        "matched_by": item.matched_by,
        "count": item.count,
        "total_us": ns_to_us(item.total_ns),
        "gap_us": ns_to_us(item.gap_ns),
        "launches": item.launches,
        "bound": item.bound,
        "saving_us": {"low": _us(saving.low), "expected": _us(saving.expected), "high": _us(saving.high)},
        "reason": item.reason,
        "events": [list(occurrence.events) for occurrence in item.occurrences],
    }


def _collective(item: Collective) -> dict[str, Any]:
    bandwidth = item.bandwidth_bytes_per_s
    return {
        "name": item.name,
        "group": item.group,
        "group_name": item.group_name,
        "step": item.step,
        "start_us": ns_to_us(item.start_ns),
        "bytes": item.bytes,
        "elapsed_us": ns_to_us(item.elapsed_ns),
        "wait_us": _us(item.wait_ns),
        "transfer_us": _us(item.transfer_ns),
        "exposed_us": ns_to_us(item.exposed_ns),
        "hideable_us": _us(item.hideable_ns),
        "late_rank": item.late_rank,
        "missing_ranks": list(item.missing_ranks),
        "vendor": {
            "transit_us": _us(item.vendor_transit_ns),
            "wait_us": _us(item.vendor_wait_ns),
            "idle_us": _us(item.vendor_idle_ns),
        },
        "bandwidth_gb_per_s": None if bandwidth is None else bandwidth / 1e9,
    }
