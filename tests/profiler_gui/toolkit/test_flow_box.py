import pytest
from PySide6.QtWidgets import QWidget

from profiler_gui.toolkit.flow_box import FlowBox


class Member(QWidget):
    def __init__(self, width_px):
        super().__init__()
        self.setFixedSize(width_px, 20)

    def sizeHint(self):  # noqa: N802 - Qt's name
        return self.maximumSize()


@pytest.fixture
def box(qtbot):
    box = FlowBox(spacing_px=9)
    qtbot.addWidget(box)
    for place, width_px in enumerate((50, 60, 70)):
        box.insert(place, Member(width_px))
    return box


def places(box):
    return [(member.x(), member.y()) for member in box.members if not member.isHidden()]


def test_members_share_a_line_where_they_fit(box):
    box.resize(400, 100)
    box.show()
    assert places(box) == [(0, 0), (59, 0), (128, 0)]
    assert box.heightForWidth(400) == 20


def test_members_that_do_not_fit_begin_another_line(box):
    box.resize(120, 100)
    box.show()
    assert places(box) == [(0, 0), (59, 0), (0, 23)]
    assert box.heightForWidth(120) == 43


def test_the_narrowest_it_gets_is_the_widest_member(box):
    assert box.minimumSizeHint().width() == 70
    assert box.sizeHint().width() == 50 + 60 + 70 + 2 * 9


def test_hidden_members_take_no_room(box):
    box.members[1].hide()
    assert box.sizeHint().width() == 50 + 70 + 9


def test_members_can_be_put_in_front_and_given_up(box, qtbot):
    box.resize(400, 100)
    box.show()
    first = Member(10)
    box.insert(0, first)
    assert places(box)[1] == (19, 0)
    box.remove(first)
    assert places(box)[0] == (0, 0)
    assert len(box.members) == 3
