"""The runs a user has tried, as a tree: which run each was made from, what was on, what it gave."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profiler_gui.session.document import Document
from profiler_gui.session.toggles import Chosen

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.whatif.results import Side, WhatIf

BASELINE = 0
"""Number of the run as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class TriedRun:
    """One run.

    Attributes:
        number: Counts from 0, the baseline.
        parent: Number of the run whose toggles were changed; None for the baseline.
        chosen: What was on.
        answer: The engine's; None for the baseline before anything was tried.
        timeline: Its traces; None until they arrive.
    """

    number: int
    parent: int | None
    chosen: Chosen
    answer: WhatIf | None = None
    timeline: Document | None = None

    @property
    def side(self) -> Side | None:
        """Its figures; None while they are not known."""
        if self.answer is None:
            return None
        return self.answer.baseline if self.number == BASELINE else self.answer.candidate


@dataclass(frozen=True, slots=True)
class RunTree:
    """All runs tried on one subject.

    Attributes:
        runs: By number; never empty.
        current: Number of the run whose toggles are set, or were last set and answered.
    """

    runs: tuple[TriedRun, ...] = (TriedRun(BASELINE, None, {}),)
    current: int = BASELINE

    def __iter__(self) -> Iterator[TriedRun]:
        return iter(self.runs)

    def __getitem__(self, number: int) -> TriedRun:
        return self.runs[number]

    @property
    def baseline(self) -> TriedRun:
        """The run as it is."""
        return self.runs[BASELINE]

    def found(self, chosen: Chosen) -> TriedRun | None:
        """Returns the answered run with exactly this on; None where it was not tried yet."""
        key = _key(chosen)
        return next((run for run in self.runs if run.answer is not None and _key(run.chosen) == key), None)

    def at(self, number: int) -> RunTree:
        """Returns the tree with another current run."""
        return replace(self, current=number)

    def with_answer(self, chosen: Chosen, answer: WhatIf) -> RunTree:
        """Returns the tree with a run below the current one, which becomes current; the baseline learns its figures."""
        baseline = replace(self.baseline, answer=self.baseline.answer or answer)
        known = (baseline, *self.runs[1:])
        if not chosen:
            return RunTree((replace(baseline, answer=answer), *self.runs[1:]), BASELINE)
        found = self.found(chosen)
        if found is not None:
            renewed = replace(found, answer=answer)
            return RunTree(tuple(renewed if run.number == found.number else run for run in known), found.number)
        number = len(known)
        return RunTree((*known, TriedRun(number, self.current, chosen, answer)), number)

    def with_timeline(self, number: int, timeline: Document) -> RunTree:
        """Returns the tree with the timeline of a run."""
        runs = tuple(replace(run, timeline=timeline) if run.number == number else run for run in self.runs)
        return replace(self, runs=runs)

    def children(self, number: int) -> tuple[TriedRun, ...]:
        """Returns the runs made from one."""
        return tuple(run for run in self.runs if run.parent == number)


def _key(chosen: Chosen) -> Hashable:
    return frozenset((key, frozenset(values.items())) for key, values in chosen.items())
