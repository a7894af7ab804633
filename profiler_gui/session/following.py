"""Where the buttons of a recommendation lead: to its evidence, and to its toggle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler_gui.session.selection import EventSelection, RangeSelection, Selection
from profiler_gui.session.toggles import Toggles

if TYPE_CHECKING:  # the advisor is imported after the first paint
    from engine.advisor.findings import Finding
    from profiler_gui.session.document import Document


def evidence_place(finding: Finding, document: Document) -> tuple[str, Selection | None]:
    """Returns the page on which a finding shows, and what to select there.

    The first piece of evidence with a place in the document decides; where none has one, the page that is about the
    finding's category is shown as it is.
    """
    for item in finding.evidence:
        if item.rank is None or item.rank not in document.ranks:
            continue
        count = len(document.job.rank_trace(item.rank).trace.events)
        if item.events and 0 <= item.events[0] < count:
            return "timeline", EventSelection(item.rank, int(item.events[0]))
        if item.range is not None:
            return "timeline", RangeSelection(item.rank, item.range.start_ns, item.range.end_ns)
    pages = {"memory": "memory", "communication": "communication", "fusion": "fusion"}
    return pages.get(finding.category.value, "timeline"), None


def toggles_with(toggles: Toggles, *texts: str) -> Toggles:
    """Returns toggles with more switched on, with what must be on with it.

    Args:
        toggles: What is on.
        texts: Optimizations as ``--enable`` takes them.

    Raises:
        ScenarioError: One is not in the catalogue.
    """
    from engine.optimizations.catalogue import optimization_registry
    from engine.optimizations.selection import enabled_from_texts

    registry = optimization_registry()
    for item in enabled_from_texts(texts, registry):
        wanted = [item.id]
        while wanted:
            identifier = wanted.pop()
            if identifier not in toggles.on:
                toggles = toggles.switched(identifier, on=True)
                wanted += registry[identifier].needs
        defaults = item.optimization.defaults
        for name, value in item.parameters.items():
            toggles = toggles.with_parameter(item.id, name, None if value == defaults[name] else value)
    return toggles
