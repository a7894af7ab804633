import pytest
from PySide6.QtCore import QPointF

from profiler_gui.toolkit.preferences import TIME_UNIT
from tests.support.mouse import drag, wheel
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


def test_the_ruler_writes_round_times_and_its_menu_sets_marks(stage):
    ruler = stage.view.ruler
    assert [text for _, text in ruler.texts()][:3] == ["0 µs", "2 µs", "4 µs"]
    {action.text(): action for action in ruler.menu_at(QPointF(50, 10)).actions()}["Set a Mark Here"].trigger()
    mark = stage.session.annotations.marks[0]
    assert mark.start_ns == ruler.scale.time_ns(50)
    flag = ruler._flag(mark).center()
    assert ruler.mark_at(flag) == mark
    actions = {action.text(): action for action in ruler.menu_at(flag).actions()}
    actions["Count Time from This Mark"].trigger()
    assert stage.view._state.origin_ns == mark.start_ns
    stage.view.grab()
    actions["Remove Mark"].trigger()
    assert stage.session.annotations.marks == ()


def test_dragging_the_ruler_moves_and_the_wheel_zooms(stage):
    stage.session.show_range(4_000, 8_000)
    drag(stage.view.ruler, QPointF(500, 10), QPointF(500 - stage.view.ruler.width() / 4, 10))
    assert stage.session.viewport.start_ns == pytest.approx(5_000, abs=5)
    wheel(stage.view.ruler, QPointF(500, 10), 2)
    assert stage.session.viewport.duration_ns < 3_000


def test_the_unit_is_a_setting_and_wall_clock_says_the_time_of_day(stage):
    stage.context.settings.set_value(TIME_UNIT, "ns")
    assert stage.view.ruler.texts()[1][1] == "2,000 ns"
    stage.context.settings.set_value(TIME_UNIT, "wall_clock")
    assert stage.view.ruler.texts()[1][1] == "01:46:40.000002"


def test_times_before_the_origin_are_negative(stage):
    stage.view._state.set_origin(8_000)
    assert stage.view.ruler.texts()[0][1].startswith("−8")


def test_no_text_is_cut_off_at_the_right_edge(stage):
    ruler = stage.view.ruler
    for x_px, text in ruler.texts():
        assert x_px + ruler.fontMetrics().horizontalAdvance(text) <= ruler.width()
