"""Which lines of the memory plot are shown: a legend to click on."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QCheckBox, QMenu, QToolButton, QWidget

from profiler_gui.panels.memory.plot import colour_of, style_of
from profiler_gui.panels.memory.series import MemorySeries
from profiler_gui.toolkit.flow_box import FlowBox
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

SWATCH = QSize(26, 12)
SPACING_PX = 10


class LineChoice(FlowBox):
    """A check box per line of the analysed allocator; lines of other components in a menu.

    Signals:
        changed: Other lines are to be shown (``shown``).
    """

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(SPACING_PX, parent)
        self._theme = theme
        self._series: tuple[MemorySeries, ...] = ()
        self._boxes: dict[str, QCheckBox] = {}
        self._others = QToolButton()
        self._others.setText(tr("Others"))
        self._others.setToolTip(tr("Lines of other components"))
        self._others.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._others.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._menu = QMenu(self._others)
        self._others.setMenu(self._menu)
        self.insert(0, self._others)
        theme.changed.connect(self._recolour)

    @property
    def shown(self) -> frozenset[str]:
        """Ids of the lines that are to be shown."""
        boxes = {series_id for series_id, box in self._boxes.items() if box.isChecked()}
        return frozenset(boxes | {action.data() for action in self._menu.actions() if action.isChecked()})

    def set_series(self, series: tuple[MemorySeries, ...]) -> None:
        """Offers other lines; what the user chose for a quantity stays chosen where it is offered again."""
        hidden = {series_id for series_id, box in self._boxes.items() if not box.isChecked()}
        added = {action.data() for action in self._menu.actions() if action.isChecked()}
        for box in self._boxes.values():
            self.remove(box)
        self._boxes = {}
        self._menu.clear()
        self._series = series
        for item in series:
            if item.is_main:
                self._add_box(item, is_checked=item.id not in hidden)
            else:
                self._add_action(item, is_checked=item.id in added)
        self._others.setVisible(bool(self._menu.actions()))
        self._recolour()
        self.changed.emit()

    def set_shown(self, series_id: str, *, is_shown: bool) -> None:
        """Shows or hides one line."""
        if series_id in self._boxes:
            self._boxes[series_id].setChecked(is_shown)
        for action in self._menu.actions():
            if action.data() == series_id:
                action.setChecked(is_shown)

    def _add_box(self, item: MemorySeries, *, is_checked: bool) -> None:
        box = QCheckBox(item.title)
        box.setIconSize(SWATCH)
        box.setChecked(is_checked)
        box.toggled.connect(lambda _: self.changed.emit())
        self.insert(len(self._boxes), box)
        self._boxes[item.id] = box

    def _add_action(self, item: MemorySeries, *, is_checked: bool) -> None:
        action = self._menu.addAction(item.title)
        action.setData(item.id)
        action.setCheckable(True)
        action.setChecked(is_checked)
        action.toggled.connect(lambda _: self.changed.emit())

    def _recolour(self) -> None:
        for item in self._series:
            if item.id in self._boxes:
                self._boxes[item.id].setIcon(self._swatch(item))
        for action in self._menu.actions():
            item = next(item for item in self._series if item.id == action.data())
            action.setIcon(self._swatch(item))

    def _swatch(self, item: MemorySeries) -> QIcon:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(SWATCH * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        painter.setPen(QPen(QColor(colour_of(self._series, item, self._theme.colours)), 3, style_of(item)))
        painter.drawLine(1, SWATCH.height() // 2, SWATCH.width() - 1, SWATCH.height() // 2)
        painter.end()
        return QIcon(picture)
