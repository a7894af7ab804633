"""The Details dock."""

from __future__ import annotations

from functools import partial
from typing import Any

from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QTextOption
from PySide6.QtWidgets import QTextBrowser, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.details.event_facts import EventFacts, EventIndex, event_facts
from profiler_gui.panels.details.event_sections import event_sections, first_sections
from profiler_gui.panels.details.sections import (
    LINK_SCHEME,
    Line,
    Section,
    html_of,
    plain_of,
    targets_of,
)
from profiler_gui.panels.details.selection_sections import selection_sections
from profiler_gui.session.calls import LatestCall
from profiler_gui.session.selection import EventSelection, Selection
from profiler_gui.toolkit.translations import tr

MIN_WIDTH_CHARS = 24
"""Narrower, values would be broken into letters."""


class DetailsPanel(QWidget):
    """Everything known of the selection, as text that can be copied, with links that select.

    What the tables say stands there at once; what has to be searched or read from the file follows from a thread.
    """

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self._theme = context.theme
        self._sections: tuple[Section, ...] = ()
        self._targets: list[Selection] = []
        self._text = QTextBrowser()
        self._text.setAccessibleName(tr("Details"))
        self._text.setOpenLinks(False)
        self._text.setMinimumWidth(self.fontMetrics().averageCharWidth() * MIN_WIDTH_CHARS)
        self._text.setFrameShape(QTextBrowser.Shape.NoFrame)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._text.anchorClicked.connect(self._follow)
        self._text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._text.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._text.customContextMenuRequested.connect(self._show_menu)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 2, 2, 2)
        layout.addWidget(self._text)
        self._call = LatestCall(self)
        self._call.finished.connect(self._take_sections)
        self._call.failed.connect(context.session.failed)
        context.closing.requested.connect(self._call.close)
        for signal in (
            self._session.document_changed,
            self._session.summary_changed,
            self._session.selection_changed,
            self._session.rank_changed,
        ):
            signal.connect(self._update)
        context.theme.changed.connect(self._render)
        self._update()

    @property
    def sections(self) -> tuple[Section, ...]:
        """What is shown."""
        return self._sections

    def copy_all(self) -> None:
        """Puts everything on the clipboard as text: a label and its value per line, parted by a tab."""
        QGuiApplication.clipboard().setText(plain_of(self._sections))

    def _show_menu(self, position: QPoint) -> None:
        menu = self._text.createStandardContextMenu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addSeparator()
        menu.addAction(tr("Copy Everything")).triggered.connect(self.copy_all)
        menu.popup(self._text.viewport().mapToGlobal(position))

    def _update(self) -> None:
        document, rank, selection = self._session.document, self._session.rank, self._session.selection
        self._call.cancel()
        if document is None:
            self._show((Section(tr("Details"), (Line("", tr("Open a capture and select something in it.")),)),))
        elif isinstance(selection, EventSelection):
            trace = document.job.rank_trace(selection.rank).trace
            index = self._session.derived(("event index", selection.rank), lambda: EventIndex(trace))
            self._show(first_sections(document, selection.rank, selection.event))
            self._call.start(partial(event_facts, index, selection.event))
        else:
            # Counting over the columns of a large trace takes longer than a frame; translating is safe in any thread.
            self._call.start(partial(selection_sections, document, rank, selection))

    def _take_sections(self, found: Any) -> None:
        document, selection = self._session.document, self._session.selection
        if isinstance(found, EventFacts):
            if document is not None and isinstance(selection, EventSelection):
                self._show(event_sections(document, selection.rank, found))
        else:
            self._show(found)

    def _show(self, sections: tuple[Section, ...]) -> None:
        self._sections = sections
        self._targets = targets_of(sections)
        self._render()

    def _render(self) -> None:
        """Writes the text; where the reader was scrolled to stays, so that walking from event to event is calm."""
        bar = self._text.verticalScrollBar()
        before = bar.value()
        self._text.setHtml(html_of(self._sections, self._theme.colours))
        bar.setValue(min(before, bar.maximum()))

    def _follow(self, url: QUrl) -> None:
        number = url.toString().removeprefix(LINK_SCHEME)
        if number.isdecimal() and int(number) < len(self._targets):
            self._session.select(self._targets[int(number)], reveal=True)
