import pytest

from profiler_gui.timeline.coloring import EventColors
from profiler_gui.timeline.lane_loader import LaneLoader
from profiler_gui.timeline.lanes import LaneMaker
from tests.support.trace_text import trace_from_text


@pytest.fixture
def loader(qapp):
    loader = LaneLoader()
    yield loader
    loader.close()


def maker() -> LaneMaker:
    trace = trace_from_text("gpu 7 | AABB |\nhost 1 | CC |")
    return LaneMaker(trace, EventColors(trace))


def test_lanes_arrive_by_signal(loader, qtbot):
    loader.set_maker(maker(), keep=False)
    with qtbot.waitSignal(loader.loaded) as heard:
        assert loader.lanes(0) is None
    assert heard.args == [0]
    assert len(loader.lanes(0)[0]) == 2
    qtbot.waitUntil(lambda: not loader.is_busy)


def test_old_lanes_stay_until_new_ones_are_made(loader, qtbot):
    loader.set_maker(maker(), keep=False)
    with qtbot.waitSignal(loader.loaded):
        loader.lanes(0)
    old = loader.lanes(0)
    loader.set_maker(maker(), keep=True)
    with qtbot.waitSignal(loader.loaded):
        assert loader.lanes(0) is old
    assert loader.lanes(0) is not old


def test_lanes_of_another_trace_are_not_shown(loader, qtbot):
    loader.set_maker(maker(), keep=False)
    with qtbot.waitSignal(loader.loaded):
        loader.lanes(0)
    loader.set_maker(None, keep=False)
    assert loader.lanes(0) is None


def test_a_failure_reaches_the_window_and_the_track_stays_empty(loader, qtbot):
    class Broken:
        def make(self, track: int, *, is_strip: bool):
            raise RuntimeError("broken lanes")

    with qtbot.captureExceptions() as caught:
        loader.set_maker(Broken(), keep=False)
        loader.lanes(0)
        qtbot.waitUntil(lambda: not loader.is_busy)
    assert [str(error) for _, error, _ in caught] == ["broken lanes"]
    assert loader.lanes(0) == ()


def test_a_folded_track_has_a_lane_of_its_own(loader, qtbot):
    trace = trace_from_text("host 1 | AAAA |\nhost 1 | .BB. |")
    loader.set_maker(LaneMaker(trace, EventColors(trace)), keep=False)
    for is_strip in (False, True):
        with qtbot.waitSignal(loader.loaded):
            loader.lanes(0, is_strip=is_strip)
    assert [len(lane) for lane in loader.lanes(0)] == [1, 1]
    assert [len(lane) for lane in loader.lanes(0, is_strip=True)] == [3]
