"""The advice as tables of plain values: what CSV files and spreadsheets hold."""

from dataclasses import dataclass
from typing import TypeAlias

from engine.advisor.recommendations import Advice, Recommendation
from engine.analyses.fusion import Range3
from engine.core.units import NS_PER_US
from engine.report.advice_document import evidence_document

Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class AdviceTable:
    """One table.

    Attributes:
        title: Name of the sheet.
        columns: Titles, with units.
        rows: Values; None where there is none.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


_RECOMMENDATIONS = (
    "place", "id", "title", "category", "severity", "treats", "problem", "root_cause", "optimization",
    "gain_low_us", "gain_expected_us", "gain_high_us", "gain_expected_ratio", "memory_expected_bytes", "method",
    "assumptions", "how_to_apply", "conflicts", "risk", "undo", "verify", "simulator_only",
)  # fmt: skip


def recommendations_table(advice: Advice) -> AdviceTable:
    """Returns one row per recommendation, in order."""
    rows = tuple(_row(place, item) for place, item in enumerate(advice.recommendations, start=1))
    return AdviceTable("Recommendations", _RECOMMENDATIONS, rows)


def _row(place: int, item: Recommendation) -> tuple[Cell, ...]:
    gain = item.gain
    low, expected, high = _microseconds(gain.time_ns)
    switches = "\n".join(
        f"{switch.framework}: {switch.switch}" + (f" ({switch.note})" if switch.note else "")
        for switch in item.how_to_apply
    )
    return (
        place,
        item.id,
        item.title,
        item.category.value,
        item.severity.value,
        item.loss.title,
        item.problem,
        item.root_cause,
        item.optimization,
        low,
        expected,
        high,
        None if gain.time_ratio is None else gain.time_ratio.expected,
        None if gain.memory_bytes is None else gain.memory_bytes.expected,
        gain.method.value,
        "\n".join(gain.assumptions),
        switches,
        "\n".join(f"{conflict.other}: {conflict.reason}" for conflict in item.conflicts),
        item.risk,
        item.undo,
        item.verify,
        "yes" if item.simulator_only else "no",
    )


def _microseconds(values: Range3 | None) -> tuple[float | None, float | None, float | None]:
    if values is None:
        return None, None, None
    return values.low / NS_PER_US, values.expected / NS_PER_US, values.high / NS_PER_US


def advice_tables(advice: Advice) -> tuple[AdviceTable, ...]:
    """Returns everything: recommendations, evidence, findings, what was checked, what was considered."""
    evidence: list[tuple[Cell, ...]] = []
    findings: list[tuple[Cell, ...]] = []
    for finding in advice.findings:
        cost = None if finding.cost_ns is None else finding.cost_ns / NS_PER_US
        share = finding.share_ratio
        findings.append((finding.rule, finding.severity.value, finding.problem, finding.root_cause, cost, share))
        for part in finding.evidence:
            told = evidence_document(part)
            where = told["range_us"] or {"start": None, "end": None}
            evidence.append(
                (
                    *(finding.rule, told["metric"], told["value"], told["unit"], told["threshold"], told["rank"]),
                    *(where["start"], where["end"], ", ".join(map(str, told["events"])), told["how"]),
                )
            )
    checked: list[tuple[Cell, ...]] = [(rule, "fine", "") for rule in advice.checked_and_fine]
    checked += [(item.rule, "not checked", item.reason) for item in advice.not_checked]
    considered: tuple[tuple[Cell, ...], ...] = tuple((item.id, item.verdict, item.reason) for item in advice.passed)
    measured = ("rule", "metric", "value", "unit", "threshold", "rank", "start_us", "end_us", "events", "how")
    return (
        recommendations_table(advice),
        AdviceTable(
            "Findings", ("rule", "severity", "problem", "root_cause", "cost_us", "share_ratio"), tuple(findings)
        ),
        AdviceTable("Evidence", measured, tuple(evidence)),
        AdviceTable("Checked", ("rule", "result", "reason"), tuple(checked)),
        AdviceTable("Considered", ("id", "verdict", "reason"), considered),
    )
