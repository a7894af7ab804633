"""Device time by phase, module and source line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QStackedWidget,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from engine.core.number_format import format_duration_ns, format_ratio
from profiler_gui.commands.panes import PaneContext
from profiler_gui.item_models.module_tree import (
    MODULE,
    ModuleTreeModel,
    module_first,
    module_tree,
    phase_first,
    source_first,
)
from profiler_gui.item_models.summary_tables import module_table
from profiler_gui.item_models.table_model import RAW_ROLE, SORT_ROLE
from profiler_gui.item_models.table_view import TableView
from profiler_gui.session.filters import SearchQuery
from profiler_gui.toolkit.share_bars import ShareDelegate
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.modules import ModuleTime

MODULE_EVENT = "nn.Module: "
"""How PyTorch names the events of modules."""
_TITLE_COLUMN, _SHARE_COLUMN = 0, 2
_ORDERS: dict[str, Callable[[ModuleTime], tuple[tuple[str, str], ...]]] = {
    "phase": phase_first,
    "module": module_first,
    "source": source_first,
}


class ModulesTree(QWidget):
    """The tree in one of three orders, or everything as one table."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._order = QComboBox()
        self._order.setAccessibleName(tr("Order of the tree"))
        for title, order in (
            (tr("Phase › module › source"), "phase"),
            (tr("Module › phase › source"), "module"),
            (tr("Source › module › phase"), "source"),
            (tr("Table"), "table"),
        ):
            self._order.addItem(title, order)
        self._filter = QLineEdit()
        self._filter.setPlaceholderText(tr("Filter"))
        self._filter.setAccessibleName(tr("Filter {table}", table=tr("Modules")))
        self._filter.setClearButtonEnabled(True)
        self._proxy = QSortFilterProxyModel(self)
        self._proxy.setRecursiveFilteringEnabled(True)
        self._proxy.setAutoAcceptChildRows(True)
        self._proxy.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._proxy.setSortRole(SORT_ROLE)
        self._make_views(context)
        self._lay_out()
        self._order.currentIndexChanged.connect(self._update)
        self._filter.textChanged.connect(self._apply_filter)
        for signal in (self._session.document_changed, self._session.summary_changed, self._session.rank_changed):
            signal.connect(self._update)
        self._update()

    def _make_views(self, context: PaneContext) -> None:
        self._shares = ShareDelegate(context.theme, SORT_ROLE, self)
        self._tree = QTreeView()
        self._tree.setAccessibleName(tr("Modules"))
        self._tree.setAlternatingRowColors(True)
        self._tree.setUniformRowHeights(True)
        self._tree.setSelectionMode(QTreeView.SelectionMode.ExtendedSelection)
        self._tree.setModel(self._proxy)
        self._tree.setSortingEnabled(True)
        self._tree.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        self._tree.setItemDelegateForColumn(_SHARE_COLUMN, self._shares)
        self._tree.activated.connect(self._find)
        copy = QAction(tr("Copy"), self._tree)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        copy.triggered.connect(self.copy)
        self._tree.addAction(copy)
        self._tree.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._table = TableView(tr("Modules"))
        self._views = QStackedWidget()
        self._views.addWidget(self._tree)
        self._views.addWidget(self._table)

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.addWidget(self._order)
        bar.addWidget(self._filter, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.setSpacing(4)
        layout.addWidget(self._note)
        layout.addLayout(bar)
        layout.addWidget(self._views, 1)

    def _update(self) -> None:
        summary = self._session.summary
        modules = summary.modules if summary is not None else ()
        for widget in (self._order, self._filter, self._views):
            widget.setVisible(bool(modules))
        if summary is None:
            is_open = self._session.document is not None
            self._note.setText(
                tr("Analyses are running…") if is_open else tr("Open a capture to see its modules here.")
            )
            return
        self._note.setText(summary_text(modules))
        order = self._order.currentData()
        self._views.setCurrentIndex(1 if order == "table" else 0)
        if order == "table":
            self._table.set_table(module_table(modules))
            self._apply_filter()
        else:
            self._show_tree(ModuleTreeModel(module_tree(modules, _ORDERS[order]), self))

    def _show_tree(self, model: ModuleTreeModel) -> None:
        before = self._proxy.sourceModel()
        self._proxy.setSourceModel(model)
        if before is not None:
            before.deleteLater()
        self._apply_filter()
        self._tree.expandToDepth(0)
        self._tree.setColumnWidth(_TITLE_COLUMN, self.fontMetrics().averageCharWidth() * 48)
        for column in range(1, model.columnCount()):
            self._tree.resizeColumnToContents(column)
        self._tree.setColumnWidth(_SHARE_COLUMN, self.fontMetrics().averageCharWidth() * 16)

    def _apply_filter(self) -> None:
        text = self._filter.text()
        if self._order.currentData() == "table":
            if self._table.table is not None:
                self._table.table.set_filter(text)
            return
        self._proxy.setFilterFixedString(text)
        if text:
            self._tree.expandAll()

    def copy(self) -> None:
        """Puts the selected rows (those that are unfolded, where none is selected) on the clipboard as TSV."""
        model = self._proxy
        chosen = self._tree.selectionModel().selectedRows() or self._unfolded(QModelIndex())
        columns = range(model.columnCount())
        header = [str(model.headerData(column, Qt.Orientation.Horizontal)) for column in columns]
        header = [f"{title} (ns)" if column in (1, 3) else title for column, title in enumerate(header)]
        lines = ["\t".join(header)]
        lines += ["\t".join(str(row.siblingAtColumn(column).data(RAW_ROLE)) for column in columns) for row in chosen]
        QGuiApplication.clipboard().setText("\n".join(lines) + "\n")

    def _unfolded(self, parent: QModelIndex) -> list[QModelIndex]:
        rows = []
        for row in range(self._proxy.rowCount(parent)):
            index = self._proxy.index(row, 0, parent)
            rows.append(index)
            if self._tree.isExpanded(index):
                rows += self._unfolded(index)
        return rows

    def _find(self, index: QModelIndex) -> None:
        """Searches for the events of a recorded module; other rows have none of their own."""
        model = self._proxy.sourceModel()
        if not isinstance(model, ModuleTreeModel):
            return
        node = model.node(self._proxy.mapToSource(index))
        trace = self._session.trace
        name = f"{MODULE_EVENT}{node.title}"
        if trace is not None and node.kind == MODULE and trace.strings.id_of(name) >= 0:
            self._session.set_query(SearchQuery(name, match_case=True))
            self._context.show_pane("timeline")


def summary_text(modules: tuple[ModuleTime, ...]) -> str:
    """Returns what the tree rests on, in one or two sentences."""
    if not modules:
        return tr("This rank's trace holds no computing on a device.")
    total_ns = sum(item.total_ns for item in modules)
    inferred_ns = sum(item.total_ns for item in modules if item.inferred)
    text = tr("{total} of computing.", total=format_duration_ns(total_ns))
    if inferred_ns:
        share = format_ratio(inferred_ns / total_ns if total_ns else 0.0)
        return f"{text} " + tr(
            "Layers (in italics, {share}) were inferred from the period of kernels: the capture records no modules.",
            share=share,
        )
    if all(item.path.startswith("(outside") for item in modules):
        return f"{text} " + tr("The capture records no modules; profile with with_modules=True or with_stack=True.")
    return text
