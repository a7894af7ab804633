"""The advisor's recommendations as findings of the first screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler_gui.panels.overview.evidence import Evidence
from profiler_gui.panels.overview.findings import SHOWN_COUNT, Checklist, FindingText
from profiler_gui.session.following import evidence_place
from profiler_gui.session.selection import NOTHING
from profiler_gui.toolkit.labels import sentence
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the advisor is imported after the first paint
    from engine.advisor.recommendations import Recommendation
    from profiler_gui.session.advising import Advised
    from profiler_gui.session.document import Document


def advised_findings(advice: Advised, document: Document) -> tuple[FindingText, ...]:
    """Returns the best recommendations, as many as the first screen shows, with what a rerun gives."""
    return tuple(_finding(item, document) for item in advice.recommendations[:SHOWN_COUNT])


def advised_checklist(advice: Advised) -> Checklist:
    """Returns what the advisor checked and found fine, and what it could not check."""
    return Checklist(advice.fine, advice.not_checked)


def _finding(item: Recommendation, document: Document) -> FindingText:
    from engine.report.advice_words import gain_text

    page, selection = evidence_place(item.findings[0], document)
    title = tr("{title} (simulator only)", title=item.title) if item.simulator_only else item.title
    return FindingText(
        title=title,
        detail=sentence(item.problem),
        gain=gain_text(item.gain),
        cost_ns=item.findings[0].cost_ns or 0.0,
        evidence=Evidence(page, selection or NOTHING, zooms=selection is not None),
        optimizations=item.enabled,
    )
