"""Pictures of a pane: PNG as seen, SVG as drawn."""

from pathlib import Path

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from engine.core.errors import ExportError
from profiler_gui.toolkit.translations import tr


def save_image(widget: QWidget, path: Path) -> None:
    """Writes what ``widget`` shows; ``.svg`` as vectors where its painter gives them, else PNG. Raises ExportError."""
    written = _save_svg(widget, path) if path.suffix.lower() == ".svg" else widget.grab().save(str(path))
    if not written or not path.exists() or path.stat().st_size == 0:
        message = tr("{path}: the image could not be written; choose another place", path=path)
        raise ExportError(message)


def _save_svg(widget: QWidget, path: Path) -> bool:
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(QSize(widget.width(), widget.height()))
    generator.setViewBox(QRect(0, 0, widget.width(), widget.height()))
    generator.setTitle(widget.accessibleName() or tr("CannScope"))
    painter = QPainter()
    if not painter.begin(generator):
        return False
    widget.render(painter, QPoint())
    return painter.end()
