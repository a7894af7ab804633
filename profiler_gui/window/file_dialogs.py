"""Asking for files and folders, and writing what is in view to them."""

from pathlib import Path

from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from profiler_gui.item_models.table_view import TableView
from profiler_gui.toolkit.translations import tr


def files_to_open(parent: QWidget, start: str) -> tuple[Path, ...]:
    """Returns the trace files the user chooses; () where the dialog is given up.

    Args:
        parent: The window.
        start: Directory that is shown at first.
    """
    kinds = tr("Traces (*.json *.json.gz *.gz *.csv);;Services and benchmarks (*.toml *.sqlite);;All files (*)")
    names, _ = QFileDialog.getOpenFileNames(parent, tr("Open File"), start, kinds)
    return tuple(Path(name) for name in names)


def folder_to_open(parent: QWidget, start: str) -> Path | None:
    """Returns the profiler directory the user chooses; None where the dialog is given up."""
    name = QFileDialog.getExistingDirectory(parent, tr("Open Folder"), start)
    return Path(name) if name else None


def table_file(parent: QWidget, view: TableView) -> Path | None:
    """Returns where the table in view is to be written; None where the dialog is given up."""
    name, _ = QFileDialog.getSaveFileName(parent, tr("Export Table"), f"{view.accessibleName()}.csv", "CSV (*.csv)")
    return Path(name) if name else None


def image_file(parent: QWidget, page: str) -> Path | None:
    """Returns where a picture of a page is to be written; None where the dialog is given up."""
    kinds = tr("Images (*.png);;Vector images (*.svg)")
    name, _ = QFileDialog.getSaveFileName(parent, tr("Save Image"), f"{page}.png", kinds)
    return Path(name) if name else None


def table_in_view(window: QWidget) -> TableView | None:
    """Returns the table with the focus, else the first one in view."""
    focus = QApplication.focusWidget()
    if isinstance(focus, TableView):
        return focus
    seen = [view for view in window.findChildren(TableView) if not view.visibleRegion().isEmpty()]
    return seen[0] if seen else None
