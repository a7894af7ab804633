"""Arrows, marks and ranges over the slices."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from profiler_gui.session.selection import EventSelection, RangeSelection
from profiler_gui.timeline.overlays import MAX_FLOWS
from tests.support.mouse import drag
from tests.support.timeline import Stage
from tests.support.trace_text import trace_from_text


def with_flows(count: int) -> Trace:
    """One launch on the host, ``count`` kernels on a stream, an arrow to each."""
    builder = TraceBuilder()
    host = builder.add_track(Track(TrackKind.HOST_THREAD, "host"))
    stream = builder.add_track(Track(TrackKind.DEVICE_STREAM, "stream", device=0, stream=1))
    name = builder.strings.intern("a")
    builder.add_events(start_ns=np.array([0]), duration_ns=np.array([100]), track=host, name=name)
    starts_ns = np.arange(count) * 1_000 + 1_000
    builder.add_events(start_ns=starts_ns, duration_ns=np.full(count, 500), track=stream, name=name)
    builder.add_flows(np.zeros(count, dtype=np.int64), np.arange(count) + 1, "ac2g")
    return builder.build(origin=Origin.SIMULATED, source=Source("", ""), metadata=TraceMetadata(), clock_is_unix=False)


def image(stage: Stage) -> QImage:
    return stage.view.canvas.grab().toImage()


def changed(before: QImage, after: QImage) -> int:
    pixels = [
        np.frombuffer(shown.convertToFormat(QImage.Format.Format_RGB32).constBits(), dtype=np.uint32).copy()
        for shown in (before, after)
    ]
    return int(np.count_nonzero(pixels[0] != pixels[1]))


def test_arrows_are_drawn_for_the_selected_event_only(show):
    stage = show(with_flows(3))
    stage.session.select(EventSelection(0, 2))
    one = image(stage)
    stage.session.select(EventSelection(0, 0))
    three = image(stage)
    stage.session.clear_selection()
    none = image(stage)
    assert 40 < changed(none, one) < changed(none, three)


def test_arrows_reach_pinned_rows(show):
    stage = show(with_flows(2))
    stage.view._state.toggle_pin((0, 1))
    without = image(stage)
    stage.session.select(EventSelection(0, 0))
    with_arrows = image(stage)
    top = stage.view._state.layout.pinned_height_px
    pixels = [without.pixel(x, y) != with_arrows.pixel(x, y) for x in range(without.width()) for y in range(0, top, 2)]
    assert any(pixels)


def test_more_arrows_than_can_be_told_apart_are_counted(show):
    stage = show(with_flows(MAX_FLOWS + 20))
    stage.session.select(EventSelection(0, 0))
    assert changed(image(stage), image(stage)) == 0


def test_an_arrow_to_a_hidden_track_is_not_drawn(show):
    stage = show(with_flows(1))
    stage.session.select(EventSelection(0, 0))
    shown = image(stage)
    stage.view._state.hide((0, 1))
    assert changed(shown, image(stage)) > 0


@pytest.mark.parametrize("end_ns", [2_000, 6_000])
def test_marks_are_lines_through_all_rows_and_stretches_are_shaded(show, end_ns):
    stage = show(trace_from_text("host 1 | AAAAAAAA |"))
    before = image(stage)
    stage.session.annotate(stage.session.annotations.with_mark(2_000, end_ns))
    height = stage.view.canvas.height()
    assert changed(before, image(stage)) >= (height - 4) * (1 if end_ns == 2_000 else 200)
    stage.session.show_range(6_500, 8_000)
    image(stage)


def test_a_selected_range_is_shaded_and_a_dragged_one_shows_where_it_snaps(show):
    stage = show(trace_from_text("host 1 | B.AAAA.B |"))
    before = image(stage)
    stage.session.select(RangeSelection(0, 2_000, 6_000))
    ranged = image(stage)
    assert changed(before, ranged) > 1_000
    canvas = stage.view.canvas
    scale = canvas.places.scale
    drag(canvas, QPointF(scale.x_px(2_000) + 2, 8), QPointF(scale.x_px(5_000), 8), drops=False)
    assert canvas._dragged.snapped_ns == (2_000,)
    assert changed(ranged, image(stage)) > 100
