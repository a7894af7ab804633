"""The advice for people at a terminal: one screen of what to do, then what was checked and is fine."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine.advisor.findings import Severity
from engine.advisor.recommendations import Advice, Recommendation
from engine.analyses.headline import headline
from engine.core.number_format import format_duration_ns
from engine.report.advice_words import gain_text
from engine.report.diagnostics import diagnostics_lines

SHOWN_RECOMMENDATIONS = 8
_STYLES = {Severity.HIGH: "bold red", Severity.MEDIUM: "bold yellow", Severity.LOW: "bold"}


def advice_text(advice: Advice) -> RenderableType:
    """Returns the advice: headline, ranked recommendations, combined gain, what was checked."""
    examination = advice.examination
    parts: list[RenderableType] = []
    if examination.pace_rank is not None:
        parts.append(Text(headline(examination.summary, examination.pace_rank).sentence, style="bold"))
    if not advice.recommendations:
        parts.append(Text("Nothing to recommend."))
    for place, item in enumerate(advice.recommendations[:SHOWN_RECOMMENDATIONS], start=1):
        parts.append(_recommendation(place, item))
    rest = len(advice.recommendations) - SHOWN_RECOMMENDATIONS
    if rest > 0:
        parts.append(Text(f"… and {rest} smaller ones: --json or -o FILE lists all"))
    if advice.combined is not None:
        combined = advice.combined
        parts.append(
            Text(
                f"All that fit together ({len(combined.optimizations)}), rerun as one: {gain_text(combined.gain)}; "
                f"their single gains would add up to {format_duration_ns(combined.sum_ns)}"
            )
        )
    if advice.checked_and_fine:
        parts.append(Text(f"Checked and fine: {', '.join(advice.checked_and_fine)}"))
    parts += [Text(f"Not checked: {item.rule}: {item.reason}") for item in advice.not_checked]
    parts += [Text(f"{item.verdict.capitalize()}: {item.id}: {item.reason}") for item in advice.passed]
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
    for switch in item.how_to_apply[:2]:
        body.add_row("set", Text(f"{switch.framework}: {switch.switch}" + (f" ({switch.note})" if switch.note else "")))
    if item.optimization is not None:
        body.add_row("try", Text(f"cannscope whatif … --enable {item.optimization}"))
    return Group(head, Padding(body, (0, 0, 0, 3)))
