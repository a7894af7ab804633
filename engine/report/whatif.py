"""A what-if for people and for scripts (``cannscope.whatif/1``)."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes, format_duration_ns
from engine.core.units import NS_PER_US
from engine.optimizations.fitting import Platform
from engine.optimizations.interface import Applicability, Verdict
from engine.optimizations.selection import Enabled
from engine.report.optimizations import SIMULATOR_ONLY, switch_documents, switches_on
from engine.report.side import side_document, side_rows
from engine.whatif.results import Side, WhatIf

SCHEMA = "cannscope.whatif/1"
SHOWN_OPERATORS = 15
_SHOWN_SWITCHES = 2
_OF_A_RERUN = (
    "baseline",
    "candidate",
    "devices_for_equal_throughput",
    "inferred_share_ratio",
    "speedup_ratio",
    "step_time_delta_us",
    "peak_reserved_delta_bytes",
    "replay_error_ratio",
)
"""Keys that are null where nothing was switched on."""
MARKS = {
    Verdict.APPLIES: "+",
    Verdict.ALREADY_ON: "=",
    Verdict.NO_EFFECT: "0",
    Verdict.NEEDS_TWIN: "~",
    Verdict.UNKNOWN: "?",
}


def whatif_document(result: WhatIf, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a what-if; durations in µs, sizes in bytes, shares as ratios."""
    ran = bool(result.baseline.mean_step_ns and result.candidate.mean_step_ns)
    delta_ns = result.candidate.mean_step_ns - result.baseline.mean_step_ns
    return {
        "schema": SCHEMA,
        "name": result.name,
        "baseline": side_document(result.baseline, provenance),
        "candidate": side_document(result.candidate, provenance),
        "devices_for_equal_throughput": {
            "baseline": result.baseline.device_count,
            "candidate": result.devices_for_equal_throughput,
        },
        "inferred_share_ratio": result.inferred_share_ratio,
        "speedup_ratio": result.speedup_ratio,
        "step_time_delta_us": delta_ns / NS_PER_US if ran else None,
        "peak_reserved_delta_bytes": reserved_delta_bytes(result),
        "replay_error_ratio": result.replay_error_ratio,
        "weak": result.weak,
        "gain": _gain_document(result, ran),
        "enabled": [_enabled_document(item, result.platform) for item in result.enabled],
        "refused": [{"id": item.id, "reason": item.reason} for item in result.refused],
        "applicability": applicability_rows(result.applicability),
        "contributions": [
            {"id": item.id, "gain_us": item.gain_ns / NS_PER_US, "alone_us": item.alone_ns / NS_PER_US}
            for item in result.contributions
        ],
        "operators": operator_rows(result.baseline, result.candidate),
        "assumptions": list(result.assumptions),
        "notes": list(result.notes),
        "provenance": provenance,
    }


def reserved_delta_bytes(result: WhatIf) -> int | None:
    """Returns candidate − baseline of the fullest rank, None where memory is not known."""
    before, after = result.baseline.worst_reserved_bytes, result.candidate.worst_reserved_bytes
    return None if before is None or after is None else after - before


def _gain_document(result: WhatIf, ran: bool) -> dict[str, Any]:
    step_ns = result.baseline.mean_step_ns
    values = {"low": result.gain.low_ns, "expected": result.gain.expected_ns, "high": result.gain.high_ns}
    return {
        "time_us": {name: value / NS_PER_US if ran else None for name, value in values.items()},
        "time_ratio": {name: value / step_ns if ran else None for name, value in values.items()},
        "method": "rerun",
        "assumptions": list(result.assumptions),
    }


def _enabled_document(item: Enabled, platform: Platform | None) -> dict[str, Any]:
    optimization = item.optimization
    return {
        "id": item.id,
        "title": optimization.title,
        "parameters": dict(item.parameters),
        "switches": switch_documents(optimization, platform),
        "simulator_only": optimization.simulator_only,
        "risk": optimization.risk,
        "undo": optimization.undo,
        "verify": optimization.verify,
    }


def applicability_rows(found: Mapping[str, Applicability]) -> list[dict[str, str]]:
    """Returns whether each optimization does something, and why."""
    return [{"id": name, "verdict": item.verdict.value, "reason": item.reason} for name, item in found.items()]


def operator_rows(baseline: Side, candidate: Side) -> list[dict[str, Any]]:
    """Returns the operators of both sides, the largest change first."""
    rows = []
    for name in {**baseline.operator_ns, **candidate.operator_ns}:
        before, after = baseline.operator_ns.get(name, 0), candidate.operator_ns.get(name, 0)
        rows.append(
            {
                "name": name,
                "baseline_us": before / NS_PER_US,
                "candidate_us": after / NS_PER_US,
                "delta_us": (after - before) / NS_PER_US,
            }
        )
    return sorted(rows, key=lambda row: (-abs(row["delta_us"]), -row["baseline_us"], row["name"]))


def applicability_document(name: str, found: Mapping[str, Applicability]) -> dict[str, Any]:
    """Returns the document of a what-if nothing was switched on in: what could be."""
    return {
        "schema": SCHEMA,
        "name": name,
        **dict.fromkeys(_OF_A_RERUN),
        "operators": [],
        "applicability": applicability_rows(found),
    }


def applicability_text(name: str, found: Mapping[str, Applicability]) -> RenderableType:
    """Returns what could be switched on, what that would do first."""
    table = Table("", "id", "verdict", "why", box=None, title=name, title_justify="left")
    order = list(MARKS)
    for identifier, item in sorted(found.items(), key=lambda pair: order.index(pair[1].verdict)):
        table.add_row(MARKS[item.verdict], identifier, item.verdict.value, Text(item.reason))
    return Group(table, Text("Try one: cannscope whatif PATH --enable ID"))


