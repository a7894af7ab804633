"""The permanent badge that says how a view's numbers are known."""

from PySide6.QtWidgets import QLabel, QWidget

from profiler_gui.panels.memory.words import Provenance
from profiler_gui.toolkit.theme import Theme
from profiler_gui.toolkit.translations import tr


class Badge(QLabel):
    """A few words in a frame, with their explanation as a tooltip."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAccessibleName(tr("Where these numbers come from"))
        theme.changed.connect(self._style)
        self._style()

    def show_provenance(self, provenance: Provenance) -> None:
        """Shows other words."""
        self.setText(provenance.badge)
        self.setToolTip(provenance.explanation)
        self.setAccessibleDescription(provenance.explanation)

    def _style(self) -> None:
        colour = self._theme.colours.notice
        self.setStyleSheet(f"border: 1px solid {colour}; border-radius: 3px; padding: 1px 6px; color: {colour};")
