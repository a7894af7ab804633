"""Two timelines, A above B, that start at the same step and zoom together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QSplitter, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.whatif.words import run_title
from profiler_gui.session.document import Document
from profiler_gui.session.rerun_state import Shown
from profiler_gui.session.run_tree import TriedRun
from profiler_gui.session.session import Session
from profiler_gui.session.viewport import Viewport
from profiler_gui.toolkit.translations import tr

MakeTimeline = Callable[[PaneContext], QWidget]
"""Makes a timeline of the session in the context it gets."""


class PairedTimelines(QWidget):
    """The timelines of the two compared runs, each with a session of its own.

    Args:
        context: Of the window.
        make_timeline: Makes one timeline.
    """

    def __init__(self, context: PaneContext, make_timeline: MakeTimeline, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._make_timeline = make_timeline
        self._is_following = False
        self.sessions = (Session(Path(), self), Session(Path(), self))
        self.titles = (_heading(), _heading())
        self.views: tuple[QWidget, ...] = ()
        self._starts_ns = (0, 0)
        self._note = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._sides = (QWidget(), QWidget())
        splitter = QSplitter(Qt.Orientation.Vertical)
        splitter.setChildrenCollapsible(False)
        for side, title in zip(self._sides, self.titles, strict=True):
            box = QVBoxLayout(side)
            box.setContentsMargins(0, 0, 0, 0)
            box.setSpacing(0)
            box.addWidget(title)
            splitter.addWidget(side)
        self._splitter = splitter
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self._note, 1)
        layout.addWidget(splitter, 1)
        for number, session in enumerate(self.sessions):
            session.viewport_changed.connect(lambda number=number: self._follow(number))
            session.rank_changed.connect(lambda number=number: self._follow_rank(number))
        context.session.rank_changed.connect(self._take_rank)
        context.closing.requested.connect(self._close)

    def show_runs(self, before: TriedRun, after: TriedRun, shown: Shown, missing: str) -> None:
        """Shows the timelines of two runs, or where one has none yet why that is (``missing``)."""
        documents = (before.timeline, after.timeline)
        is_there = all(item is not None for item in documents)
        self._note.setVisible(not is_there)
        self._splitter.setVisible(is_there)
        if not is_there:
            self._note.setText(missing)
            return
        self._make_views()
        words = ((tr("A"), before, Shown.B), (tr("B"), after, Shown.A))
        for title, side, (letter, run, hidden_by) in zip(self.titles, self._sides, words, strict=True):
            title.setText(f"{letter}  ·  {run_title(run)}")
            side.setVisible(shown is not hidden_by)
        self._show_documents(documents)

    def _show_documents(self, documents: tuple[Document | None, Document | None]) -> None:
        """Shows other documents in the stretch that is in view; at first all of the longer one is."""
        if all(session.document is document for session, document in zip(self.sessions, documents, strict=True)):
            return
        first = self.sessions[0]
        viewport = first.viewport if first.document is not None else None
        self._is_following = True
        for session, document in zip(self.sessions, documents, strict=True):
            if document is not None and session.document is not document:
                session.show(document)
        self._is_following = False
        self._take_rank()
        shown = viewport or first.limits
        first.show_range(shown.start_ns, shown.end_ns)

    def _make_views(self) -> None:
        if self.views:
            return
        views = []
        for session, side in zip(self.sessions, self._sides, strict=True):
            view = self._make_timeline(replace(self._context, session=session))
            box = side.layout()
            assert isinstance(box, QVBoxLayout)  # noqa: S101 - made in the constructor
            box.addWidget(view, 1)
            views.append(view)
        self.views = tuple(views)

    def _take_rank(self) -> None:
        """Shows the rank of the window in both, where they have it, and aligns their first steps."""
        rank = self._context.session.rank
        for session in self.sessions:
            if session.document is not None and rank in session.document.ranks:
                session.set_rank(rank)
        self._align()

    def _follow_rank(self, number: int) -> None:
        other = self.sessions[1 - number]
        if other.document is not None and self.sessions[number].rank in other.document.ranks:
            other.set_rank(self.sessions[number].rank)
        self._align()

    def _align(self) -> None:
        """Gives both room for the longer one, counted from the starts of their steps, and the same stretch of it."""
        first, second = self.sessions
        if first.trace is None or second.trace is None:
            return
        self._starts_ns = (_start_ns(first), _start_ns(second))
        for session in self.sessions:
            session.set_room(None)
        shift_ns = self._starts_ns[1] - self._starts_ns[0]
        own, other = first.limits, second.limits
        start_ns = min(own.start_ns, other.start_ns - shift_ns)
        end_ns = max(own.end_ns, other.end_ns - shift_ns)
        first.set_room(Viewport(start_ns, end_ns))
        second.set_room(Viewport(start_ns + shift_ns, end_ns + shift_ns))
        self._follow(0)

    def _follow(self, number: int) -> None:
        """Gives the other timeline the same stretch, counted from the start of its step."""
        one, other = self.sessions[number], self.sessions[1 - number]
        if self._is_following or one.document is None or other.document is None:
            return
        shift_ns = self._starts_ns[1 - number] - self._starts_ns[number]
        self._is_following = True
        try:
            viewport = one.viewport
            other.show_range(viewport.start_ns + shift_ns, viewport.end_ns + shift_ns, "linked")
        finally:
            self._is_following = False

    def _close(self) -> None:
        for session in self.sessions:
            session.close()


def _start_ns(session: Session) -> int:
    """Returns when the first step of the rank in view starts; 0 where there is none."""
    trace = session.trace
    if trace is None:
        return 0
    from engine.analyses.steps import steps

    found = session.derived(("first step", session.rank), lambda: steps(trace))
    return found[0].range.start_ns if found else 0


def _heading() -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setIndent(6)
    return label
