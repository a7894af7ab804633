"""What a pane gets in a test: a session with a document, and a record of the panes that were asked for."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtWidgets import QApplication

from engine.analyses.summary import summarize
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from profiler_gui.commands.command import CommandRegistry
from profiler_gui.commands.panes import Closing, PaneContext
from profiler_gui.session.document import Document
from profiler_gui.session.session import Session
from profiler_gui.toolkit.settings import SettingDescriptor, SettingsStore
from profiler_gui.toolkit.theme import Theme, ThemeMode
from tests.support.windows import drawn_document


@dataclass(frozen=True)
class PaneWorld:
    """A pane's surroundings.

    Attributes:
        context: What the pane gets.
        shown: Ids of panes in the order they were asked for.
    """

    context: PaneContext
    shown: list[str] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.context.session

    def close(self) -> None:
        """Ends threads and processes of the panes and the session."""
        self.context.closing.requested.emit()
        self.session.close()


def pane_world(application: QApplication, directory: Path, settings: tuple[SettingDescriptor, ...] = ()) -> PaneWorld:
    """Returns surroundings whose files lie in ``directory``; the caller closes them."""
    shown: list[str] = []
    theme = Theme(application)
    theme.apply(ThemeMode.LIGHT)
    session = Session(directory / "cache")
    store = SettingsStore(directory / "settings.ini", settings)
    return PaneWorld(PaneContext(session, CommandRegistry(), store, theme, shown.append, Closing()), shown)


def summarized(document: Document) -> Document:
    """Returns the document with its analyses."""
    return replace(document, summary=summarize(document.job))


def drawn(*pictures: str) -> Document:
    """Returns a document with analyses, one rank per picture."""
    return summarized(drawn_document(*pictures))


def captured(*paths: Path) -> Document:
    """Returns the document of real captures, with its analyses."""
    return summarized(Document(paths, paths[0].name, open_job(paths, built_in_readers()), None, 0))
