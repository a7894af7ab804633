"""The menu of captures opened before."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from profiler_gui.session.document import label_of
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.translations import tr


class RecentMenu(QMenu):
    """Recent captures, the latest first, and a way to forget them.

    Signals:
        chosen: The paths of the capture to open.
    """

    chosen = Signal(object)

    def __init__(self, settings: SettingsStore, parent: QWidget) -> None:
        super().__init__(tr("Open &Recent"), parent)
        self._settings = settings
        self.setToolTipsVisible(True)
        settings.recent_changed.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        self.clear()
        for number, paths in enumerate(self._settings.recent, start=1):
            action = self.addAction(f"&{number % 10} {label_of(paths).replace('&', '&&')}")
            action.setToolTip("\n".join(str(path) for path in paths))
            action.triggered.connect(partial(self._choose, paths))
        if not self.isEmpty():
            self.addSeparator()
            self.addAction(tr("&Clear List"), self._settings.clear_recent)
        self.setEnabled(not self.isEmpty())

    def _choose(self, paths: tuple[Path, ...], _: bool = False) -> None:
        self.chosen.emit(paths)
