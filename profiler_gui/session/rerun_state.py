"""What is known of reruns of run A, for everybody to read; ``Reruns`` is what changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from profiler_gui.session.advising import Advised
from profiler_gui.session.failure import Failure
from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.rerunning import Described, SubjectPlace
from profiler_gui.session.run_tree import BASELINE, RunTree, TriedRun

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from engine.advisor.tuning import Round
    from engine.optimizations.fitting import Platform
    from engine.optimizations.interface import Applicability
    from engine.optimizations.selection import Refusal
    from engine.whatif.results import Side
    from profiler_gui.session.session import Session


class Shown(StrEnum):
    """Which of the compared runs views show."""

    BOTH = "both"
    A = "a"
    B = "b"


class Activity(StrEnum):
    """What the worker does."""

    NOTHING = "nothing"
    DESCRIBING = "describing"
    RERUNNING = "rerunning"
    ADVISING = "advising"
    TUNING = "tuning"
    REPORTING = "reporting"


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """A tuning loop.

    Attributes:
        baseline: The job before the first round; None before it is known.
        rounds: Found so far.
        reasons: What was tried in vain at the end → why; None while it goes on.
    """

    baseline: Side | None = None
    rounds: tuple[Round, ...] = ()
    reasons: Mapping[str, str] | None = None


@dataclass(slots=True, eq=False)
class Known:
    """Everything known of one subject.

    Attributes:
        description: What does something to it; None until that arrives.
        unusable: Why it cannot be rerun; None where it can.
        tree: Everything tried.
        compared: Numbers of the two runs that are compared.
        refused: Why the last request was not run.
        shown: Which of the compared runs views show.
        advice: None until it arrives.
        gave_advice_up: Whether the user cancelled it, or it failed: it is not begun by itself again.
        tuning: None where none was begun.
    """

    description: Described | None = None
    unusable: Failure | None = None
    tree: RunTree = field(default_factory=RunTree)
    compared: tuple[int, int] = (BASELINE, BASELINE)
    refused: tuple[Refusal, ...] = ()
    shown: Shown = Shown.BOTH
    advice: Advised | None = None
    gave_advice_up: bool = False
    tuning: Tuning | None = None


class RerunState(QObject):
    """What optimizations make of run A.

    Args:
        session: Whose run A and toggles are looked at; owns this.

    Signals:
        described: What does something to the subject has arrived, or the subject is another one.
        runs_changed: Another run was answered, its timeline arrived, or others are compared.
        advised: The advice has arrived, or the subject is another one.
        tuning_changed: A tuning has begun, found a round or ended, or the subject is another one.
        reported: A report or a prediction was written: its path.
        scored: An earlier prediction was scored: how it did, as text.
        busy_changed: The worker has something to do, or no longer.
        progress_changed: Ratio 0…1 and a phrase.
        failed: A Failure to show.
    """

    described = Signal()
    runs_changed = Signal()
    advised = Signal()
    tuning_changed = Signal()
    reported = Signal(object)
    scored = Signal(str)
    busy_changed = Signal(bool)
    progress_changed = Signal(float, str)
    failed = Signal(object)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._job = LatestJob(self)
        self._place: SubjectPlace | None = None
        self._known = Known()
        self._activity = Activity.NOTHING

    @property
    def place(self) -> SubjectPlace | None:
        """What is rerun; None without a document."""
        return self._place

    @property
    def unusable(self) -> Failure | None:
        """Why the subject cannot be rerun; None where it can, or that is not known yet."""
        return self._known.unusable

    @property
    def applicability(self) -> Mapping[str, Applicability]:
        """By id, at default parameters and with nothing else on; empty until it arrives."""
        return self._known.description.applicability if self._known.description else {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the recorded job: switches that conflict with optimizations."""
        return self._known.description.environment if self._known.description else {}

    @property
    def platform(self) -> Platform | None:
        """What the subject runs on, which decides about switches; None until that is known."""
        return self._known.description.platform if self._known.description else None

    @property
    def is_described(self) -> bool:
        """Whether it is known what does something to the subject."""
        return self._known.description is not None

    @property
    def tree(self) -> RunTree:
        """Everything tried on the subject."""
        return self._known.tree

    @property
    def compared(self) -> tuple[TriedRun, TriedRun]:
        """The two runs that are compared: A, by default the run as it is, and B, the newest."""
        before, after = self._known.compared
        return self._known.tree[before], self._known.tree[after]

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """Why the last request was not run; empty where it was."""
        return self._known.refused

    @property
    def shown(self) -> Shown:
        """Which of the compared runs views show: both, or while blinking one of them."""
        return self._known.shown

    @property
    def advice(self) -> Advised | None:
        """What to change; None until it arrives."""
        return self._known.advice

    @property
    def tuning(self) -> Tuning | None:
        """The tuning loop; None where none was begun."""
        return self._known.tuning

    @property
    def is_busy(self) -> bool:
        """Whether the worker has something to do."""
        return self._job.is_running

    @property
    def activity(self) -> Activity:
        """What the worker does."""
        return self._activity if self._job.is_running else Activity.NOTHING

    @property
    def is_pending(self) -> bool:
        """Whether the toggles say something that is not answered yet."""
        return self._known.tree.found(self._session.toggles.chosen) is None and bool(self._session.toggles.on)
