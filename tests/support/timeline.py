"""The timeline as a widget, outside a window: for tests and benchmarks that paint it."""

import time
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QApplication

from engine.trace import Alignment, Job, RankTrace, Trace
from profiler_gui.commands.command import CommandRegistry
from profiler_gui.commands.panes import Closing, PaneContext
from profiler_gui.session.document import Document
from profiler_gui.session.session import Session
from profiler_gui.timeline.pane import timeline_pane
from profiler_gui.timeline.view import TimelineView
from profiler_gui.toolkit.preferences import SHARED_SETTINGS
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.toolkit.theme import Theme, ThemeMode
from tests.support.patience import PATIENCE_MS


@dataclass(frozen=True, slots=True)
class Stage:
    """A timeline with everything it needs.

    Attributes:
        view: The widget, shown.
        context: Session, commands, settings, theme.
    """

    view: TimelineView
    context: PaneContext

    @property
    def session(self) -> Session:
        return self.context.session

    def run(self, command: str) -> bool:
        """Runs a command of the timeline by the last part of its id."""
        return self.context.commands.run(f"timeline.{command}", self.session)

    def settle(self) -> None:
        """Waits until all lanes in view are made and all names are drawn."""
        end_s = time.monotonic() + PATIENCE_MS / 1e3
        while time.monotonic() < end_s:
            self.view.canvas.grab()
            QApplication.processEvents()
            if not self.view.canvas.is_loading and not self.view.canvas.frame_is_stale:
                return
        message = "the timeline did not come to rest"
        raise AssertionError(message)

    def close(self) -> None:
        """Ends threads and removes the widget."""
        self.context.closing.requested.emit()
        self.view.close()
        self.view.deleteLater()
        self.session.close()
        self.session.deleteLater()


def stage_of(
    traces: Trace | list[Trace], directory: Path, *, width_px: int = 1200, height_px: int = 700, dark: bool = False
) -> Stage:
    """Returns a timeline that shows traces (as ranks 0, 1 … of one job), not yet settled."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    theme = Theme(application)
    theme.apply(ThemeMode.DARK if dark else ThemeMode.LIGHT)
    session = Session(directory / "cache")
    theme.setParent(session)
    pane = timeline_pane()
    settings = SettingsStore(directory / "settings.ini", [*SHARED_SETTINGS, *pane.settings], parent=session)
    context = PaneContext(session, CommandRegistry(), settings, theme, lambda _: None, Closing(session))
    context.commands.add(*pane.commands(context))
    view = pane.create(context)
    assert isinstance(view, TimelineView)
    view.resize(width_px, height_px)
    view.show()
    entries = [
        RankTrace(rank, trace, 0, Alignment.REFERENCE)
        for rank, trace in enumerate([traces] if isinstance(traces, Trace) else traces)
    ]
    session.show(Document((directory,), "test", Job(str(directory), tuple(entries)), None, 0))
    return Stage(view, context)
