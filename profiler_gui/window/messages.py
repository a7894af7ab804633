"""Dialogs that tell the user something: failures, crashes, what the program is."""

import platform
from importlib.metadata import PackageNotFoundError, version

import PySide6
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QMessageBox, QPlainTextEdit, QVBoxLayout, QWidget

from profiler_gui.session.failure import Failure
from profiler_gui.toolkit.labels import sentence
from profiler_gui.toolkit.translations import tr


def show_failure(failure: Failure, parent: QWidget | None) -> QDialog:
    """Shows a failure without blocking; returns the dialog, which deletes itself when closed."""
    dialog = CrashReport(failure, parent) if failure.is_crash else failure_box(failure, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
    return dialog


def failure_box(failure: Failure, parent: QWidget | None) -> QMessageBox:
    """Returns a box that says what is wrong, where, and what to do."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setWindowTitle(tr("CannScope"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(sentence(failure.what))
    details = [failure.where, sentence(failure.advice)]
    box.setInformativeText("\n\n".join(text for text in details if text))
    box.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return box


class CrashReport(QDialog):
    """A fault of the program itself: what happened and the report to send."""

    def __init__(self, failure: Failure, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("CannScope has a fault"))
        self.resize(760, 460)
        text = tr(
            "Something went wrong that should not have. What is open stays open. "
            "Please send the report below to the developers; it holds no data of your capture but may hold its path."
        )
        introduction = QLabel(text)
        introduction.setWordWrap(True)
        self.report = QPlainTextEdit(f"{versions()}\n\n{failure.traceback}")
        self.report.setReadOnly(True)
        self.report.setAccessibleName(tr("Report"))
        self.report.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton(tr("&Copy report"), QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.report.toPlainText()))
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(introduction)
        layout.addWidget(self.report, 1)
        layout.addWidget(buttons)


class TextReport(QDialog):
    """A text in columns, to be read and copied.

    Args:
        title: Of the dialog.
        text: What it says.
        parent: Qt's.
    """

    def __init__(self, title: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.resize(820, 420)
        self.report = QPlainTextEdit(text)
        self.report.setReadOnly(True)
        self.report.setAccessibleName(title)
        self.report.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self.report, 1)
        layout.addWidget(buttons)


def about_box(parent: QWidget | None) -> QMessageBox:
    """Returns the box that says what the program is."""
    box = QMessageBox(parent)
    box.setWindowTitle(tr("About CannScope"))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(tr("CannScope: where the time and the memory of AI jobs on Ascend NPUs go."))
    box.setInformativeText(f"{versions()}\n\n{tr('Licensed under Apache-2.0.')}")
    return box


def versions() -> str:
    """Returns the versions a report needs."""
    try:
        own = version("cannscope")
    except PackageNotFoundError:
        own = tr("not installed")
    return f"CannScope {own} · Python {platform.python_version()} · Qt {PySide6.__version__} · {platform.platform()}"
