"""What a user can do on the timeline by key, menu or palette. Imports nothing heavy: commands exist before the pane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from profiler_gui.commands.command import Command, KeyPreset, with_document
from profiler_gui.session.selection import EventSelection, RangeSelection, TrackSelection
from profiler_gui.session.session import Session

if TYPE_CHECKING:  # the state's modules import numba, which is imported after the first paint
    from profiler_gui.timeline.state import TimelineState

SCOPE = "timeline"
MENU = ("&Timeline",)
ZOOM_PER_KEY = 1.5
PAN_PER_KEY_RATIO = 0.15
SCROLL_PER_KEY_PX = 60
StateOf = Callable[[], "TimelineState"]


def timeline_commands(session: Session, state_of: StateOf) -> tuple[Command, ...]:
    """Returns the commands of the timeline in the order of its menu.

    Args:
        session: What they ask for change.
        state_of: Returns the timeline's own state, making it if need be.
    """
    return (
        *_zoom_commands(session, state_of),
        *_walk_commands(session),
        *_mark_commands(session, state_of),
        *_track_commands(session, state_of),
    )


def _zoom_commands(session: Session, state_of: StateOf) -> tuple[Command, ...]:
    def zoom(factor: float) -> None:
        session.zoom(_anchor_ns(session, state_of()), factor, "key zoom")

    def pan(ratio: float) -> None:
        session.pan(round(session.viewport.duration_ns * ratio), "key pan")

    def scroll(distance_px: int) -> None:
        state = state_of()
        state.scroll_to(state.scroll_px + distance_px)

    def page(direction: int) -> None:
        scroll(direction * max(state_of().visible_height_px - SCROLL_PER_KEY_PX, SCROLL_PER_KEY_PX))

    return (
        _command("zoom_in", "Zoom &In", partial(zoom, 1 / ZOOM_PER_KEY), "W", "=", "+"),
        _command("zoom_out", "Zoom &Out", partial(zoom, ZOOM_PER_KEY), "S", "-"),
        _command("pan_left", "Move &Left", partial(pan, -PAN_PER_KEY_RATIO), "A", "Left"),
        _command("pan_right", "Move &Right", partial(pan, PAN_PER_KEY_RATIO), "D", "Right"),
        _command("scroll_up", "Scroll &Up", partial(scroll, -SCROLL_PER_KEY_PX), "Up"),
        _command("scroll_down", "Scroll &Down", partial(scroll, SCROLL_PER_KEY_PX), "Down"),
        _command("page_up", "Scroll a Page Up", partial(page, -1), "PgUp"),
        _command("page_down", "Scroll a Page Down", partial(page, 1), "PgDown"),
        _command("zoom_to_selection", "&Zoom to Selection", session.show_selection, "F", "Shift+Z", when=_has_range),
        _command("show_all", "Show &All", session.show_all, "Ctrl+0"),
    )


def _walk_commands(session: Session) -> tuple[Command, ...]:
    def step(*, forward: bool) -> None:
        from profiler_gui.timeline.navigation import first_event_in, neighbour_on_lane

        trace, selection, viewport = session.trace, session.selection, session.viewport
        if trace is None:
            return
        if isinstance(selection, EventSelection):
            event = neighbour_on_lane(trace, selection.event, forward=forward)
        else:
            event = first_event_in(trace, viewport.start_ns, viewport.end_ns)
        if event is not None:
            session.select(EventSelection(session.rank, event), reveal=True)

    def follow(*, forward: bool) -> None:
        from profiler_gui.timeline.navigation import along_flow

        trace, selection = session.trace, session.selection
        if trace is None or not isinstance(selection, EventSelection):
            return
        event = along_flow(trace, selection.event, forward=forward)
        if event is not None:
            session.select(EventSelection(session.rank, event), reveal=True)

    group = "walk"
    with_event = partial(_command, group=group, when=_has_event)
    return (
        _command("next_event", "&Next Event", partial(step, forward=True), ".", group=group),
        _command("previous_event", "&Previous Event", partial(step, forward=False), ",", group=group),
        _command("next_flow", "Follow &Arrow", partial(follow, forward=True), "]", group=group, when=_has_event),
        with_event("previous_flow", "Follow Arrow &Back", partial(follow, forward=False), "["),
    )


def _mark_commands(session: Session, state_of: StateOf) -> tuple[Command, ...]:
    def select_range() -> None:
        span = session.selected_time_range
        if span is not None:
            session.select(RangeSelection(session.rank, *span))

    def select_all() -> None:
        session.select(RangeSelection(session.rank, session.limits.start_ns, session.limits.end_ns))

    def mark() -> None:
        session.annotate(session.annotations.with_mark(*_span_to_mark(session, state_of())))

    def remove_marks() -> None:
        annotations = session.annotations
        for item in annotations.marks:
            annotations = annotations.without_mark(item.id)
        session.annotate(annotations)

    def count_from() -> None:
        span = session.selected_time_range
        state_of().set_origin(span[0] if span is not None else 0)

    group = "marks"
    insight, perfetto = KeyPreset.INSIGHT, KeyPreset.PERFETTO
    return (
        Command(
            "timeline.range_of_selection",
            "&Range of Selection",
            select_range,
            preset_keys={perfetto: ("R",), insight: ("M",)},
            menu=MENU,
            group=group,
            is_enabled=_has_range,
            scope=SCOPE,
        ),
        _command("select_all", "Range of Whole Trace", select_all, "Ctrl+A", group=group),
        Command(
            "timeline.mark",
            "Set &Mark",
            mark,
            preset_keys={perfetto: ("M", "Shift+M", "K"), insight: ("K", "Shift+M")},
            menu=MENU,
            group=group,
            is_enabled=with_document,
            scope=SCOPE,
        ),
        _command("remove_marks", "Remove All Marks", remove_marks, group=group, when=_has_marks),
        _command("count_from_selection", "&Count Time from Selection", count_from, group=group),
    )


def _track_commands(session: Session, state_of: StateOf) -> tuple[Command, ...]:
    def on_track(run: Callable[[TimelineState, tuple[int, int]], None]) -> Callable[[], None]:
        def act() -> None:
            state = state_of()
            place = state.selected_place()
            if place is not None:
                run(state, place[0])

        return act

    def select_track(step: int) -> None:
        key = state_of().next_track(step)
        if key is not None:
            session.select(TrackSelection(*key))

    group = "tracks"
    with_track = partial(_command, group=group, when=_has_track)
    return (
        _command("next_track", "Next Track", partial(select_track, 1), "Ctrl+Down", group=group),
        _command("previous_track", "Previous Track", partial(select_track, -1), "Ctrl+Up", group=group),
        with_track("pin", "&Pin or Unpin Track", on_track(lambda state, key: state.toggle_pin(key)), "P"),
        with_track("fold", "Fold or &Unfold Track", on_track(lambda state, key: state.toggle_collapsed(key)), "E"),
        with_track("move_track_up", "Move Track Up", on_track(lambda state, key: state.move_by(key, -1)), "Alt+Up"),
        with_track(
            "move_track_down",
            "Move Track Down",
            on_track(lambda state, key: state.move_by(key, 1)),
            "Alt+Down",
        ),
        with_track("hide_track", "&Hide Track", on_track(lambda state, key: state.hide(key))),
        _command("show_hidden", "Show Hidden Tracks", lambda: state_of().show_hidden(), group=group),
        _command("fold_all", "Fold All Tracks", lambda: state_of().collapse_all(), group=group),
        _command("unfold_all", "Unfold All Tracks", lambda: state_of().expand_all(), group=group),
    )


def _command(
    name: str,
    title: str,
    run: Callable[[], None],
    *keys: str,
    group: str = "zoom",
    when: Callable[[Session], bool] = with_document,
) -> Command:
    return Command(f"timeline.{name}", title, run, keys, menu=MENU, group=group, is_enabled=when, scope=SCOPE)


def _span_to_mark(session: Session, state: TimelineState) -> tuple[int, int]:
    """Returns the selected stretch, the start of the selected event, or the moment under the pointer."""
    span = session.selected_time_range
    if span is not None and not isinstance(session.selection, EventSelection):
        return span
    moment_ns = span[0] if span is not None else _anchor_ns(session, state)
    return moment_ns, moment_ns


def _anchor_ns(session: Session, state: TimelineState) -> int:
    """Returns the moment under the pointer, or the middle of the view."""
    viewport, cursor_ns = session.viewport, state.cursor_ns
    if cursor_ns is not None and viewport.start_ns <= cursor_ns <= viewport.end_ns:
        return cursor_ns
    return viewport.start_ns + viewport.duration_ns // 2


def _has_range(session: Session) -> bool:
    return session.selected_time_range is not None


def _has_event(session: Session) -> bool:
    return isinstance(session.selection, EventSelection)


def _has_track(session: Session) -> bool:
    return isinstance(session.selection, EventSelection | TrackSelection)


def _has_marks(session: Session) -> bool:
    return bool(session.annotations.marks)