def whatif_text(result: WhatIf) -> RenderableType:
    """Returns a what-if for people: the answer, how sure it is, what each part gives, where the time went."""
    parts: list[RenderableType] = [Text(answer(result), style="bold")]
    parts += [Text(line) for line in _certainty(result)]
    if result.refused:
        return Group(*parts, *(Text(f"refused: {item.reason}") for item in result.refused))
    parts.append(_contribution_table(result))
    if result.contributions:
        parts.append(_side_table(result))
    rows = [row for row in operator_rows(result.baseline, result.candidate) if row["delta_us"]]
    if rows:
        parts.append(_operator_table(rows[:SHOWN_OPERATORS]))
    parts += [Text(line) for line in _switch_lines(result)]
    return Group(*parts)


def answer(result: WhatIf) -> str:
    """Returns the answer in one sentence: "812 → 741 ms (−7…−10 %), reserved −4.1 GiB"."""
    if result.refused:
        return f"{result.name}: refused, nothing was rerun"
    before, after = result.baseline.mean_step_ns, result.candidate.mean_step_ns
    if not before or not after:
        return f"{result.name}: {'; '.join(result.notes)}"
    what = "step" if result.baseline.serving is None else "request"
    parts = [f"{what} {format_duration_ns(before)} → {format_duration_ns(after)} ({_range(result)})"]
    delta = reserved_delta_bytes(result)
    if delta:
        parts.append(f"reserved {'+' if delta > 0 else '−'}{format_bytes(abs(delta))}")
    if result.candidate.tokens_per_s and result.baseline.tokens_per_s:
        parts.append(f"{result.baseline.tokens_per_s:,.0f} → {result.candidate.tokens_per_s:,.0f} tokens/s")
    count, devices = result.baseline.device_count, result.devices_for_equal_throughput
    if devices is not None and devices != count:
        parts.append(f"the same throughput with {devices} devices instead of {count}")
    return f"{result.name}: {', '.join(parts)}"


def _range(result: WhatIf) -> str:
    step_ns = result.baseline.mean_step_ns
    low, high = (-100 * value / step_ns + 0.0 for value in (result.gain.low_ns, result.gain.high_ns))
    if not result.gain.expected_ns and round(low, 1) == round(high, 1):
        return "no change"
    if round(low, 1) == round(high, 1):
        return f"{-100 * result.gain.expected_ns / step_ns:+.1f} %"
    return f"{low:+.1f} … {high:+.1f} %"


def _certainty(result: WhatIf) -> list[str]:
    lines = []
    if result.replay_error_ratio is not None:
        lines.append(f"replaying the unchanged capture is off by {100 * result.replay_error_ratio:+.2f} %")
    if result.replay_error_ratio is not None and result.inferred_share_ratio is not None:
        lines.append(f"{result.inferred_share_ratio:.0%} of the gain rests on inferred dependencies")
    if result.weak:
        lines.append(f"weak prediction: {result.weak}")
    return lines + [f"note: {note}" for note in result.notes]


def _contribution_table(result: WhatIf) -> Table:
    table = Table("switched on", "gives", "alone", "why", box=None)
    gains = {item.id: item for item in result.contributions}
    for item in result.enabled:
        found = gains.get(item.id)
        verdict = result.applicability.get(item.id)
        why = f"{verdict.verdict.value}: {verdict.reason}" if verdict else ""
        gives = [_saved(value) for value in (found.gain_ns, found.alone_ns)] if found else ["–", "–"]
        table.add_row(item.text, *gives, Text(why))
    return table


def _side_table(result: WhatIf) -> Table:
    table = Table("", "before", "after", box=None)
    for row in side_rows(result.baseline, result.candidate):
        table.add_row(*row)
    return table


def _saved(gain_ns: float) -> str:
    if round(gain_ns) == 0:
        return "0"
    return ("−" if gain_ns > 0 else "+") + format_duration_ns(abs(gain_ns))


def _operator_table(rows: list[dict[str, Any]]) -> Table:
    table = Table("operator", "before", "after", "change", box=None)
    for row in rows:
        before, after, delta = (row[key] * NS_PER_US for key in ("baseline_us", "candidate_us", "delta_us"))
        sign = "+" if delta > 0 else "−"
        table.add_row(
            Text(str(row["name"])[:70]),
            format_duration_ns(before),
            format_duration_ns(after),
            sign + format_duration_ns(abs(delta)),
        )
    return table


def _switch_lines(result: WhatIf) -> list[str]:
    """Returns how what was switched on is switched on for real, and what the prediction rests on."""
    lines = []
    applied = {item.id for item in result.contributions}
    for item in result.enabled:
        if item.id not in applied:
            continue
        if item.optimization.simulator_only:
            lines.append(f"{item.id}: {SIMULATOR_ONLY}")
        fit = switches_on(item.optimization, result.platform)
        for switch in fit[:_SHOWN_SWITCHES]:
            versions = f" ({switch.versions})" if switch.versions else ""
            note = f" ({switch.note})" if switch.note else ""
            lines.append(f"{item.id}: {switch.framework}{versions}: {switch.switch}{note}")
        if not fit and result.platform is not None:
            where = result.platform.devices
            lines.append(f"{item.id}: no public switch is known for {where} and this job's framework")
    return lines + [f"assumes: {text}" for text in result.assumptions]
