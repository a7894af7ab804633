"""The Memory page: levels over the trace, the history of a long run, and addresses; only what a capture has."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QWidget

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.memory.address_view import AddressView
from profiler_gui.panels.memory.page import MemoryPage
from profiler_gui.panels.memory.run_view import RunView
from profiler_gui.toolkit.translations import tr

LEVELS, RUN, ADDRESSES = 0, 1, 2


class MemoryViews(QTabWidget):
    """Tabs of the Memory page; without a choice there is no tab bar."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = context.session
        self.setDocumentMode(True)
        self.setAccessibleName(tr("Memory"))
        self.levels, self.run, self.addresses = MemoryPage(context), RunView(context), AddressView(context)
        self.addTab(self.levels, tr("Over Time"))
        self.addTab(self.run, tr("Over the Run"))
        self.addTab(self.addresses, tr("Addresses"))
        self.setFocusProxy(self.levels)
        self._session.document_changed.connect(self._on_document)
        self._session.rank_changed.connect(self._update_tabs)
        self._on_document()

    def _on_document(self) -> None:
        self._update_tabs()
        # Of a long run its course is the first question.
        self.setCurrentIndex(RUN if self.isTabVisible(RUN) else LEVELS)

    def _update_tabs(self) -> None:
        from engine.runtime.addresses.table import ADDRESS_TABLE

        trace = self._session.trace
        history = self.run.history
        has_blocks = trace is not None and (len(trace.memory.allocations) > 0 or ADDRESS_TABLE in trace.tables)
        self.setTabVisible(RUN, history is not None and len(history) > 1)
        self.setTabVisible(ADDRESSES, has_blocks)
        self.tabBar().setVisible(self.isTabVisible(RUN) or self.isTabVisible(ADDRESSES))
