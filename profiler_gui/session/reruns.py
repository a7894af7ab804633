"""What optimizations make of run A: reruns in a worker of their own, their history, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.rerunning import (
    Answered,
    Described,
    RerunRequest,
    SubjectPlace,
    TimelinesMapped,
    TimelinesStored,
    describe_in_worker,
    mapped,
    place_of,
    rerun_in_worker,
)
from profiler_gui.session.run_tree import BASELINE, RunTree, TriedRun
from profiler_gui.session.toggles import toggles_of

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.optimizations.interface import Applicability
    from engine.optimizations.selection import Refusal
    from profiler_gui.session.session import Session


class Shown(StrEnum):
    """Which of the compared runs views show."""

    BOTH = "both"
    A = "a"
    B = "b"


RERUN_AFTER_MS = 300
"""A rerun starts this long after the last change of a toggle."""


class Reruns(QObject):
    """Runs what the toggles say, the newest request wins; what was tried before is not run again.

    Args:
        session: Whose run A and toggles are looked at; owns this.
        cache_directory: Where timelines are handed over.

    Signals:
        described: What does something to the subject has arrived, or the subject is another one.
        runs_changed: Another run was answered, its timeline arrived, or others are compared.
        busy_changed: The worker has something to do, or no longer.
        progress_changed: Ratio 0…1 and a phrase.
        failed: A Failure to show.
    """

    described = Signal()
    runs_changed = Signal()
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, session: Session, cache_directory: Path) -> None:
        super().__init__(session)
        self._session = session
        self._cache_directory = cache_directory
        self._place: SubjectPlace | None = None
        self._description: Described | None = None
        self._tree = RunTree()
        self._compared = (BASELINE, BASELINE)
        self._refused: tuple[Refusal, ...] = ()
        self._shown = Shown.BOTH
        self._is_wanted = False
        self._job = LatestJob(self)
        self._job.running_changed.connect(self.busy_changed)
        self._job.progressed.connect(self.progress_changed)
        self._job.delivered.connect(self._take)
        self._job.finished.connect(self._take)
        self._job.failed.connect(self.failed)
        self._debounce = QTimer(self)
        self._debounce.setSingleShot(True)
        self._debounce.setInterval(RERUN_AFTER_MS)
        self._debounce.timeout.connect(self.rerun)
        session.document_changed.connect(self._follow_document)
        session.summary_changed.connect(self._describe_if_wanted)
        session.toggles_changed.connect(self._follow_toggles)

    # What is known

    @property
    def place(self) -> SubjectPlace | None:
        """What is rerun; None without a document."""
        return self._place

    @property
    def applicability(self) -> Mapping[str, Applicability]:
        """By id, at default parameters and with nothing else on; empty until it arrives."""
        return self._description.applicability if self._description else {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the recorded job: switches that conflict with optimizations."""
        return self._description.environment if self._description else {}

    @property
    def is_described(self) -> bool:
        """Whether it is known what does something to the subject."""
        return self._description is not None

    @property
    def tree(self) -> RunTree:
        """Everything tried on the subject."""
        return self._tree

    @property
    def compared(self) -> tuple[TriedRun, TriedRun]:
        """The two runs that are compared: A, by default the run as it is, and B, the newest."""
        before, after = self._compared
        return self._tree[before], self._tree[after]

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """Why the last request was not run; empty where it was."""
        return self._refused

    @property
    def is_busy(self) -> bool:
        """Whether the worker has something to do."""
        return self._job.is_running

    @property
    def is_pending(self) -> bool:
        """Whether the toggles say something that is not answered yet."""
        return self._tree.found(self._session.toggles.chosen) is None and bool(self._session.toggles.on)

    @property
    def shown(self) -> Shown:
        """Which of the compared runs views show: both, or while blinking one of them."""
        return self._shown

    # What is asked for

    def want(self) -> None:
        """Says that somebody looks: the subject is opened in the worker, now and after every change of run A."""
        self._is_wanted = True
        self._describe_if_wanted()

    def rerun(self) -> None:
        """Runs what the toggles say now, also where it was tried before."""
        if self._place is not None:
            self._debounce.stop()
            request = RerunRequest(self._place, self._session.toggles.chosen, self._cache_directory)
            self._job.start(rerun_in_worker, request, adopt=_adopted)

    def cancel(self) -> None:
        """Gives up what the worker does."""
        self._debounce.stop()
        self._job.cancel()

    def go_to(self, number: int) -> None:
        """Sets the toggles as they were in a run of the tree, undoably."""
        self._session.set_toggles(toggles_of(self._tree[number].chosen))

    def compare(self, before: int, after: int) -> None:
        """Compares two runs of the tree."""
        if (before, after) != self._compared:
            self._compared = (before, after)
            self.runs_changed.emit()

    def blink(self) -> None:
        """Shows A alone, then B in its place, then A again."""
        self._show_sides(Shown.B if self._shown is Shown.A else Shown.A)

    def show_both(self) -> None:
        """Ends blinking."""
        self._show_sides(Shown.BOTH)

    def close(self) -> None:
        """Ends the worker. Must be called before the program ends."""
        self._debounce.stop()
        self._job.close()

    # Inside

    def _show_sides(self, shown: Shown) -> None:
        if shown is not self._shown:
            self._shown = shown
            self.runs_changed.emit()

    def _follow_document(self) -> None:
        document = self._session.document
        # A run that was made in memory has no place another process could open.
        place = place_of(document) if document is not None and document.paths else None
        if place == self._place:
            return
        self.cancel()
        self._place = place
        self._description = None
        self._tree = RunTree()
        self._compared = (BASELINE, BASELINE)
        self._refused = ()
        self._shown = Shown.BOTH
        self.described.emit()
        self.runs_changed.emit()
        self._describe_if_wanted()

    def _describe_if_wanted(self) -> None:
        """Opens the subject once the document is analysed: until then the machine has enough to do."""
        is_ready = self._session.job_summary is not None
        if self._is_wanted and is_ready and self._place and not self._description and not self._job.is_running:
            self._job.start(describe_in_worker, self._place)

    def _follow_toggles(self) -> None:
        known = self._tree.found(self._session.toggles.chosen)
        self._refused = ()
        if known is not None or not self._session.toggles.on:
            self._debounce.stop()
            self._show(known.number if known else BASELINE)
        elif self._place is not None:
            self._debounce.start()
            self.runs_changed.emit()

    def _show(self, number: int) -> None:
        self._tree = self._tree.at(number)
        self._compared = (BASELINE, number)
        self.runs_changed.emit()

    def _take(self, value: Any) -> None:
        match value:
            case Described():
                self._description = value
                self.described.emit()
            case Answered(_, answer) if answer.refused:
                self._refused = answer.refused
                self.runs_changed.emit()
            case Answered(chosen, answer):
                self._tree = self._tree.with_answer(chosen, answer)
                self._show(self._tree.current)
            case TimelinesMapped():
                self._take_timelines(value)

    def _take_timelines(self, timelines: TimelinesMapped) -> None:
        found = self._tree.found(timelines.chosen)
        if timelines.baseline is not None and self._tree.baseline.timeline is None:
            self._tree = self._tree.with_timeline(BASELINE, timelines.baseline)
        if timelines.candidate is not None and found is not None and found.number != BASELINE:
            self._tree = self._tree.with_timeline(found.number, timelines.candidate)
        self.runs_changed.emit()


def _adopted(value: Any) -> Any:
    """Maps timelines into memory, on the thread that listens to the worker."""
    return mapped(value) if isinstance(value, TimelinesStored) else value
