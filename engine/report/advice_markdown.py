"""The advice as Markdown."""

from collections.abc import Iterable

from engine.advisor.recommendations import Advice, Recommendation
from engine.analyses.headline import headline
from engine.core.number_format import format_duration_ns
from engine.report.advice_words import evidence_place, gain_text, try_command, value_text
from engine.report.diagnostics import diagnostics_lines
from engine.report.escaping import markdown_code, markdown_text


def advice_markdown(advice: Advice) -> str:
    """Returns the whole document; text of users and captures stands as text."""
    examination = advice.examination
    lines = [f"# Advice for {markdown_text(examination.name)}", ""]
    lines += [f"- {markdown_text(headline(examination.summary, rank).sentence)}" for rank in examination.steps]
    lines += [f"- {markdown_text(advice.path.sentence)}"] if advice.path is not None else []
    lines += ["", "## What to do", ""]
    if not advice.recommendations:
        lines += ["Nothing to recommend.", ""]
    for place, item in enumerate(advice.recommendations, start=1):
        lines += _recommendation(place, item)
    if advice.combined is not None:
        combined = advice.combined
        names = ", ".join(markdown_code(text) for text in combined.optimizations)
        told = markdown_text(gain_text(combined.gain))
        whole = markdown_text(format_duration_ns(combined.sum_ns))
        lines += [f"**Together** ({names}), rerun as one: {told}; the single gains would add up to {whole}.", ""]
    lines += _list(
        "Found, and nothing tried helps", (f"{item.problem}; {item.root_cause}" for item in advice.unanswered)
    )
    lines += _list("Checked and fine", advice.checked_and_fine)
    lines += _list("Not checked", (f"{item.rule}: {item.reason}" for item in advice.not_checked))
    lines += _list(
        "Considered, not recommended", (f"{item.id}: {item.verdict}: {item.reason}" for item in advice.passed)
    )
    problems = diagnostics_lines(examination.job, examination.summary.communication.diagnostics)
    lines += _list("Notes", (*advice.notes, *problems))
    return "\n".join(lines).rstrip() + "\n"


def _recommendation(place: int, item: Recommendation) -> list[str]:
    label = " (simulator feature)" if item.simulator_only else ""
    lines = [f"### {place}\\. {markdown_text(item.title)}{label}", ""]
    lines += [
        f"- **Severity:** {item.severity.value}, {item.category.value}",
        f"- **Treats:** {markdown_text(item.loss.title)}",
        f"- **Problem:** {markdown_text(item.problem)}",
        f"- **Root cause:** {markdown_text(item.root_cause)}",
        f"- **Gain:** {markdown_text(gain_text(item.gain))}",
    ]
    for switch in item.how_to_apply:
        told = ", ".join(filter(None, (switch.versions, switch.documented_in, switch.note)))
        rest = f" ({markdown_text(told)})" if told else ""
        lines.append(f"- **Set:** {markdown_text(switch.framework)}: {markdown_code(switch.switch)}{rest}")
    command = try_command(item)
    if command:
        lines.append(f"- **Try:** {markdown_code(command)}")
    conflicts = "; ".join(f"{conflict.other}: {conflict.reason}" for conflict in item.conflicts)
    facts = (("Risk", item.risk), ("Conflicts", conflicts), ("Undo", item.undo), ("Verify", item.verify))
    lines += [f"- **{name}:** {markdown_text(text)}" for name, text in facts if text]
    lines += ["", "| measured | value | where | how |", "| --- | ---: | --- | --- |"]
    lines += [
        f"| {markdown_text(part.metric)} | {markdown_text(value_text(part.value, part.unit))} "
        f"| {markdown_text(evidence_place(part))} | {markdown_text(part.how)} |"
        for finding in item.findings
        for part in finding.evidence
    ]
    lines.append("")
    if item.gain.assumptions:
        lines += ["The gain rests on:", "", *(f"- {markdown_text(text)}" for text in item.gain.assumptions), ""]
    return lines


def _list(title: str, texts: Iterable[str]) -> list[str]:
    rows = [f"- {markdown_text(text)}" for text in texts]
    return [f"## {title}", "", *rows, ""] if rows else []
