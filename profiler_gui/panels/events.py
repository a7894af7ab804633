"""All events of the rank in view as a table, in step with the timeline."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLabel, QSizePolicy, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.item_models.trace_tables import event_table
from profiler_gui.session.selection import EventSelection
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.time_axis import TimeUnit
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.core.arrays import BoolArray, Int64Array
    from engine.trace import Trace
    from profiler_gui.session.session import Session

ALL = -2
"""Of a choice: every track, every category. −1 is the absent category."""


class Scope(StrEnum):
    """Which events are listed."""

    ALL = "all"
    HITS = "hits"
    SELECTED_RANGE = "range"


def rows_of(session: Session, track: int, category: int, scope: Scope) -> Int64Array | None:
    """Returns the event rows (int64, ascending) that a choice leaves; None for all.

    Args:
        session: Trace, matches, selected range and hidden categories.
        track: Index of a track, or ALL.
        category: String id, or ALL.
        scope: See there.
    """
    trace = session.trace
    if trace is None:
        return None
    events = trace.events
    masks: list[BoolArray] = []
    if track != ALL:
        masks.append(events.track == track)
    if category != ALL:
        masks.append(events.category == category)
    if session.hidden_categories:
        hidden = [trace.strings.id_of(text) if text else -1 for text in session.hidden_categories]
        masks.append(~np.isin(events.category, np.array(hidden, dtype=np.int32)))
    if scope is Scope.HITS:
        hit = np.zeros(len(events), dtype=np.bool_)
        hit[session.matches.events] = True
        masks.append(hit)
    span = session.selected_time_range
    if scope is Scope.SELECTED_RANGE and span is not None:
        # Instants have no length, so an event that begins inside counts whatever its length.
        begins_inside = (events.start_ns >= span[0]) & (events.start_ns < span[1])
        masks.append(begins_inside | ((events.start_ns < span[0]) & (events.end_ns > span[0])))
    return np.flatnonzero(np.logical_and.reduce(masks)).astype(np.int64) if masks else None


def track_titles(trace: Trace) -> list[str]:
    """Returns ``"Process › Track"`` for every track."""
    return [
        f"{trace.tracks[track.parent].name} › {track.name}" if track.parent >= 0 else track.name
        for track in trace.tracks
    ]


class EventsTable(QWidget):
    """Events with filters by text, track, category, search hits and selected range."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self._settings = context.settings
        self._shown: tuple[object, ...] = ()
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._tracks = _choice(tr("Track"))
        self._categories = _choice(tr("Category"))
        self._scope = _choice(tr("Which events"))
        for title, scope in (
            (tr("All events"), Scope.ALL),
            (tr("Search hits"), Scope.HITS),
            (tr("In the selected range"), Scope.SELECTED_RANGE),
        ):
            self._scope.addItem(title, scope)
        self._table = FilteredTable(tr("Events"))
        for choice in (self._scope, self._tracks, self._categories):
            choice.currentIndexChanged.connect(self._restrict)
            self._table.add_control(choice)
        self._table.view.row_chosen.connect(self._choose)
        self._table.view.row_opened.connect(self._open)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        layout.addWidget(self._note)
        layout.addWidget(self._table, 1)
        session = self._session
        session.document_changed.connect(self._update)
        session.rank_changed.connect(self._update)
        session.filter_changed.connect(self._restrict)
        session.search_changed.connect(self._on_search)
        session.selection_changed.connect(self._follow)
        context.settings.changed.connect(self._on_setting)
        self._update()

    def _update(self) -> None:
        trace = self._session.trace
        for widget in (self._scope, self._tracks, self._categories, self._table):
            widget.setVisible(trace is not None and len(trace.events) > 0)
        self._note.setVisible(trace is None or len(trace.events) == 0)
        if trace is None or len(trace.events) == 0:
            is_open = trace is not None
            self._note.setText(
                tr("This rank's capture holds no events.") if is_open else tr("Open a capture to see its events here.")
            )
            return
        self._fill_choices(trace)
        self._table.set_table(event_table(trace, TimeUnit(self._settings.value(TIME_UNIT))))
        self._restrict()

    def _fill_choices(self, trace: Trace) -> None:
        titles = track_titles(trace)
        used = np.flatnonzero(np.bincount(trace.events.track, minlength=len(titles))).tolist()
        _fill(self._tracks, tr("All tracks"), [(titles[track], track) for track in used])
        distinct = np.unique(trace.events.category).tolist()
        named = [(trace.strings.text(index) or tr("(no category)"), index) for index in distinct]
        _fill(self._categories, tr("All categories"), sorted(named))

    def _restrict(self) -> None:
        table, trace = self._table.view.table, self._session.trace
        if table is None or trace is None or table.total_count != len(trace.events):
            return
        scope = Scope(self._scope.currentData())
        table.set_rows(rows_of(self._session, self._tracks.currentData(), self._categories.currentData(), scope))
        self._reveal()

    def _on_search(self) -> None:
        if self._scope.currentData() == Scope.HITS:
            self._restrict()

    def _on_setting(self, setting: str) -> None:
        if setting == TIME_UNIT.id:
            self._update()

    def _follow(self) -> None:
        selects_event = isinstance(self._session.selection, EventSelection)
        if self._scope.currentData() == Scope.SELECTED_RANGE and not selects_event:
            self._restrict()
        else:
            self._reveal()

    def _reveal(self) -> None:
        selection = self._session.selection
        if isinstance(selection, EventSelection) and selection.rank == self._session.rank:
            self._table.view.reveal(selection.event)

    def _choose(self, event: int) -> None:
        self._session.select(EventSelection(self._session.rank, event), reveal=True)

    def _open(self, event: int) -> None:
        self._choose(event)
        self._session.show_selection()


def _choice(name: str) -> QComboBox:
    choice = QComboBox()
    choice.setAccessibleName(name)
    choice.setToolTip(name)
    choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    choice.setMinimumContentsLength(10)
    choice.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
    choice.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return choice


def _fill(choice: QComboBox, whole: str, items: list[tuple[str, int]]) -> None:
    """Offers ``whole`` and the items, without announcing it; what was chosen stays where it is offered again."""
    before = choice.currentText()
    was_blocked = choice.blockSignals(True)
    choice.clear()
    choice.addItem(whole, ALL)
    for title, value in items:
        choice.addItem(title, value)
    choice.setCurrentIndex(max(choice.findText(before), 0))
    choice.blockSignals(was_blocked)
