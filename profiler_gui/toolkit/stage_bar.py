"""A progress bar that names what is being done, cut to its width."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QProgressBar, QWidget

_STEPS = 1_000
_MARGIN_PX = 12


class StageBar(QProgressBar):
    """A bar whose text is one line: what does not fit is cut and stands whole in the tooltip.

    Args:
        name: For screen readers.
        parent: Owner.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setRange(0, _STEPS)
        self._stage = ""

    def show_stage(self, done_ratio: float, stage: str) -> None:
        """Shows how far something is and what it is doing."""
        self.setValue(round(done_ratio * _STEPS))
        self._stage = stage
        self.setToolTip(stage)
        self._cut()

    def clear_stage(self) -> None:
        """Shows nothing."""
        self.reset()
        self._stage = ""
        self.setToolTip("")
        self.setFormat("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Cuts the text again for the new width."""
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        width_px = max(self.width() - _MARGIN_PX, 0)
        text = self.fontMetrics().elidedText(self._stage, Qt.TextElideMode.ElideRight, width_px)
        self.setFormat(text)
