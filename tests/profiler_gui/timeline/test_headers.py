import pytest
from PySide6.QtCore import QPointF

from profiler_gui.session.selection import TrackSelection
from tests.support.mouse import click, double_click, drag, hover, wheel
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


def test_a_track_is_selected_by_its_header_and_folded_by_its_triangle(stage):
    headers = stage.view.headers
    click(headers, QPointF(60, 8))
    assert stage.session.selection == TrackSelection(0, 0)
    click(headers, QPointF(9, 8))
    row = stage.view._state.layout.row_of((0, 0))
    assert row is not None
    assert row.is_collapsed


def test_headers_are_dragged_into_another_order(stage):
    rows = stage.view._state.layout.rows
    first, last = rows[0], rows[-1]
    drag(stage.view.headers, QPointF(60, last.top_px + 5), QPointF(60, first.top_px + 1))
    assert next(iter(stage.view._state.layout.rows)).node.key == last.node.key


def test_the_context_menu_of_a_header_pins_and_hides(stage):
    row = stage.view._state.layout.rows[1]
    menu = stage.view.headers.menu_for(row)
    by_text = {action.text(): action for action in menu.actions()}
    by_text["Pin on Top"].trigger()
    assert [pinned.node.key for pinned in stage.view._state.layout.pinned] == [row.node.key]
    by_text["Hide"].trigger()
    assert stage.view._state.layout.row_of(row.node.key) is None
    by_text["Show Hidden Tracks"].trigger()
    assert stage.view._state.layout.row_of(row.node.key) is not None
    stage.view.grab()


def test_a_double_click_folds(stage):
    double_click(stage.view.headers, QPointF(80, 8))
    assert stage.view._state.layout.rows[0].is_collapsed


def test_a_row_does_not_move_into_another_group_and_a_pinned_one_not_at_all(stage):
    rows = stage.view._state.layout.rows
    stage.view._state.toggle_pin(rows[2].node.key)
    drag(stage.view.headers, QPointF(60, 5), QPointF(60, 300))
    assert [row.node.label for row in stage.view._state.layout.rows] == [row.node.label for row in rows]


def test_where_a_dragged_row_would_land_is_drawn(stage):
    before = stage.view.headers.grab().toImage()
    drag(stage.view.headers, QPointF(60, 5), QPointF(60, 300), drops=False)
    assert stage.view.headers.grab().toImage() != before


def test_a_shortened_name_is_told_in_full(stage):
    hover(stage.view.headers, QPointF(60, 8))
    assert stage.view.headers.toolTip() == "host 1"


def test_the_wheel_over_headers_scrolls(show):
    stage = show(trace_from_text(PICTURE), height_px=150)
    wheel(stage.view.headers, QPointF(20, 20), -1)
    assert stage.view._state.scroll_px > 0
    stage.view.headers.grab()
