"""The widget, driven by signals, commands and a simulated mouse."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from engine.trace import TimeRange
from profiler_gui.session.document import Run
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import EventSelection, RangeSelection
from profiler_gui.timeline.context_menu import canvas_menu
from profiler_gui.timeline.frame import FrameRenderer, Scene
from profiler_gui.timeline.palette import Family, family_colour, slice_palette
from profiler_gui.toolkit.preferences import MIN_TRACK_HEIGHT_PX, WHEEL
from tests.support.mouse import click, double_click, drag, hover, leave, wheel
from tests.support.timeline import Stage
from tests.support.trace_text import trace_from_text

PICTURE = """
    host 1 | AAAAAAAA..AAAAAA |
    host 1 | .BB..C........D. |
    gpu 7  | ...EEE..FF...GGG |
    comm g | ......HHHHHH.... |
"""


@pytest.fixture
def stage(show) -> Stage:
    return show(trace_from_text(PICTURE))


def center_of(stage: Stage, name: str) -> QPointF:
    trace = stage.session.trace
    event = event_of(stage, name)
    _, box = next(stage.view.canvas.places.rectangles(trace, stage.session.rank, event))
    return box.center()


def event_of(stage: Stage, name: str) -> int:
    trace = stage.session.trace
    return next(event for event in range(len(trace.events)) if trace.name(event) == name)


def pixels(widget: QWidget) -> np.ndarray:
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), dtype=np.uint32).reshape(image.height(), image.bytesPerLine() // 4).copy()


def nearly(pixel: int, colour: int, tolerance: int = 48) -> bool:
    return all(abs(((int(pixel) >> shift) & 0xFF) - ((colour >> shift) & 0xFF)) <= tolerance for shift in (0, 8, 16))


def test_slices_are_drawn_in_the_colours_of_their_work(stage):
    shown = pixels(stage.view.canvas)
    for name, family in (("E", Family.COMPUTING), ("H", Family.COMMUNICATION), ("A", Family.HOST)):
        spot = center_of(stage, name)
        assert nearly(shown[int(spot.y()) + 6, int(spot.x())], family_colour(stage.context.theme.colours, family))


def test_a_click_selects_the_slice_and_a_click_beside_it_nothing(stage):
    click(stage.view.canvas, center_of(stage, "E"))
    assert stage.session.selection == EventSelection(0, event_of(stage, "E"))
    assert "E" in stage.view.canvas.accessibleDescription()
    click(stage.view.canvas, QPointF(5, center_of(stage, "E").y()))
    assert not isinstance(stage.session.selection, EventSelection)


def test_the_selected_slice_has_an_outline(stage):
    before = pixels(stage.view.canvas)
    stage.session.select(EventSelection(0, event_of(stage, "E")))
    assert np.count_nonzero(pixels(stage.view.canvas) != before) > 50


def test_a_double_click_zooms_to_the_slice(stage):
    double_click(stage.view.canvas, center_of(stage, "E"))
    viewport = stage.session.viewport
    assert viewport.start_ns <= 3_000 < 6_000 <= viewport.end_ns
    assert viewport.duration_ns < 4_500


def test_dragging_selects_a_range_that_snaps_to_the_edges_of_slices(stage):
    scale = stage.view.canvas.places.scale
    y_px = center_of(stage, "E").y()
    drag(stage.view.canvas, QPointF(scale.x_px(3_000) + 2, y_px), QPointF(scale.x_px(6_000) - 3, y_px))
    assert stage.session.selection == RangeSelection(0, 3_000, 6_000)


def test_shift_dragging_moves_the_view_and_alt_dragging_zooms(stage):
    stage.session.show_range(4_000, 12_000)
    drag(stage.view.canvas, QPointF(500, 400), QPointF(400, 400), Qt.KeyboardModifier.ShiftModifier)
    moved_ns = stage.session.viewport.start_ns - 4_000
    assert moved_ns == pytest.approx(100 * 8_000 / stage.view.canvas.width(), abs=3)
    drag(stage.view.canvas, QPointF(100, 400), QPointF(300, 400), Qt.KeyboardModifier.AltModifier)
    assert stage.session.viewport.duration_ns == pytest.approx(200 * 8_000 / stage.view.canvas.width(), abs=3)


def test_ctrl_wheel_zooms_and_the_time_under_the_pointer_stays(stage):
    at = QPointF(300, 50)
    before_ns = stage.view.canvas.places.scale.time_ns(300)
    for _ in range(6):
        wheel(stage.view.canvas, at, 1, Qt.KeyboardModifier.ControlModifier)
    assert stage.session.viewport.duration_ns < 6_000
    assert stage.view.canvas.places.scale.time_ns(300) == pytest.approx(before_ns, abs=6)


def test_a_whole_wheel_gesture_is_one_step_back(stage):
    whole = stage.session.viewport
    for _ in range(5):
        wheel(stage.view.canvas, QPointF(300, 50), 1, Qt.KeyboardModifier.ControlModifier)
    stage.session.back()
    assert stage.session.viewport == whole


def test_the_plain_wheel_scrolls_or_zooms_as_the_setting_says(show):
    stage = show(trace_from_text(PICTURE), height_px=150)
    wheel(stage.view.canvas, QPointF(300, 20), -1)
    assert stage.view._state.scroll_px > 0
    stage.context.settings.set_value(WHEEL, "zoom")
    whole = stage.session.viewport
    wheel(stage.view.canvas, QPointF(300, 20), 1)
    assert stage.session.viewport.duration_ns < whole.duration_ns


def test_the_pointer_reports_its_time(stage, qtbot):
    with qtbot.waitSignal(stage.session.cursor_changed) as heard:
        hover(stage.view.canvas, QPointF(400, 60))
    assert heard.args == [stage.view.canvas.places.scale.time_ns(400)]
    leave(stage.view.canvas)


def test_hovering_outlines_and_says_what_is_there(stage):
    before = pixels(stage.view.canvas)
    spot = center_of(stage, "E")
    hover(stage.view.canvas, spot)
    assert np.any(pixels(stage.view.canvas) != before)
    assert stage.view.pointer.tip() == "<b>E</b><br>3 µs, from 3.000 µs<br>Category: kernel<br>Track: gpu 7"
    leave(stage.view.canvas)


def test_a_search_dims_what_does_not_match(stage):
    before = pixels(stage.view.canvas)
    stage.session.set_query(SearchQuery("E", match_case=True))
    stage.settle()
    after = pixels(stage.view.canvas)
    hit, miss = center_of(stage, "E"), center_of(stage, "H")
    assert after[int(hit.y()) + 6, int(hit.x())] == before[int(hit.y()) + 6, int(hit.x())]
    assert after[int(miss.y()) + 6, int(miss.x())] != before[int(miss.y()) + 6, int(miss.x())]


def test_another_theme_is_shown_at_once(show):
    stage = show(trace_from_text(PICTURE), dark=True)
    shown = pixels(stage.view.canvas)
    assert nearly(shown[-3, 3], family_colour(stage.context.theme.colours, Family.IDLE), 90)
    assert (int(shown[-3, 3]) & 0xFF) < 0x40


def test_another_rank_brings_its_own_rows(show):
    stage = show([trace_from_text(PICTURE), trace_from_text("gpu 3 | XXXX |")])
    stage.session.set_rank(1)
    stage.settle()
    assert [row.node.label for row in stage.view._state.layout.rows] == ["gpu 3"]
    click(stage.view.canvas, center_of(stage, "X"))
    assert stage.session.selection == EventSelection(1, 0)


def test_selecting_an_event_elsewhere_scrolls_to_it_and_unfolds_its_group_but_not_its_track(show):
    stage = show(trace_from_text(PICTURE), height_px=150)
    stage.run("fold_all")
    stage.session.select(EventSelection(0, event_of(stage, "B")))
    row = stage.view._state.layout.row_of((0, 0))
    assert row is not None
    assert row.lane_count == 1
    rectangles = stage.view.canvas.places.rectangles(stage.session.trace, 0, event_of(stage, "B"))
    assert [int(box.top()) for _, box in rectangles] == [row.top_px - stage.view._state.scroll_px]
    stage.session.select(EventSelection(0, event_of(stage, "H")))
    assert stage.view._state.scroll_px > 0


def test_a_one_ns_slice_in_a_view_of_a_second_is_one_column_wide(show):
    slivers = trace_from_text("gpu 7 | A |")
    columns = {item: getattr(slivers.events, item).copy() for item in slivers.events.__slots__}
    columns["start_ns"][:] = 333_333_333
    columns["duration_ns"][:] = 1
    trace = replace(slivers, events=type(slivers.events)(**columns), time_range=TimeRange(0, 1_000_000_000))
    stage = show(trace)
    shown = pixels(stage.view.canvas)
    background = shown[-2, -2]
    row = next(iter(stage.view._state.layout.rows))
    line = shown[row.top_px + 4]
    grid = shown[-2]
    assert np.count_nonzero((line != background) & (line != grid)) == 1


@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0, 3.0])
def test_frames_have_the_pixels_of_the_screen(stage, ratio):
    canvas, state, trace = stage.view.canvas, stage.view._state, stage.session.trace
    renderer = FrameRenderer(canvas.font(), trace.strings.text, len(trace.strings))
    colours = stage.context.theme.colours
    scene = Scene(
        state.layout,
        0,
        0,
        16_000,
        0,
        canvas.lanes_of,
        state.counters,
        trace.events.name,
        slice_palette(colours),
        colours,
    )
    image = renderer.render(scene, 400, 200, ratio)
    assert (image.width(), image.height()) == (round(400 * ratio), round(200 * ratio))
    assert image.devicePixelRatio() == ratio
    spot = QPoint(round(4.5 / 16 * 400 * ratio), round((center_of(stage, "E").y() + 6) * ratio))
    assert nearly(image.pixel(spot), family_colour(colours, Family.COMPUTING))


def test_the_least_height_of_tracks_is_a_setting(stage):
    stage.context.settings.set_value(MIN_TRACK_HEIGHT_PX, 60)
    assert min(row.height_px for row in stage.view._state.layout.rows) == 60


def test_everything_is_named_for_those_who_do_not_see_it(stage):
    for widget in (
        stage.view,
        stage.view.canvas,
        stage.view.headers,
        stage.view.ruler,
        stage.view.minimap,
        stage.view.legend,
    ):
        assert widget.accessibleName()


def test_nothing_open_is_an_empty_view(stage):
    stage.session.close_run(Run.A)
    assert len(np.unique(pixels(stage.view.canvas))) == 1
    pixels(stage.view)
    click(stage.view.canvas, QPointF(10, 10))
    stage.run("zoom_in")


def test_the_selected_event_is_copied_with_plain_nanoseconds(stage, qtbot):
    stage.session.select(EventSelection(0, event_of(stage, "E")))
    qtbot.keyClick(stage.view.canvas, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "E\t3000\t3000"
    stage.run("select_all")
    qtbot.keyClick(stage.view.canvas, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == "0\t16000"


def test_the_context_menu_offers_what_can_be_done_with_the_slice(stage):
    stage.session.select(EventSelection(0, event_of(stage, "E")))
    menu = canvas_menu(stage.view.canvas, stage.context)
    by_text = {action.text().replace("&", ""): action for action in menu.actions()}
    assert by_text["Zoom to Selection"].isEnabled()
    by_text["Pin or Unpin Track"].trigger()
    assert [row.node.label for row in stage.view._state.layout.pinned] == ["gpu 7"]
    stage.session.clear_selection()
    menu = canvas_menu(stage.view.canvas, stage.context)
    assert not {action.text(): action for action in menu.actions()}["Copy Name and Times"].isEnabled()
