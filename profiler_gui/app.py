"""Builds the window and wires everything together: the only place that does."""

import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from PySide6.QtCore import QMessageLogContext, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from engine.core.user_places import settings_place
from profiler_gui.commands.panes import NO_DOCKS, PaneContext, PaneFactory, PanePlace
from profiler_gui.panels.advice.actions import advice_commands
from profiler_gui.panels.history.actions import history_commands
from profiler_gui.panels.serving.actions import serving_commands
from profiler_gui.panels.whatif.actions import whatif_commands
from profiler_gui.session.failure import failure_of
from profiler_gui.session.opening import cache_directory
from profiler_gui.session.session import Session
from profiler_gui.timeline.pane import compile_timeline, timeline_pane
from profiler_gui.toolkit.preferences import LANGUAGE, SHARED_SETTINGS, THEME
from profiler_gui.toolkit.settings import SettingDescriptor, SettingsStore
from profiler_gui.toolkit.theme import Theme, ThemeMode
from profiler_gui.toolkit.translations import install_language
from profiler_gui.window.main_window import MainWindow
from profiler_gui.window.open_paths import open_paths

logger = logging.getLogger(__name__)
_IMPORTED_AHEAD = (
    "profiler_gui.panels.overview.page",
    "profiler_gui.timeline.view",
    "engine.optimizations.catalogue",
)
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def pane_factories() -> tuple[PaneFactory, ...]:
    """Returns every pane in the order of the rail and of the docks, fresh for one window.

    A pane's widgets are imported when it is first seen: what is imported here delays the first paint. Keys of pages:
    Ctrl+1 Overview, 2 Timeline, 3 Memory, 4 Communication, 5 Fusion, 6 What-if, 7 Serving, 8 Benchmarks.
    """
    return (
        PaneFactory("overview", "&Overview", PanePlace.PAGE, _overview, key="Ctrl+1", docks=NO_DOCKS),
        timeline_pane("Ctrl+2"),
        PaneFactory("memory", "&Memory", PanePlace.PAGE, _memory, key="Ctrl+3"),
        PaneFactory("communication", "&Communication", PanePlace.PAGE, _communication, key="Ctrl+4"),
        PaneFactory("fusion", "&Fusion", PanePlace.PAGE, _fusion, key="Ctrl+5"),
        PaneFactory(
            "whatif",
            "What-&if",
            PanePlace.PAGE,
            _whatif,
            whatif_commands,
            key="Ctrl+6",
            docks=frozenset({PanePlace.LEFT}),
        ),
        PaneFactory(
            "serving",
            "&Serving",
            PanePlace.PAGE,
            _serving,
            serving_commands,
            key="Ctrl+7",
            docks=NO_DOCKS,
            needs_capture=False,
        ),
        PaneFactory(
            "history",
            "&Benchmarks",
            PanePlace.PAGE,
            _history,
            history_commands,
            key="Ctrl+8",
            docks=NO_DOCKS,
            needs_capture=False,
        ),
        PaneFactory("optimizations", "Optimi&zations", PanePlace.LEFT, _optimizations),
        PaneFactory("advice", "Re&commendations", PanePlace.LEFT, _advice, advice_commands),
        PaneFactory("details", "&Details", PanePlace.RIGHT, _details),
        PaneFactory("events", "&Events", PanePlace.BOTTOM, _events),
        PaneFactory("operators", "O&perators", PanePlace.BOTTOM, _operators),
        PaneFactory("modules", "&Modules", PanePlace.BOTTOM, _modules),
        PaneFactory("range", "&Range", PanePlace.BOTTOM, _range),
        PaneFactory("diagnostics", "Dia&gnostics", PanePlace.BOTTOM, _diagnostics),
    )


def compile_views() -> None:
    """Compiles the kernels of the views, where they are not compiled yet: for a process nobody waits for."""
    compile_timeline()
    from profiler_gui.panels.memory.address_raster import warm_up

    warm_up()


def _overview(context: PaneContext) -> QWidget:
    from profiler_gui.panels.overview.page import OverviewPage

    return OverviewPage(context)


def _memory(context: PaneContext) -> QWidget:
    from profiler_gui.panels.memory.views import MemoryViews

    return MemoryViews(context)


def _communication(context: PaneContext) -> QWidget:
    from profiler_gui.panels.communication.page import CommunicationPage

    return CommunicationPage(context)


def _fusion(context: PaneContext) -> QWidget:
    from profiler_gui.panels.fusion.page import FusionPage

    return FusionPage(context)


