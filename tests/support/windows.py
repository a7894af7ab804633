"""The window of a test: without files, with documents drawn as text."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QApplication

from engine.trace import align
from profiler_gui.app import build_app
from profiler_gui.commands.panes import PaneFactory
from profiler_gui.session.document import Document
from profiler_gui.window.main_window import MainWindow
from tests.support.trace_text import trace_from_text


def drawn_document(*pictures: str, label: str = "picture", epochs_ns: Sequence[int] = ()) -> Document:
    """Returns a document without analyses, one rank per picture."""
    epochs = tuple(epochs_ns) or (10**18,) * len(pictures)
    traces = [
        trace_from_text(picture, epoch_ns=epoch_ns, rank=rank)
        for rank, (picture, epoch_ns) in enumerate(zip(pictures, epochs, strict=True))
    ]
    return Document((Path(label),), label, align(label, traces), None, 0)


def built_window(
    application: QApplication, directory: Path, factories: Sequence[PaneFactory] | None = None
) -> MainWindow:
    """Returns a window whose settings and cache lie in ``directory``; the caller closes it."""
    return build_app(application, directory / "settings.ini", directory / "cache", factories)
