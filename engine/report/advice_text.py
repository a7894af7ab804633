"""The advice for people at a terminal: one screen of what to do, then what was checked and is fine."""

from collections import defaultdict

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine.advisor.findings import Severity
from engine.advisor.recommendations import Advice, Recommendation
from engine.analyses.headline import headline
from engine.core.number_format import format_duration_ns
from engine.report.advice_words import gain_text, try_command
from engine.report.diagnostics import diagnostics_lines

SHOWN_RECOMMENDATIONS = 6
_STYLES = {Severity.HIGH: "bold red", Severity.MEDIUM: "bold yellow", Severity.LOW: "bold"}


def advice_text(advice: Advice) -> RenderableType:
    """Returns the advice: headline, ranked recommendations, combined gain, what was checked."""
    examination = advice.examination
    parts: list[RenderableType] = []
    if examination.pace_rank is not None:
        parts.append(Text(headline(examination.summary, examination.pace_rank).sentence, style="bold"))
    if advice.path is not None:
        parts.append(Text(advice.path.sentence))
    if not advice.recommendations and not advice.unanswered:
        parts.append(Text("Nothing to recommend."))
    for place, item in enumerate(advice.recommendations[:SHOWN_RECOMMENDATIONS], start=1):
        parts.append(_recommendation(place, item))
    rest = len(advice.recommendations) - SHOWN_RECOMMENDATIONS
    if rest > 0:
        parts.append(Text(f"… and {rest} smaller ones: --json or -o FILE lists all"))
    parts += [Text(f"Nothing tried helps against: {item.problem}; {item.root_cause}") for item in advice.unanswered]
    if advice.combined is not None:
        combined = advice.combined
        parts.append(
            Text(
                f"All that fit together ({len(combined.optimizations)}), rerun as one: {gain_text(combined.gain)}; "
                f"their single gains would add up to {format_duration_ns(combined.sum_ns)}"
            )
        )
    parts += _checked(advice)
    parts += [Text(note) for note in advice.notes]
    parts += [Text(line) for line in diagnostics_lines(examination.job, examination.summary.communication.diagnostics)]
    return Group(*parts)


def _recommendation(place: int, item: Recommendation) -> RenderableType:
    label = " (simulator feature)" if item.simulator_only else ""
    head = Text.assemble((f"{place}. {item.title}{label}", _STYLES[item.severity]), f"  [{item.severity.value}]")
    body = Table.grid(padding=(0, 1))
    body.add_column(style="dim", no_wrap=True)
    body.add_column()
    body.add_row("why", Text(f"{item.problem}; {item.root_cause}"))
    body.add_row("gain", Text(gain_text(item.gain)))
    for switch in item.how_to_apply[:1]:
        body.add_row("set", Text(f"{switch.framework}: {switch.switch}" + (f" ({switch.note})" if switch.note else "")))
    command = try_command(item)
    if command:
        body.add_row("try", Text(command))
    return Group(head, Padding(body, (0, 0, 0, 3)))


def _checked(advice: Advice) -> list[RenderableType]:
    """Returns what was checked, what could not be, and what was considered, as one paragraph each."""
    by_verdict: dict[str, list[str]] = defaultdict(list)
    for item in advice.passed:
        told = f"{item.id} ({item.reason})" if item.reason else item.id
        by_verdict[item.verdict].append(told)
    missing: dict[str, list[str]] = defaultdict(list)
    for lacking in advice.not_checked:
        missing[lacking.reason].append(lacking.rule)
    paragraphs = [("Checked and fine", ", ".join(advice.checked_and_fine))]
    paragraphs += [(verdict.capitalize(), "; ".join(told)) for verdict, told in by_verdict.items()]
    paragraphs.append(("Not checked", "; ".join(f"{', '.join(rules)} ({why})" for why, rules in missing.items())))
    return [Text.assemble((f"{title}: ", "bold"), text) for title, text in paragraphs if text]
