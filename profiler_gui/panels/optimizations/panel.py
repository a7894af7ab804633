"""The dock of toggles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.commands.panes import PaneContext
from profiler_gui.panels.optimizations.chips import chip_of, refusals_by_id
from profiler_gui.panels.optimizations.row import ToggleRow
from profiler_gui.toolkit.fitting_area import FittingArea
from profiler_gui.toolkit.labels import bold
from profiler_gui.toolkit.stage_bar import StageBar
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's optimizations are imported after the first paint
    from engine.optimizations.interface import Group


class OptimizationsPanel(QWidget):
    """Every toggle by group, with what it does to run A; pressing one reruns."""

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        from engine.optimizations.catalogue import optimization_registry

        self._context = context
        self._session = context.session
        self._reruns = context.session.reruns
        self._registry = optimization_registry()
        self.rows: dict[str, ToggleRow] = {}
        self._groups: list[_GroupBox] = []
        self._make_bar()
        self._make_rows()
        self._lay_out()
        self._session.document_changed.connect(self._update)
        self._session.toggles_changed.connect(self._update)
        self._reruns.described.connect(self._update)
        self._reruns.runs_changed.connect(self._update_state)
        self._reruns.busy_changed.connect(self._update_state)
        self._reruns.progress_changed.connect(self._show_progress)
        self._update()
        self._reruns.want()

    def _make_bar(self) -> None:
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(tr("Filter"))
        self.filter.setAccessibleName(tr("Filter {table}", table=tr("Optimizations")))
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._apply_filter)
        self.only_applying = QCheckBox(tr("Only what applies"))
        self.only_applying.toggled.connect(self._apply_filter)
        self.rerun = QPushButton(tr("&Rerun"))
        self.rerun.setToolTip(tr("Toggles rerun by themselves; this runs once more"))
        self.rerun.clicked.connect(self._reruns.rerun)
        self.clear = QPushButton(tr("All &Off"))
        self.clear.setToolTip(tr("Switches everything off"))
        self.clear.clicked.connect(self._switch_all_off)
        self.cancel = QPushButton(tr("Cancel"))
        self.cancel.setAccessibleName(tr("Cancel the rerun"))
        self.cancel.clicked.connect(self._reruns.cancel)
        self.progress = StageBar(tr("Progress of the rerun"))
        self.state = QLabel()
        self.state.setTextFormat(Qt.TextFormat.PlainText)
        self.state.setWordWrap(True)

    def _make_rows(self) -> None:
        from engine.optimizations.catalogue import in_order

        by_group: dict[Group, list[ToggleRow]] = {}
        for optimization in in_order(self._registry):
            row = ToggleRow(optimization, self._context.theme)
            row.switched.connect(lambda on, key=optimization.id: self._switch(key, on=on))
            row.edited.connect(lambda name, value, key=optimization.id: self._edit(key, name, value))
            self.rows[optimization.id] = row
            by_group.setdefault(optimization.group, []).append(row)
        self._groups = [_GroupBox(group_title(group), rows) for group, rows in by_group.items()]

    def _lay_out(self) -> None:
        first, second = QHBoxLayout(), QHBoxLayout()
        first.addWidget(self.filter, 1)
        first.addWidget(self.only_applying)
        for button in (self.rerun, self.clear):
            second.addWidget(button)
        second.addWidget(self.progress, 1)
        second.addWidget(self.cancel)
        second.addStretch(0)
        self._area = FittingArea()
        self._area.column.setContentsMargins(0, 0, 6, 0)
        self._area.column.setSpacing(2)
        for group in self._groups:
            self._area.column.addWidget(group)
        self._area.column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 4, 4)
        layout.setSpacing(4)
        layout.addLayout(first)
        layout.addLayout(second)
        layout.addWidget(self.state)
        layout.addWidget(self._area, 1)
        self.setFocusProxy(self.filter)

    def _switch(self, optimization: str, *, on: bool) -> None:
        self._session.set_toggles(self._session.toggles.switched(optimization, on=on))

    def _switch_all_off(self) -> None:
        self._session.set_toggles(replace(self._session.toggles, on=frozenset()))

    def _edit(self, optimization: str, name: str, value: bool | float | str | None) -> None:
        self._session.set_toggles(self._session.toggles.with_parameter(optimization, name, value))

    def _update(self) -> None:
        toggles, reruns = self._session.toggles, self._reruns
        refused = refusals_by_id(self._registry, toggles, reruns.environment)
        for key, row in self.rows.items():
            row.show_toggles(toggles)
            row.show_platform(reruns.platform)
            row.show_chip(chip_of(row.optimization, reruns.applicability.get(key), refused.get(key, "")))
        self._apply_filter()
        self._update_state()

    def _apply_filter(self) -> None:
        text, only = self.filter.text(), self.only_applying.isChecked()
        for row in self.rows.values():
            applies = row.chip.kind in ("applies", "simulator", "conflict", "needs") or row.box.isChecked()
            row.setVisible(row.matches(text) and (applies or not only))
        for group in self._groups:
            group.update_title()

    def _update_state(self) -> None:
        busy = self._reruns.is_busy
        self.progress.setVisible(busy)
        self.cancel.setVisible(busy)
        if not busy:
            self.progress.clear_stage()
        is_open = self._reruns.place is not None
        self.rerun.setEnabled(is_open and bool(self._session.toggles.on))
        self.clear.setEnabled(bool(self._session.toggles.on))
        self.state.setText(self._state_text(is_open=is_open))
        self.state.setVisible(bool(self.state.text()))

    def _state_text(self, *, is_open: bool) -> str:
        if not is_open:
            return tr("Open a capture or run a simulation: its toggles are here.")
        if self._reruns.unusable is not None:
            return tr("Cannot be rerun: {reason}", reason=self._reruns.unusable.what)
        if self._reruns.refused:
            return tr("Not rerun: {reason}", reason="; ".join(item.reason for item in self._reruns.refused))
        if not self._reruns.is_described:
            return tr("Looking at what each of them does here…")
        on = [row.optimization.title for key, row in self.rows.items() if key in self._session.toggles.on]
        return tr("On: {titles}", titles="; ".join(on)) if on else ""

    def _show_progress(self, ratio: float, what: str) -> None:
        self.progress.show_stage(ratio, what)


class _GroupBox(QWidget):
    """The toggles of one group below a heading that folds them."""

    def __init__(self, title: str, rows: list[ToggleRow]) -> None:
        super().__init__()
        self._title = title
        self._rows = rows
        self.heading = QToolButton()
        self.heading.setAutoRaise(True)
        self.heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.heading.setFont(bold(self.heading.font()))
        self._body = QWidget()
        body = QVBoxLayout(self._body)
        body.setContentsMargins(0, 0, 0, 0)
        body.setSpacing(0)
        for row in rows:
            body.addWidget(row)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.heading)
        layout.addWidget(self._body)
        self.heading.clicked.connect(lambda: self.fold(unfolded=self._body.isHidden()))
        self.fold(unfolded=True)
        self.update_title()

    def update_title(self) -> None:
        """Counts what is on; a group without a row in view hides."""
        on = sum(row.box.isChecked() for row in self._rows)
        self.heading.setText(f"{self._title}  ·  {tr('{count} on', count=on)}" if on else self._title)
        self.setVisible(any(not row.isHidden() for row in self._rows))

    def fold(self, *, unfolded: bool) -> None:
        """Hides its toggles, or shows them."""
        self.heading.setArrowType(Qt.ArrowType.DownArrow if unfolded else Qt.ArrowType.RightArrow)
        self._body.setVisible(unfolded)


def group_title(group: Group) -> str:
    """Returns what a group is called."""
    titles = {
        "parallel": tr("Parallel layout"),
        "precision": tr("Precision"),
        "fusion": tr("Operator fusion"),
        "communication": tr("Communication"),
        "host": tr("Host and launches"),
        "memory": tr("Memory"),
        "serving": tr("Serving"),
    }
    return titles.get(group.value) or group.value
