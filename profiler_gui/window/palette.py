"""The command palette: every command, found by typing parts of its name."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from profiler_gui.commands.command import CommandRegistry, KeyPreset
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

SIZE_PX = (560, 420)
_COMMAND_ROLE = Qt.ItemDataRole.UserRole


def ranked(query: str, titles: list[str]) -> list[int]:
    """Returns the indices of the titles in which all words of ``query`` stand, the best first.

    A title that begins with the query is better than one with a word that does, and that better than any other.
    """
    words = query.casefold().split()
    scored = []
    for index, title in enumerate(titles):
        folded = title.casefold()
        if all(word in folded for word in words):
            begins = folded.startswith(" ".join(words))
            word_begins = all(any(part.startswith(word) for part in folded.split()) for word in words)
            scored.append((0 if begins else 1 if word_begins else 2, index))
    return [index for _, index in sorted(scored)]


class CommandPalette(QDialog):
    """Lists what can be done now.

    Signals:
        chosen: The id of the command to run.
    """

    chosen = Signal(str)

    def __init__(
        self, commands: CommandRegistry, session: Session, preset: KeyPreset, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Commands"))
        self.resize(*SIZE_PX)
        self._commands = [item for item in commands if item.in_palette and item.is_enabled(session)]
        self._titles = [
            " · ".join(tr(part).replace("&", "") for part in (*item.menu, item.title)) for item in self._commands
        ]
        self._preset = preset
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(tr("What do you want to do?"))
        self.edit.setAccessibleName(tr("Command"))
        self.edit.textChanged.connect(self._fill)
        self.edit.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Commands"))
        self.list.setUniformItemSizes(True)
        self.list.itemActivated.connect(self._choose)
        self.list.itemClicked.connect(self._choose)
        layout = QVBoxLayout(self)
        layout.addWidget(self.edit)
        layout.addWidget(self.list, 1)
        self._fill("")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Qt: arrows move in the list and Enter runs while the line keeps the focus."""
        if watched is self.edit and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None:
                row = min(max(self.list.currentRow() + step, 0), self.list.count() - 1)
                self.list.setCurrentRow(row)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._choose(self.list.currentItem())
                return True
        return super().eventFilter(watched, event)

    def _fill(self, query: str) -> None:
        self.list.clear()
        for index in ranked(query, self._titles):
            command = self._commands[index]
            keys = command.keys_of(self._preset)
            shown = QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if keys else ""
            item = QListWidgetItem(f"{self._titles[index]}    {shown}".rstrip())
            item.setData(_COMMAND_ROLE, command.id)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _choose(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.accept()
            self.chosen.emit(item.data(_COMMAND_ROLE))
