"""The advice as one HTML file that needs nothing else: plots are inline SVG, no scripts, light, dark and printable."""

from collections.abc import Sequence
from importlib import metadata
from pathlib import PurePath

from engine.advisor.recommendations import Advice, Recommendation
from engine.analyses.headline import headline
from engine.core.number_format import format_duration_ns
from engine.report.advice_plots import breakdown_plot, gains_plot, memory_plot, memory_text
from engine.report.advice_style import STYLE
from engine.report.advice_words import evidence_place, gain_text, try_command, value_text
from engine.report.diagnostics import diagnostics_lines
from engine.report.escaping import html_text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SHOWN_HEADLINES = 8
NO_BREAK = "\u00a0"
"""Keeps a number and its unit on one line."""


def advice_html(advice: Advice) -> str:
    """Returns the whole page."""
    examination = advice.examination
    title = f"Advice for {PurePath(examination.name).name or examination.name}"
    cards = "".join(_card(place, item) for place, item in enumerate(advice.recommendations, 1))
    body = "".join((
        _header(advice, title),
        _section("Where the step goes", breakdown_plot(examination)),
        _section("What would win how much", gains_plot(advice.recommendations, advice.combined), _gain_note(advice)),
        _section("What to do", cards or _none()),
        _section("Memory", memory_plot(examination), html_text(memory_text(examination))),
        _checked(advice),
    ))  # fmt: skip
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{html_text(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{html_text(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _header(advice: Advice, title: str) -> str:
    examination = advice.examination
    sentences = [headline(examination.summary, rank).sentence for rank in list(examination.steps)[:_SHOWN_HEADLINES]]
    software = sorted(
        {f"{key} {value}" for entry in examination.job.ranks for key, value in entry.trace.metadata.software.items()}
    )
    facts = [
        *((examination.name,) if examination.is_recorded else ()),
        f"{len(examination.job.ranks)} rank{'s' if len(examination.job.ranks) != 1 else ''}",
        "recorded" if examination.is_recorded else "simulated",
        *software[:6],
        f"CannScope {metadata.version('cannscope')}",
    ]
    if advice.path is not None:
        sentences.append(advice.path.sentence)
    told = "".join(f"<li>{html_text(text.replace(' %', NO_BREAK + '%'))}</li>" for text in sentences)
    listed = html_text(" · ".join(facts))
    return f'<header><h1>{html_text(title)}</h1><p class="facts">{listed}</p><ul>{told}</ul></header>'


def _section(title: str, content: str, note: str = "") -> str:
    if not content:
        return ""
    caption = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{html_text(title)}</h2>{content}{caption}</section>"


def _none() -> str:
    return "<p>Nothing to recommend.</p>"


def _gain_note(advice: Advice) -> str:
    note = "Numbers are those of the recommendations below. Filled: rerun with the change. Outlined: reckoned."
    if advice.combined is not None:
        combined = advice.combined
        note += (
            f" Together: {len(combined.optimizations)} changes rerun as one; their single gains would add up to "
            f"{format_duration_ns(combined.sum_ns)}."
        )
    return html_text(note)


def _card(place: int, item: Recommendation) -> str:
    label = '<span class="pill sim">simulator feature</span>' if item.simulator_only else ""
    head = (
        f'<h3><span class="place">{place}</span>{html_text(item.title)}'
        f'<span class="pill {item.severity.value}">{item.severity.value}</span>{label}</h3>'
    )
    treats = f'<p class="loss">{html_text(item.loss.title)}</p>' if item.loss.title != item.problem else ""
    problem = f"<p>{html_text(item.problem)}. <span class='dim'>{html_text(_sentence(item.root_cause))}</span></p>"
    gain = f'<p class="gain">{html_text(gain_text(item.gain))}</p>'
    return f"<article>{head}{treats}{problem}{gain}{_apply(item)}{_facts(item)}{_evidence(item)}</article>"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _apply(item: Recommendation) -> str:
    rows = []
    for switch in item.how_to_apply:
        told = " · ".join(filter(None, (switch.versions, switch.documented_in, switch.note)))
        rows.append(
            f"<tr><th>{html_text(switch.framework)}</th><td><code>{html_text(switch.switch)}</code>"
            f'<span class="dim">{html_text(told)}</span></td></tr>'
        )
    command = try_command(item)
    if command:
        rows.append(f"<tr><th>try it</th><td><code>{html_text(command)}</code></td></tr>")
    return f"<table class='apply'>{''.join(rows)}</table>" if rows else ""


def _facts(item: Recommendation) -> str:
    conflicts = "; ".join(f"{conflict.other}: {conflict.reason}" for conflict in item.conflicts)
    facts = (("Risk", item.risk), ("Conflicts", conflicts), ("Undo", item.undo), ("Verify", item.verify))
    rows = "".join(f"<dt>{name}</dt><dd>{html_text(text)}</dd>" for name, text in facts if text)
    return f"<dl>{rows}</dl>" if rows else ""


def _evidence(item: Recommendation) -> str:
    rows = "".join(
        f"<tr><td>{html_text(part.metric)}</td><td class='number'>{html_text(value_text(part.value, part.unit))}</td>"
        f"<td>{html_text(evidence_place(part))}</td><td class='dim'>{html_text(part.how)}</td></tr>"
        for finding in item.findings
        for part in finding.evidence
    )
    told = "".join(f"<li>{html_text(text)}</li>" for text in item.gain.assumptions)
    assumptions = f"<p>The gain rests on:</p><ul>{told}</ul>" if told else ""
    if not rows and not assumptions:
        return ""
    table = f"<table class='evidence'><tr><th>measured</th><th>value</th><th>where</th><th>how</th></tr>{rows}</table>"
    return f"<details><summary>Evidence and assumptions</summary>{table if rows else ''}{assumptions}</details>"


def _checked(advice: Advice) -> str:
    examination = advice.examination
    fine = f"<p>{html_text(', '.join(advice.checked_and_fine))}</p>" if advice.checked_and_fine else ""
    parts = (
        _listed("Found, and nothing tried helps", [f"{item.problem}; {item.root_cause}" for item in advice.unanswered]),
        _section("Checked and fine", fine),
        _listed("Not checked", [f"{item.rule}: {item.reason}" for item in advice.not_checked]),
        _listed("Considered, not recommended", [f"{item.id}: {item.verdict}: {item.reason}" for item in advice.passed]),
        _listed(
            "Notes", [*advice.notes, *diagnostics_lines(examination.job, examination.summary.communication.diagnostics)]
        ),
    )
    return "".join(parts)


def _listed(title: str, lines: Sequence[str]) -> str:
    return _section(title, f"<ul>{''.join(f'<li>{html_text(text)}</li>' for text in lines)}</ul>" if lines else "")
