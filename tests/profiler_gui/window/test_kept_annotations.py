"""Marks and pins are found again when their capture is opened again."""

import pytest

from profiler_gui.session.annotations import Annotations, annotations_of, annotations_text
from profiler_gui.session.session import Session
from profiler_gui.toolkit.settings import SettingsStore
from profiler_gui.window.kept_annotations import KeptAnnotations
from tests.support.windows import drawn_document

PICTURE = "gpu 7 | AAAA |"


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    session.kept = KeptAnnotations(session, SettingsStore(tmp_path / "settings.ini", ()), session)
    yield session
    session.close()


def test_marks_and_pins_come_back_with_their_capture_and_only_with_it(session, qtbot):
    session.show(drawn_document(PICTURE, label="one"))
    session.annotate(session.annotations.with_mark(5, 9, "here").with_pin_toggled(0, 0).with_pin_toggled(0, -101))
    kept = session.annotations
    session.show(drawn_document(PICTURE, label="two"))
    assert session.annotations == Annotations()
    with qtbot.waitSignal(session.annotations_changed, timeout=0, raising=False) as heard:
        session.show(drawn_document(PICTURE, label="one"))
    assert heard.signal_triggered
    assert session.annotations == kept
    assert not session.can_undo


def test_removed_marks_do_not_come_back(session):
    session.show(drawn_document(PICTURE, label="one"))
    session.annotate(session.annotations.with_mark(5, 9))
    session.undo()
    session.show(drawn_document(PICTURE, label="two"))
    session.show(drawn_document(PICTURE, label="one"))
    assert session.annotations == Annotations()


@pytest.mark.parametrize("text", ["", "{", '{"marks": [{"id": "x"}]}'])
def test_a_damaged_text_is_no_annotation(text):
    assert annotations_of(text) == Annotations()


def test_pins_of_tracks_that_are_not_there_are_left_out():
    pinned = Annotations(pins=((0, 1), (0, 7), (3, 0), (0, -101)))
    assert annotations_of(annotations_text(pinned)).within({0: 2}).pins == ((0, 1), (0, -101))
