"""The list of keys."""

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.commands.command import CommandRegistry, KeyPreset
from profiler_gui.toolkit.translations import tr


class ShortcutsHelp(QDialog):
    """Every command with keys, under the preset in use, and what the mouse does."""

    def __init__(self, commands: CommandRegistry, preset: KeyPreset, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keys"))
        self.resize(640, 560)
        rows = [(command, command.keys_of(preset)) for command in commands if command.keys_of(preset)]
        self.table = QTableWidget(len(rows), 3)
        self.table.setAccessibleName(tr("Keys"))
        self.table.setHorizontalHeaderLabels([tr("Command"), tr("Keys"), tr("Where")])
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setAlternatingRowColors(True)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for row, (command, keys) in enumerate(rows):
            native = [QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys]
            where = tr(command.scope.capitalize()) if command.scope else tr("everywhere")
            for column, text in enumerate((tr(command.title).replace("&", ""), ", ".join(native), where)):
                self.table.setItem(row, column, QTableWidgetItem(text))
        self.table.resizeColumnToContents(1)
        mouse = QLabel(
            tr(
                "Mouse on the timeline: drag selects a range, Shift+drag moves, Ctrl+wheel zooms at the pointer, "
                "a click selects, a double click zooms to a slice."
            )
        )
        mouse.setWordWrap(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self.table, 1)
        layout.addWidget(mouse)
        layout.addWidget(buttons)
