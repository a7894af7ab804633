import pytest
from PySide6.QtCore import QPointF

from tests.support.mouse import click, drag
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


def test_the_minimap_moves_the_view(stage):
    minimap = stage.view.minimap
    stage.session.show_range(0, 4_000)
    minimap.grab()
    drag(minimap, minimap.view_box.center(), minimap.view_box.center() + QPointF(minimap.width() / 4, 0))
    assert stage.session.viewport.start_ns == pytest.approx(4_000, abs=60)
    assert stage.session.viewport.duration_ns == 4_000
    click(minimap, QPointF(minimap.width() - 2, 10))
    assert stage.session.viewport.end_ns == stage.session.limits.end_ns
    drag(minimap, QPointF(minimap.view_box.left(), 10), QPointF(minimap.width() / 2, 10))
    assert stage.session.viewport.start_ns == pytest.approx(8_000, abs=60)
