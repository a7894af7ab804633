"""A list to choose from by typing parts of a name."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

SIZE_PX = (560, 420)
_KEY_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class Choosable:
    """One line of the list.

    Attributes:
        title: What is searched.
        key: What stands for it when it is chosen.
        detail: Shown behind the title.
    """

    title: str
    key: object
    detail: str = ""


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


class Chooser(QDialog):
    """Lists what can be chosen.

    Args:
        title: Of the window and the list.
        prompt: Shown while nothing is typed.
        items: What can be chosen.
        parent: Qt's.

    Signals:
        chosen: The key of the item.
    """

    chosen = Signal(object)

    def __init__(self, title: str, prompt: str, items: Sequence[Choosable], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.resize(*SIZE_PX)
        self._items = tuple(items)
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(prompt)
        self.edit.setAccessibleName(prompt)
        self.edit.textChanged.connect(self._fill)
        self.edit.installEventFilter(self)
        self.list = QListWidget()
        self.list.setAccessibleName(title)
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
        for index in ranked(query, [item.title for item in self._items]):
            item = self._items[index]
            line = QListWidgetItem(f"{item.title}    {item.detail}".rstrip())
            line.setData(_KEY_ROLE, item.key)
            self.list.addItem(line)
        self.list.setCurrentRow(0)

    def _choose(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.accept()
            self.chosen.emit(item.data(_KEY_ROLE))
