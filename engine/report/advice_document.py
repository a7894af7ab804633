"""The ``advise`` document: durations in µs, sizes in bytes, shares as ratios, None where nothing can be said."""

from typing import Any

from engine.advisor.findings import Evidence, Finding, Unit
from engine.advisor.path_shares import PathShares
from engine.advisor.recommendations import Advice, Combined, PredictedGain, Recommendation
from engine.analyses.fusion import Range3
from engine.core.units import NS_PER_US
from engine.report.diagnostics import diagnostics_document

SCHEMA = "cannscope.advice/1"
_EDGE_UNITS = {Unit.NS: ("us", 1 / NS_PER_US)}
"""Unit of the engine → unit of files, and the factor."""


def advice_document(advice: Advice) -> dict[str, Any]:
    """Returns the document ``cannscope.advice/1`` of CLI.md."""
    examination = advice.examination
    has_step = examination.pace_rank is not None
    return {
        "schema": SCHEMA,
        "name": examination.name,
        "path": examination.job.path,
        "step_us": examination.step_ns / NS_PER_US if has_step else None,
        "slowest_rank": examination.pace_rank,
        "recommendations": [recommendation_document(item) for item in advice.recommendations],
        "combined": None if advice.combined is None else _combined(advice.combined),
        "critical_path": None if advice.path is None else _path(advice.path),
        "findings": [finding_document(item) for item in advice.findings],
        "checked_and_fine": list(advice.checked_and_fine),
        "not_checked": [{"rule": item.rule, "reason": item.reason} for item in advice.not_checked],
        "considered": [{"id": item.id, "verdict": item.verdict, "reason": item.reason} for item in advice.passed],
        "notes": list(advice.notes),
        "diagnostics": diagnostics_document(examination.job, examination.summary.communication.diagnostics),
    }


def recommendation_document(item: Recommendation) -> dict[str, Any]:
    """Returns one element of ``recommendations``."""
    return {
        "id": item.id,
        "title": item.title,
        "category": item.category.value,
        "severity": item.severity.value,
        "problem": item.problem,
        "evidence": [evidence_document(part) for finding in item.findings for part in finding.evidence],
        "root_cause": item.root_cause,
        "treats": {"loss": item.loss.title, "cost_us": item.loss.cost_ns / NS_PER_US},
        "rules": [finding.rule for finding in item.findings],
        "warnings": [text for finding in item.findings for text in finding.warnings],
        "optimization": item.optimization,
        "needs": list(item.needs),
        "simulator_only": item.simulator_only,
        "gain": gain_document(item.gain),
        "how_to_apply": [
            {
                "framework": switch.framework,
                "versions": switch.versions,
                "switch": switch.switch,
                "documented_in": switch.documented_in,
                "note": switch.note,
            }
            for switch in item.how_to_apply
        ],
        "conflicts": [{"with": conflict.other, "reason": conflict.reason} for conflict in item.conflicts],
        "risk": item.risk,
        "undo": item.undo,
        "verify": item.verify,
    }


def finding_document(item: Finding) -> dict[str, Any]:
    """Returns one element of ``findings``."""
    return {
        "rule": item.rule,
        "category": item.category.value,
        "severity": item.severity.value,
        "problem": item.problem,
        "root_cause": item.root_cause,
        "cost_us": None if item.cost_ns is None else item.cost_ns / NS_PER_US,
        "share_ratio": item.share_ratio,
        "stops_run": item.stops_run,
        "warnings": list(item.warnings),
        "evidence": [evidence_document(part) for part in item.evidence],
    }


def evidence_document(item: Evidence) -> dict[str, Any]:
    """Returns one element of ``evidence``: what was measured, where, and how."""
    unit, factor = _EDGE_UNITS.get(item.unit, (item.unit.value, 1.0))
    return {
        "metric": item.metric,
        "value": item.value * factor,
        "unit": unit,
        "threshold": None if item.threshold is None else item.threshold * factor,
        "rank": item.rank,
        "range_us": None
        if item.range is None
        else {"start": item.range.start_ns / NS_PER_US, "end": item.range.end_ns / NS_PER_US},
        "events": list(item.events),
        "how": item.how,
    }


def gain_document(gain: PredictedGain) -> dict[str, Any]:
    """Returns the ``gain`` of CLI.md; what is not quantifiable is None, never 0."""
    return {
        "time_us": _range(gain.time_ns, 1 / NS_PER_US),
        "time_ratio": _range(gain.time_ratio),
        "memory_bytes": _range(gain.memory_bytes),
        "method": gain.method.value,
        "weak": gain.weak,
        "assumptions": list(gain.assumptions),
    }


def _range(values: Range3 | None, factor: float = 1.0) -> dict[str, float | None]:
    if values is None:
        return {"low": None, "expected": None, "high": None}
    return {"low": values.low * factor, "expected": values.expected * factor, "high": values.high * factor}


def _path(item: PathShares) -> dict[str, Any]:
    return {
        "length_us": item.length_ns / NS_PER_US,
        "parts": [{"part": name, "total_us": ns / NS_PER_US} for name, ns in item.parts.items()],
        "ranks": [{"rank": rank, "total_us": ns / NS_PER_US} for rank, ns in item.ranks.items()],
    }


def _combined(item: Combined) -> dict[str, Any]:
    return {
        "optimizations": list(item.optimizations),
        "gain": gain_document(item.gain),
        "sum_of_single_gains_us": item.sum_ns / NS_PER_US,
    }
