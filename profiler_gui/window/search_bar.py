"""The search bar: what is searched for, how many matches, and the list of them."""

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget

from engine.core.number_format import format_count
from profiler_gui.item_models.table_view import TableView
from profiler_gui.item_models.trace_tables import event_table
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import EventSelection
from profiler_gui.session.session import Session
from profiler_gui.toolkit.preferences import TIME_UNIT
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.time_axis import TimeUnit
from profiler_gui.toolkit.translations import tr

DELAY_MS = 200
LIST_ROWS = 8
COMMAND_PREFIX = ">"


class SearchBar(QWidget):
    """Searches the names of all events of the rank in view.

    Enter goes to the next match, Shift+Enter to the one before, Escape closes and forgets the query. A text that
    begins with ``>`` asks for the command palette.

    Signals:
        palette_wanted: The user typed ``>``.
        closed: The bar was closed.
    """

    palette_wanted = Signal()
    closed = Signal()

    def __init__(self, session: Session, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._settings = session, settings
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(tr("Search names of events"))
        self.edit.setAccessibleName(tr("Search text"))
        self.edit.setClearButtonEnabled(True)
        self.edit.installEventFilter(self)
        self.match_case = QCheckBox(tr("Match &case"))
        self.regex = QCheckBox(tr("&Pattern"))
        self.regex.setToolTip(tr("A regular expression, as Python writes them"))
        self.count_label = QLabel()
        self.count_label.setAccessibleName(tr("Number of matches"))
        self.hits = TableView(tr("Matches"))
        self.hits.show_at_most(LIST_ROWS)
        self.hits.row_chosen.connect(lambda row: session.select(EventSelection(session.rank, row), reveal=True))
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(DELAY_MS)
        self._delay.timeout.connect(self.search_now)
        self.edit.textEdited.connect(self._typed)
        self.match_case.toggled.connect(lambda _: self.search_now())
        self.regex.toggled.connect(lambda _: self.search_now())
        self._lay_out()
        session.search_changed.connect(self._show_matches)
        session.document_changed.connect(self._show_matches)
        session.selection_changed.connect(self._show_position)
        self._show_matches()

    def open(self) -> None:
        """Shows the bar, ready to type."""
        self.show()
        self.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.edit.selectAll()

    def close_search(self) -> None:
        """Hides the bar and forgets the query."""
        self._delay.stop()
        self.edit.clear()
        self._session.set_query(SearchQuery())
        self.hide()
        self.closed.emit()

    def search_now(self) -> None:
        """Searches for what is typed, without waiting for the typing to pause."""
        self._delay.stop()
        self._session.set_query(SearchQuery(self.edit.text(), self.regex.isChecked(), self.match_case.isChecked()))
        self._show_position()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt: Enter, Shift+Enter and Escape in the line; Escape means the line, whatever else it is used for."""
        if watched is self.edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
            return super().eventFilter(watched, event)
        if watched is self.edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.search_now()
                self._session.go_to_match(forward=not event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
                return True
            if event.key() == Qt.Key.Key_Escape:
                self.close_search()
                return True
        return super().eventFilter(watched, event)

    def hideEvent(self, event: QHideEvent) -> None:
        """Qt: out of sight, nothing is waited for."""
        self._delay.stop()
        super().hideEvent(event)

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self.edit, 1)
        row.addWidget(self.count_label)
        for arrow, name, forward in (
            (Qt.ArrowType.UpArrow, tr("Previous match"), False),
            (Qt.ArrowType.DownArrow, tr("Next match"), True),
        ):
            row.addWidget(self._arrow(arrow, name, forward=forward))
        row.addWidget(self.match_case)
        row.addWidget(self.regex)
        close = QToolButton()
        close.setText("×")
        close.setAutoRaise(True)
        close.setAccessibleName(tr("Close search"))
        close.clicked.connect(self.close_search)
        row.addWidget(close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.addLayout(row)
        layout.addWidget(self.hits)

    def _arrow(self, arrow: Qt.ArrowType, name: str, *, forward: bool) -> QToolButton:
        button = QToolButton()
        button.setArrowType(arrow)
        button.setAutoRaise(True)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.clicked.connect(lambda: self._session.go_to_match(forward=forward))
        return button

    def _typed(self, text: str) -> None:
        if text.startswith(COMMAND_PREFIX):
            self.close_search()
            self.palette_wanted.emit()
            return
        self._delay.start()

    def _show_matches(self) -> None:
        trace, matches = self._session.trace, self._session.matches
        is_listed = trace is not None and bool(matches.query.text) and len(matches) > 0
        self.hits.setVisible(is_listed)
        if is_listed and trace is not None:
            table = event_table(trace, TimeUnit(self._settings.value(TIME_UNIT)))
            table.set_rows(matches.events)
            self.hits.set_table(table)
        self._show_position()

    def _show_position(self) -> None:
        matches, selection = self._session.matches, self._session.selection
        if self._session.is_searching:
            self.count_label.setText(tr("searching…"))
            return
        if matches.error:
            self.count_label.setText(tr("Pattern: {error}", error=matches.error))
            return
        if not matches.query.text:
            self.count_label.clear()
            return
        total = format_count(len(matches))
        self.count_label.setText(tr("{count} matches", count=total))
        if isinstance(selection, EventSelection):
            here = np.flatnonzero(matches.events == selection.event)
            if len(here):
                self.count_label.setText(f"{format_count(int(here[0]) + 1)} / {total}")
                self.hits.reveal(selection.event)
