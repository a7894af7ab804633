"""Geometry: where times are, from the whole trace to the zoom limit, and what is under a point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from profiler_gui.timeline.coloring import EventColors
from profiler_gui.timeline.lanes import LaneMaker
from profiler_gui.timeline.layout import Arrangement, Measures, lay_out
from profiler_gui.timeline.nodes import nodes_of
from profiler_gui.timeline.places import Places
from profiler_gui.toolkit.time_axis import TimeScale
from tests.support.trace_text import trace_from_text

WIDTH_PX = 800.0
PICTURE = """
    host 1 | AAAAAAAA.. |
    host 1 | .BB..C.... |
    gpu 7  | ...DDD..EE |
"""


def places(scale: TimeScale, scroll_px: int = 0, pins: tuple[tuple[int, int], ...] = ()) -> Places:
    trace = trace_from_text(PICTURE)
    maker = LaneMaker(trace, EventColors(trace))
    nodes, _ = nodes_of(trace, 0)
    layout = lay_out(nodes, Arrangement(pins=pins), Measures(lane_px=20, min_track_px=20, gap_px=4))
    return Places(layout, scroll_px, scale, lambda row: maker.make(row.node.key[1], is_strip=row.is_strip))


@pytest.mark.parametrize("span_ns", [10**15, 10**9, 12_345, 800, 7, 1])
@pytest.mark.parametrize("start_ns", [0, 10**18])
def test_times_come_back_from_their_pixels_at_the_edges_and_the_middle(start_ns, span_ns):
    scale = TimeScale(start_ns, start_ns + span_ns, WIDTH_PX)
    assert scale.x_px(start_ns) == 0
    assert scale.x_px(start_ns + span_ns) == pytest.approx(WIDTH_PX)
    for time_ns in (start_ns, start_ns + span_ns // 2, start_ns + span_ns):
        assert abs(scale.time_ns(scale.x_px(time_ns)) - time_ns) < max(scale.ns_per_px, 1)


@given(st.integers(0, 10**15), st.integers(1, 10**13), st.floats(0, WIDTH_PX))
def test_pixels_come_back_from_their_times_within_a_pixel_or_the_nearest_ns(start_ns, span_ns, x_px):
    scale = TimeScale(start_ns, start_ns + span_ns, WIDTH_PX)
    error_px = abs(scale.x_px(scale.time_ns(x_px)) - x_px)
    assert error_px <= max(0.5 / scale.ns_per_px, 0) + 1e-6


def names_under(spot: Places, x_px: float, y_px: float) -> str:
    hit = spot.hit(QPointF(x_px, y_px))
    trace = trace_from_text(PICTURE)
    return trace.name(hit.event) if hit is not None and hit.event >= 0 else ""


def test_the_slice_under_a_point_is_found_by_row_depth_and_time():
    spot = places(TimeScale(0, 10_000, WIDTH_PX))
    assert names_under(spot, 5, 5) == "A"
    assert names_under(spot, 100, 25) == "B"
    assert names_under(spot, 300, 25) == ""
    assert names_under(spot, 420, 50) == "D"
    assert spot.hit(QPointF(5, 42)) is None
    assert spot.hit(QPointF(5, 5000)) is None


def test_a_thin_slice_is_hit_from_a_few_pixels_away():
    spot = places(TimeScale(0, 1_000_000, WIDTH_PX))
    assert names_under(spot, 2.0, 50) in ("D", "E")
    assert names_under(spot, 20.0, 50) == ""


def test_pinned_rows_are_hit_on_top_and_scrolled_rows_below_them():
    spot = places(TimeScale(0, 10_000, WIDTH_PX), scroll_px=44, pins=((0, 1),))
    assert names_under(spot, 300, 5) == "D"
    assert names_under(spot, 300, 24 + 5) == "D"


def test_an_event_is_drawn_in_its_pinned_and_its_scrolled_row():
    spot = places(TimeScale(0, 10_000, WIDTH_PX), pins=((0, 1),))
    trace = trace_from_text(PICTURE)
    event = next(event for event in range(len(trace.events)) if trace.name(event) == "D")
    found = list(spot.rectangles(trace, 0, event))
    assert [row.is_pinned for row, _ in found] == [True, False]
    assert [(box.left(), box.width()) for _, box in found] == [(240.0, 240.0)] * 2


def test_an_event_outside_the_view_keeps_its_rectangle_within_what_painters_take():
    trace = trace_from_text(PICTURE)
    for _, box in places(TimeScale(4_000, 4_001, WIDTH_PX)).rectangles(trace, 0, 0):
        assert box.left() >= -10
        assert box.right() <= WIDTH_PX + 11


@pytest.mark.parametrize(("x_px", "expected"), [(83, (1_000, True)), (237, (3_000, True)), (160, (2_000, False))])
def test_a_point_snaps_to_the_nearest_edge_of_its_lane(x_px, expected):
    time_ns, is_snapped = places(TimeScale(0, 10_000, WIDTH_PX)).snapped(QPointF(x_px, 25))
    assert (time_ns, is_snapped) == expected
