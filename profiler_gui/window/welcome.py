"""What the window shows while nothing is open."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QCommandLinkButton, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from profiler_gui.session.document import label_of
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.translations import tr


class Welcome(QWidget):
    """Ways to open a capture: dialogs, the recent ones, dropping files.

    Args:
        open_file: Asks for a file.
        open_folder: Asks for a folder.
        simulate: Shows the form of a new simulation.
        settings: Holds the recent captures.

    Signals:
        recent_chosen: The paths of a recent capture.
    """

    recent_chosen = Signal(object)

    def __init__(
        self,
        open_file: Callable[[], None],
        open_folder: Callable[[], None],
        simulate: Callable[[], None],
        settings: SettingsStore,
    ) -> None:
        super().__init__()
        self._settings = settings
        title = QLabel(tr("CannScope"))
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 2.2)
        title.setFont(font)
        hint = QLabel(
            tr(
                "Open what torch_npu's profiler wrote (the folder, or trace_view.json), a PyTorch trace "
                "(.json, .json.gz) or any Chrome trace. Or drop it here."
            )
        )
        hint.setWordWrap(True)
        self.file_button = QPushButton(tr("Open &file…"))
        self.file_button.clicked.connect(lambda: open_file())
        self.folder_button = QPushButton(tr("Open f&older…"))
        self.folder_button.clicked.connect(lambda: open_folder())
        self.folder_button.setDefault(True)
        buttons = QHBoxLayout()
        buttons.addWidget(self.folder_button)
        buttons.addWidget(self.file_button)
        self.simulate_button = QPushButton(tr("New &simulation…"))
        self.simulate_button.clicked.connect(lambda: simulate())
        buttons.addWidget(self.simulate_button)
        buttons.addStretch(1)
        self._recent_title = QLabel(tr("Recent"))
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        column = QVBoxLayout()
        column.addStretch(1)
        for part in (title, hint):
            column.addWidget(part)
        column.addSpacing(12)
        column.addLayout(buttons)
        column.addSpacing(18)
        column.addWidget(self._recent_title)
        column.addLayout(self._recent)
        column.addStretch(2)
        outer = QHBoxLayout(self)
        outer.addStretch(1)
        outer.addLayout(column, 4)
        outer.addStretch(1)
        settings.recent_changed.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        captures = self._settings.recent[:6]
        self._recent_title.setVisible(bool(captures))
        for paths in captures:
            self._recent.addWidget(self._link(paths))

    def _link(self, paths: tuple[Path, ...]) -> QCommandLinkButton:
        button = QCommandLinkButton(label_of(paths).replace("&", "&&"), str(paths[0].parent))
        button.setAccessibleName(tr("Open {capture}", capture=label_of(paths)))
        button.setToolTip("\n".join(str(path) for path in paths))
        button.setIcon(QIcon())
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(partial(self._choose, paths))
        return button

    def _choose(self, paths: tuple[Path, ...], _: bool = False) -> None:
        self.recent_chosen.emit(paths)
