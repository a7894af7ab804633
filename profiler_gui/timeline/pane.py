"""The timeline as a pane of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler_gui.commands.command import Command
from profiler_gui.commands.panes import ALL_DOCKS, PaneContext, PaneFactory, PanePlace
from profiler_gui.timeline.actions import SCOPE, timeline_commands
from profiler_gui.timeline.settings import TIMELINE_SETTINGS

if TYPE_CHECKING:  # numba is imported after the first paint
    from PySide6.QtWidgets import QWidget

    from profiler_gui.timeline.state import TimelineState


def compile_timeline() -> None:
    """Compiles the kernels of the timeline, where they are not compiled yet: for a process nobody waits for."""
    from profiler_gui.timeline.warm_up import warm_up

    warm_up()


class _SharedState:
    """Makes the state that the pane and its commands share, when either first needs it."""

    def __init__(self) -> None:
        self._state: TimelineState | None = None

    def of(self, context: PaneContext) -> TimelineState:
        if self._state is None:
            from profiler_gui.timeline.state import TimelineState

            self._state = TimelineState(context.session, context.settings, context.session)
        return self._state


def timeline_pane(key: str = "Ctrl+2") -> PaneFactory:
    """Returns how the timeline is made; every window needs a factory of its own.

    Args:
        key: Brings it to the front.
    """
    shared = _SharedState()

    def create(context: PaneContext) -> QWidget:
        from profiler_gui.timeline.view import TimelineView

        return TimelineView(context, shared.of(context))

    def commands(context: PaneContext) -> tuple[Command, ...]:
        return timeline_commands(context.session, lambda: shared.of(context))

    return PaneFactory(
        id=SCOPE,
        title="&Timeline",
        place=PanePlace.PAGE,
        create=create,
        commands=commands,
        settings=TIMELINE_SETTINGS,
        key=key,
        docks=ALL_DOCKS,
    )
