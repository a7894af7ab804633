"""One toggle: checkbox, chip, reason, the real switch, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontDatabase, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from profiler_gui.panels.optimizations.chips import Chip, ChipText
from profiler_gui.panels.optimizations.parameters import ParameterEditors
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's optimizations are imported after the first paint
    from engine.optimizations.fitting import Platform
    from engine.optimizations.interface import Optimization, Switch
    from profiler_gui.session.toggles import Toggles

INDENT_PX = 22


class ToggleRow(QWidget):
    """An optimization.

    Signals:
        switched: The user has pressed the checkbox.
        edited: Name and value of a parameter; None for its default.
    """

    switched = Signal(bool)
    edited = Signal(str, object)

    def __init__(self, optimization: Optimization, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.optimization = optimization
        self.box = ShortenedBox(optimization.title)
        self.box.setToolTip("\n\n".join(filter(None, (optimization.title, optimization.summary, optimization.id))))
        self.box.clicked.connect(self.switched)
        self.chip = Chip(theme)
        self.reason = QLabel()
        self.reason.setTextFormat(Qt.TextFormat.PlainText)
        self.reason.setWordWrap(True)
        self.reason.setForegroundRole(self.reason.foregroundRole().PlaceholderText)
        self.parameters = ParameterEditors(optimization) if optimization.parameters else None
        first = QHBoxLayout()
        first.setSpacing(6)
        first.addWidget(self.box, 1)
        first.addWidget(self.chip)
        below = QVBoxLayout()
        below.setContentsMargins(INDENT_PX, 0, 0, 0)
        below.setSpacing(2)
        below.addWidget(self.reason)
        self.switch = SwitchLine(self)
        below.addWidget(self.switch)
        self.show_platform(None)
        if self.parameters is not None:
            self.parameters.edited.connect(self.edited)
            below.addWidget(self.parameters)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 6)
        layout.setSpacing(2)
        layout.addLayout(first)
        layout.addLayout(below)

    def show_toggles(self, toggles: Toggles) -> None:
        """Shows whether it is on, and its parameters. Emits nothing."""
        self.box.setChecked(self.optimization.id in toggles.on)
        if self.parameters is not None:
            self.parameters.show_values(toggles.parameters_of(self.optimization.id))
            self.parameters.setVisible(self.optimization.id in toggles.on)

    def show_platform(self, platform: Platform | None) -> None:
        """Shows the real switches that can be set there; all while that is not known."""
        from engine.optimizations.fitting import fitting

        switches = self.optimization.switches
        self.switch.show_switches(switches if platform is None else fitting(switches, platform))

    def show_chip(self, chip: ChipText) -> None:
        """Says what it does here."""
        self.chip.show_text(chip)
        self.reason.setText(chip.reason)
        self.reason.setVisible(bool(chip.reason))
        self.box.setAccessibleDescription(f"{chip.text}. {chip.reason}")

    def matches(self, text: str) -> bool:
        """Returns whether it is what the user looks for."""
        sought = text.casefold()
        item = self.optimization
        return any(sought in part.casefold() for part in (item.title, item.id, item.summary))


class ShortenedBox(QCheckBox):
    """A checkbox whose text is cut off where there is no room; its name for screen readers stays whole."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._whole = text
        self.setAccessibleName(text)
        self.setText(text.replace("&", "&&"))
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width shows more or less of it."""
        super().resizeEvent(event)
        room_px = self.width() - INDENT_PX
        shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room_px)
        self.setText(shown.replace("&", "&&"))


class SwitchLine(QWidget):
    """The real switch, shortened to one line, with a button that copies it; hidden where there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._switches: tuple[Switch, ...] = ()
        self._label = _Shortened()
        self.button = QToolButton()
        self.button.setText(tr("Copy"))
        self.button.setAutoRaise(True)
        self.button.setToolTip(tr("Copies the switch as it is set, called or written"))
        self.button.clicked.connect(self._copy)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self._label, 1)
        row.addWidget(self.button)

    def show_switches(self, switches: tuple[Switch, ...]) -> None:
        """Shows the first, and all of them in the tooltip."""
        self.setVisible(bool(switches))
        if switches == self._switches:
            return
        self._switches = switches
        if not switches:
            return
        self._label.show_whole(switches[0].switch)
        self._label.setToolTip("\n\n".join(switch_text(item) for item in switches))
        self.button.setAccessibleName(tr("Copy switch: {switch}", switch=switches[0].switch))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._switches[0].switch)


def switch_text(switch: Switch) -> str:
    """Returns everything known of a switch, for a tooltip."""
    where = " ".join(filter(None, (switch.framework, switch.versions)))
    return "\n".join(filter(None, (f"{where}:", switch.switch, switch.note, switch.documented_in)))


class _Shortened(QLabel):
    """One line in the fixed font, its end cut off where there is no room; the whole stays in the tooltip."""

    def __init__(self) -> None:
        super().__init__()
        self._whole = ""
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_whole(self, text: str) -> None:
        """Shows another text."""
        self._whole = " ".join(text.split())
        self.setAccessibleName(self._whole)
        self._shorten()

    def minimumSizeHint(self) -> QSize:
        """Qt: any width will do."""
        return QSize(40, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Qt: another width shows more or less of it."""
        super().resizeEvent(event)
        self._shorten()

    def _shorten(self) -> None:
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width()))

    def sizeHint(self) -> QSize:
        """Qt: one line."""
        return QSize(200, self.fontMetrics().height() + 2)
