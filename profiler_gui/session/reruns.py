"""Asks the worker what optimizations make of run A: reruns, advice, tuning, reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QTimer

from profiler_gui.session.advising import (
    Advised,
    ReportWritten,
    TuningBegun,
    TuningEnded,
    TuningRound,
    advise_in_worker,
    report_in_worker,
    tune_in_worker,
)
from profiler_gui.session.failure import Failure
from profiler_gui.session.predicting import Scored, keep_in_worker, score_in_worker
from profiler_gui.session.rerun_state import Activity, Known, RerunState, Shown, Tuning
from profiler_gui.session.rerunning import (
    Answered,
    Described,
    RerunRequest,
    TimelinesMapped,
    TimelinesStored,
    describe_in_worker,
    mapped,
    place_of,
    rerun_in_worker,
)
from profiler_gui.session.run_tree import BASELINE
from profiler_gui.session.toggles import toggles_of
from profiler_gui.session.worker import Call

if TYPE_CHECKING:  # the session owns this
    from profiler_gui.session.session import Session

RERUN_AFTER_MS = 300
"""A rerun starts this long after the last change of a toggle."""
ADVISE_AFTER_MS = 1000
"""Advice is looked for this long after there was anything else to do: it takes a processor for a while."""
LONG_RUN_STEPS = 100
"""A simulated run of more steps is run again for advice only where the user asks for that: it takes minutes."""
TUNING_ROUNDS = 10


class Reruns(RerunState):
    """Runs what the toggles say, the newest request wins; what was tried before is not run again.

    The worker does one thing at a time. What the user asks for comes first; what the subject's toggles do, and advice,
    are looked for while there is nothing else to do, once a view wants them.

    Args:
        session: Whose run A and toggles are looked at; owns this.
        cache_directory: Where timelines are handed over.
    """

    def __init__(self, session: Session, cache_directory: Path) -> None:
        super().__init__(session)
        self._cache_directory = cache_directory
        self._wants_description = False
        self._wants_advice = False
        self._owes_rerun = False
        self._job.running_changed.connect(self.busy_changed)
        self._job.progressed.connect(self.progress_changed)
        self._job.delivered.connect(self._take)
        self._job.finished.connect(self._take_last)
        self._job.failed.connect(self._take_failure)
        self._debounce = QTimer(self)
        self._debounce.setSingleShot(True)
        self._debounce.setInterval(RERUN_AFTER_MS)
        self._debounce.timeout.connect(self.rerun)
        self._leisure = QTimer(self)
        self._leisure.setSingleShot(True)
        self._leisure.setInterval(ADVISE_AFTER_MS)
        self._leisure.timeout.connect(self.advise)
        session.document_changed.connect(self._follow_document)
        session.summary_changed.connect(self._begin_what_is_wanted)
        session.toggles_changed.connect(self._follow_toggles)

    # What is asked for

    def want(self) -> None:
        """Says that somebody looks: the subject is opened in the worker, now and after every change of run A."""
        self._wants_description = True
        self._begin_what_is_wanted()

    def want_advice(self) -> None:
        """Says that somebody looks at recommendations: they are looked for when there is nothing else to do."""
        self._wants_advice = True
        self._begin_what_is_wanted()

    def rerun(self) -> None:
        """Runs what the toggles say now, also where it was tried before."""
        self._debounce.stop()
        if self._place is not None:
            self._start(Activity.RERUNNING, rerun_in_worker, RerunRequest(self._place, self._session.toggles.chosen))

    def advise(self) -> None:
        """Looks for losses and reruns what could help."""
        if self._place is not None:
            self._start(Activity.ADVISING, advise_in_worker, self._place, self._known.advice is not None)

    def report(self, path: Path) -> None:
        """Writes a report on the advice; the ending of the name says which kind."""
        if self._place is not None:
            self._start(Activity.REPORTING, report_in_worker, self._place, path)

    def keep_prediction(self, directory: Path) -> None:
        """Writes both sides of what is on as captures, and the prediction beside them, to be scored later."""
        if self._place is not None:
            request = RerunRequest(self._place, self._session.toggles.chosen)
            self._start(Activity.REPORTING, keep_in_worker, request, directory)

    def score(self, prediction: Path) -> None:
        """Scores an earlier prediction by the capture that is open."""
        if self._place is not None:
            self._start(Activity.REPORTING, score_in_worker, self._place, prediction)

    def tune(self) -> None:
        """Begins the tuning loop: what helps most against the largest loss is kept, round by round."""
        if self._place is not None:
            self._known.tuning = Tuning()
            self.tuning_changed.emit()
            self._start(Activity.TUNING, tune_in_worker, self._place, TUNING_ROUNDS)

    def cancel(self) -> None:
        """Gives up what the worker does; what was only looked for by itself is not begun again for this subject."""
        self._stop_timers()
        self._known.gave_advice_up |= self._activity is Activity.ADVISING
        self._job.cancel()

    def go_to(self, number: int) -> None:
        """Sets the toggles as they were in a run of the tree, undoably."""
        self._session.set_toggles(toggles_of(self._known.tree[number].chosen))

    def compare(self, before: int, after: int) -> None:
        """Compares two runs of the tree."""
        if (before, after) != self._known.compared:
            self._known.compared = (before, after)
            self.runs_changed.emit()

    def blink(self) -> None:
        """Shows A alone, then B in its place, then A again."""
        self._show_sides(Shown.B if self.shown is Shown.A else Shown.A)

    def show_both(self) -> None:
        """Ends blinking."""
        self._show_sides(Shown.BOTH)

    def close(self) -> None:
        """Ends the worker. Must be called before the program ends."""
        self._wants_description = self._wants_advice = False
        self._stop_timers()
        self._job.close()

    # Inside

    def _stop_timers(self) -> None:
        self._owes_rerun = False
        self._debounce.stop()
        self._leisure.stop()

    def _start(self, activity: Activity, call: Call, *arguments: Any) -> None:
        owes_rerun = self._debounce.isActive() and activity is not Activity.RERUNNING
        self._stop_timers()
        self._owes_rerun = owes_rerun
        self._activity = activity
        self._job.start(call, *arguments, adopt=_adopted)

    def _show_sides(self, shown: Shown) -> None:
        if shown is not self._known.shown:
            self._known.shown = shown
            self.runs_changed.emit()

    def _follow_document(self) -> None:
        document = self._session.document
        # A run that was made in memory has no place another process could open.
        place = place_of(document, self._cache_directory) if document is not None and document.paths else None
        if place == self._place:
            return
        self._stop_timers()
        self._place = place
        self._known = Known()
        self._job.cancel()
        for signal in (self.described, self.runs_changed, self.advised, self.tuning_changed):
            signal.emit()
        self._begin_what_is_wanted()

    def _begin_what_is_wanted(self) -> None:
        """Starts what views want, once the document is analysed: until then the machine has enough to do."""
        known, place = self._known, self._place
        is_ready = self._session.job_summary is not None and place is not None and known.unusable is None
        if not is_ready or self._job.is_running or self._debounce.isActive():
            return
        if self._owes_rerun:
            self.rerun()
        elif self._wants_description and known.description is None:
            self._start(Activity.DESCRIBING, describe_in_worker, place)
        elif self._wants_advice and known.advice is None and not known.gave_advice_up and not self._is_long_run():
            self._leisure.start()

    def _is_long_run(self) -> bool:
        """Returns whether run A is a simulated one of many steps."""
        from engine.analyses.step_history import step_history

        trace, place = self._session.trace, self._place
        if trace is None or place is None or not place.is_scenario:
            return False
        history = self._session.derived(("history", self._session.rank), lambda: step_history(trace))
        return history is not None and len(history) > LONG_RUN_STEPS

    def _follow_toggles(self) -> None:
        found = self._known.tree.found(self._session.toggles.chosen)
        self._known.refused = ()
        if found is not None or not self._session.toggles.on:
            self._debounce.stop()
            self._show(found.number if found else BASELINE)
        elif self._place is not None:
            self._debounce.start()
            self.runs_changed.emit()

    def _show(self, number: int) -> None:
        self._known.tree = self._known.tree.at(number)
        self._known.compared = (BASELINE, number)
        self.runs_changed.emit()

    def _take_last(self, value: Any) -> None:
        self._take(value)
        self._begin_what_is_wanted()

    def _take(self, value: Any) -> None:
        known = self._known
        match value:
            case Described():
                known.description = value
                self.described.emit()
            case Answered(_, answer) if answer.refused:
                known.refused = answer.refused
                self.runs_changed.emit()
            case Answered(chosen, answer):
                known.tree = known.tree.with_answer(chosen, answer)
                self._show(known.tree.current)
            case TimelinesMapped():
                self._take_timelines(value)
            case Advised():
                known.advice = value
                self.advised.emit()
            case ReportWritten(path):
                self.reported.emit(path)
            case Scored(text):
                self.scored.emit(text)
            case TuningBegun() | TuningRound() | TuningEnded():
                self._take_tuning(value)

    def _take_tuning(self, value: TuningBegun | TuningRound | TuningEnded) -> None:
        tuning = self._known.tuning or Tuning()
        match value:
            case TuningBegun(baseline):
                tuning = Tuning(baseline)
            case TuningRound(found):
                tuning = Tuning(tuning.baseline, (*tuning.rounds, found))
            case TuningEnded(reasons):
                tuning = Tuning(tuning.baseline, tuning.rounds, reasons)
        self._known.tuning = tuning
        self.tuning_changed.emit()

    def _take_timelines(self, timelines: TimelinesMapped) -> None:
        tree = self._known.tree
        found = tree.found(timelines.chosen)
        if timelines.baseline is not None and tree.baseline.timeline is None:
            tree = tree.with_timeline(BASELINE, timelines.baseline)
        if timelines.candidate is not None and found is not None and found.number != BASELINE:
            tree = tree.with_timeline(found.number, timelines.candidate)
        self._known.tree = tree
        self.runs_changed.emit()

    def _take_failure(self, failure: Failure) -> None:
        """Says what went wrong; what nobody asked for explicitly is said in the views, and not begun again."""
        self._known.gave_advice_up |= self._activity is Activity.ADVISING
        if self._activity in (Activity.DESCRIBING, Activity.ADVISING) and not failure.is_crash:
            self._known.unusable = failure
            self.described.emit()
            return
        self.failed.emit(failure)


def _adopted(value: Any) -> Any:
    """Maps timelines into memory, on the thread that listens to the worker."""
    return mapped(value) if isinstance(value, TimelinesStored) else value
