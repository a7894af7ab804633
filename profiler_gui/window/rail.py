"""The rail at the left: one button per page."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QToolButton, QVBoxLayout, QWidget

from profiler_gui.commands.panes import PaneFactory
from profiler_gui.toolkit.translations import tr

MARGIN_PX = 6
PADDING_PX = 14


class Rail(QWidget):
    """Buttons of the pages, exactly one pressed.

    Signals:
        chosen: The id of the page the user asked for.
    """

    chosen = Signal(str)

    def __init__(self, pages: tuple[PaneFactory, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Pages"))
        self._free = {page.id for page in pages if not page.needs_capture}
        texts = [tr(page.title).replace("&", "") for page in pages]
        self._text_px = max((self.fontMetrics().horizontalAdvance(text) for text in texts), default=0)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(MARGIN_PX, MARGIN_PX, MARGIN_PX, MARGIN_PX)
        layout.setSpacing(4)
        for page in pages:
            button = self._button(page)
            layout.addWidget(button)
            self._group.addButton(button)
            self._buttons[page.id] = button
        layout.addStretch(1)

    def show_page(self, page: str) -> None:
        """Presses the button of a page."""
        if page in self._buttons:
            self._buttons[page].setChecked(True)

    def set_usable(self, usable: bool) -> None:
        """Makes the buttons usable, as when a capture is open; those of pages that need none always are."""
        for page, button in self._buttons.items():
            button.setEnabled(usable or page in self._free)

    def _button(self, page: PaneFactory) -> QToolButton:
        button = QToolButton()
        title = tr(page.title)
        button.setText(title)
        button.setAccessibleName(title.replace("&", ""))
        button.setToolTip(f"{title.replace('&', '')} ({page.key})" if page.key else title.replace("&", ""))
        button.setCheckable(True)
        button.setAutoRaise(True)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        button.setFixedWidth(self._text_px + 2 * PADDING_PX)
        button.setMinimumHeight(self.fontMetrics().height() + PADDING_PX)
        button.clicked.connect(lambda: self.chosen.emit(page.id))
        return button