def _whatif(context: PaneContext) -> QWidget:
    from profiler_gui.panels.whatif.page import WhatIfPage

    return WhatIfPage(context, _timeline_of)


def _serving(context: PaneContext) -> QWidget:
    from profiler_gui.panels.serving.page import ServingPage

    return ServingPage(context)


def _history(context: PaneContext) -> QWidget:
    from profiler_gui.panels.history.page import HistoryPage

    return HistoryPage(context)


def _timeline_of(context: PaneContext) -> QWidget:
    """Returns one more timeline, of the session in ``context``, that arranges its tracks by itself."""
    from profiler_gui.timeline.state import TimelineState
    from profiler_gui.timeline.view import TimelineView

    return TimelineView(context, TimelineState(context.session, context.settings, context.session), is_compact=True)


def _optimizations(context: PaneContext) -> QWidget:
    from profiler_gui.panels.optimizations.panel import OptimizationsPanel

    return OptimizationsPanel(context)


def _advice(context: PaneContext) -> QWidget:
    from profiler_gui.panels.advice.panel import AdvicePanel

    return AdvicePanel(context)


def _details(context: PaneContext) -> QWidget:
    from profiler_gui.panels.details.panel import DetailsPanel

    return DetailsPanel(context)


def _events(context: PaneContext) -> QWidget:
    from profiler_gui.panels.events import EventsTable

    return EventsTable(context)


def _operators(context: PaneContext) -> QWidget:
    from profiler_gui.panels.operators import OperatorsTable

    return OperatorsTable(context)


def _modules(context: PaneContext) -> QWidget:
    from profiler_gui.panels.modules import ModulesTree

    return ModulesTree(context)


def _range(context: PaneContext) -> QWidget:
    from profiler_gui.panels.range_breakdown import RangeBreakdown

    return RangeBreakdown(context)


def _diagnostics(context: PaneContext) -> QWidget:
    from profiler_gui.panels.diagnostics import DiagnosticsTable

    return DiagnosticsTable(context)


def build_app(
    application: QApplication,
    settings_file: Path,
    cache: Path,
    factories: Sequence[PaneFactory] | None = None,
) -> MainWindow:
    """Returns the window, not yet shown, with everything it needs.

    Args:
        application: The one QApplication.
        settings_file: Where settings are kept.
        cache: Where traces already read are kept.
        factories: The panes; None for those of the product.
    """
    panes = tuple(pane_factories() if factories is None else factories)
    descriptors: list[SettingDescriptor[Any]] = [*SHARED_SETTINGS]
    descriptors += [setting for pane in panes for setting in pane.settings]
    settings = SettingsStore(settings_file, descriptors)
    install_language(application, settings.value(LANGUAGE))
    theme = Theme(application)
    theme.apply(ThemeMode(settings.value(THEME)))
    session = Session(cache)
    window = MainWindow(session, settings, theme, panes)
    for part in (settings, theme, session):
        part.setParent(window)
    return window


def create_application(arguments: Sequence[str]) -> QApplication:
    """Returns the one QApplication with its attributes set."""
    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    application = QApplication(list(arguments))
    application.setStyle("Fusion")
    application.setApplicationName("CannScope")
    application.setDesktopFileName("cannscope")
    return application


def run_window(paths: Sequence[Path]) -> int:
    """Opens the window, on the paths if there are any, and returns the exit code when it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Qt's loop would never let Python see Ctrl+C
    application = create_application(sys.argv[:1])
    qInstallMessageHandler(_log_qt)
    window = build_app(application, settings_place(), cache_directory())
    sys.excepthook = _crash_reporter(window)
    window.show()
    QTimer.singleShot(0, window, lambda: _after_first_paint(window, tuple(paths)))
    try:
        return application.exec()
    finally:
        window.context.session.close()


def _after_first_paint(window: MainWindow, paths: tuple[Path, ...]) -> None:
    """Opens what was asked for; the worker and this process import the engine meanwhile."""
    session = window.context.session
    session.import_ahead(_IMPORTED_AHEAD)
    if paths:
        open_paths(window.context, paths)
    else:
        session.prepare_worker(compile_views)


def _crash_reporter(window: MainWindow) -> Callable[..., None]:
    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            window.close()
            return
        failure = failure_of(error.with_traceback(trace))
        logger.error("unexpected error: %s", failure.traceback or failure.what)
        window.show_failure(failure)

    return report


def _log_qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    logging.getLogger("qt").log(_LEVELS.get(kind, logging.WARNING), "%s (%s)", message, context.category)
