"""The runs that were tried, as a tree: each below the run whose toggles were changed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.panels.whatif.words import reserved_change_bytes, run_title, signed_bytes, signed_ratio, step_text
from profiler_gui.session.run_tree import BASELINE, RunTree, TriedRun
from profiler_gui.toolkit.labels import bold
from profiler_gui.toolkit.translations import tr

_NUMBER_ROLE = Qt.ItemDataRole.UserRole
PAIR = 2


class RunHistory(QWidget):
    """What each run had on and what it gave. A double click sets its toggles again; two selected ones are compared.

    Signals:
        wanted: Number of a run to go to.
        comparison_wanted: Numbers of two runs, the earlier first.
    """

    wanted = Signal(int)
    comparison_wanted = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(tr("Runs"))
        self.tree.setHeaderLabels([tr("Run"), tr("Step"), tr("Against as it is"), tr("Reserved"), tr("Tokens/s")])
        self.tree.setAlternatingRowColors(True)
        self.tree.setUniformRowHeights(True)
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.itemActivated.connect(lambda item: self.wanted.emit(item.data(0, _NUMBER_ROLE)))
        self.tree.itemSelectionChanged.connect(self._update_buttons)
        self.go = QPushButton(tr("&Set Its Toggles"))
        self.go.setToolTip(tr("Switches on exactly what was on in the selected run"))
        self.go.clicked.connect(lambda: self.wanted.emit(self.selected[0]))
        self.compare = QPushButton(tr("Co&mpare the Two"))
        self.compare.setToolTip(tr("Select two runs (Ctrl+click): the earlier becomes A, the later B"))
        self.compare.clicked.connect(lambda: self.comparison_wanted.emit(*self.selected))
        hint = QLabel(tr("Each run stands below the one whose toggles were changed."))
        hint.setWordWrap(True)
        bar = QHBoxLayout()
        bar.addWidget(hint, 1)
        bar.addWidget(self.go)
        bar.addWidget(self.compare)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(bar)
        layout.addWidget(self.tree, 1)
        self._update_buttons()

    @property
    def selected(self) -> list[int]:
        """Numbers of the selected runs, ascending."""
        return sorted(item.data(0, _NUMBER_ROLE) for item in self.tree.selectedItems())

    def show_tree(self, runs: RunTree) -> None:
        """Shows other runs; the current one is bold."""
        self.tree.clear()
        items: dict[int, QTreeWidgetItem] = {}
        for run in runs:  # one per request of the user
            item = QTreeWidgetItem(_texts(run, runs.baseline))
            item.setData(0, _NUMBER_ROLE, run.number)
            item.setToolTip(0, run_title(run))
            for column in range(1, self.tree.columnCount()):
                item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            if run.number == runs.current:
                for column in range(self.tree.columnCount()):
                    item.setFont(column, bold(item.font(column)))
            items[run.number] = item
            parent = items.get(run.parent) if run.parent is not None else None
            if parent is None:
                self.tree.addTopLevelItem(item)
            else:
                parent.addChild(item)
        self.tree.expandAll()
        for column in range(1, self.tree.columnCount()):
            self.tree.resizeColumnToContents(column)
        self._update_buttons()

    def _update_buttons(self) -> None:
        count = len(self.selected)
        self.go.setEnabled(count == 1)
        self.compare.setEnabled(count == PAIR)


def _texts(run: TriedRun, baseline: TriedRun) -> list[str]:
    side, first = run.side, baseline.side
    if side is None or first is None:
        return [run_title(run), "", "", "", ""]
    change = reserved_change_bytes(first, side)
    own, base = side.mean_step_ns, first.mean_step_ns
    is_compared = run.number != BASELINE and own and base
    tokens = f"{side.tokens_per_s:,.0f}" if side.tokens_per_s is not None else ""
    return [
        run_title(run),
        step_text(side),
        signed_ratio(own / base - 1) if is_compared else "",
        _change_text(change) if run.number != BASELINE else "",
        tokens,
    ]


def _change_text(change_bytes: int | None) -> str:
    if change_bytes is None:
        return ""
    return signed_bytes(change_bytes) if change_bytes else "="
