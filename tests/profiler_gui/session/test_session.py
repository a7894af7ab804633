from dataclasses import replace
from pathlib import Path

import pytest

from engine.trace import TimeRange, align
from profiler_gui.session.document import Document, Run
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import NOTHING, EventSelection, RangeSelection
from profiler_gui.session.session import Session
from profiler_gui.session.viewport import Viewport
from tests.support.trace_text import US, trace_from_text


def document(*pictures: str, epochs_ns: tuple[int, ...] = ()) -> Document:
    traces = [
        trace_from_text(picture, epoch_ns=(epochs_ns or (10**18,) * len(pictures))[rank], rank=rank)
        for rank, picture in enumerate(pictures)
    ]
    return Document((Path("picture"),), "picture", align("picture", traces), None, 0)


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    yield session
    session.close()


def test_a_document_opens_at_its_first_rank_showing_everything(session, qtbot):
    with qtbot.waitSignal(session.document_changed):
        session.show(document("gpu 7 | AAAA..BB |"))
    assert session.rank == 0
    assert session.viewport == Viewport(0, 8 * US)
    assert session.selection == NOTHING


def test_backspace_returns_to_selection_and_viewport_before(session):
    session.show(document("gpu 7 | AAAA..BB |"))
    session.select(EventSelection(0, 0))
    session.show_range(1 * US, 3 * US)
    session.select(EventSelection(0, 1))
    session.back()
    assert (session.selection, session.viewport) == (EventSelection(0, 0), Viewport(1 * US, 3 * US))
    session.back()
    assert (session.selection, session.viewport) == (EventSelection(0, 0), Viewport(0, 8 * US))
    session.forward()
    assert session.viewport == Viewport(1 * US, 3 * US)


def test_one_gesture_is_one_step_of_the_history(session):
    session.show(document("gpu 7 | AAAA..BB |"))
    for _ in range(5):
        session.zoom(2 * US, 0.8, gesture="wheel")
    session.back()
    assert session.viewport == Viewport(0, 8 * US)


def test_zooming_in_ends_at_one_nanosecond_and_zooming_out_at_the_whole_trace(session):
    session.show(document("gpu 7 | AAAA..BB |"))
    for _ in range(100):
        session.zoom(2 * US, 0.5)
    assert session.viewport.duration_ns == 1
    for _ in range(100):
        session.zoom(2 * US, 2.0)
    assert session.viewport == Viewport(0, 8 * US)


def test_only_what_changed_is_announced(session, qtbot):
    session.show(document("gpu 7 | AAAA..BB |"))
    with qtbot.assertNotEmitted(session.viewport_changed), qtbot.waitSignal(session.selection_changed):
        session.select(EventSelection(0, 1))
    with qtbot.assertNotEmitted(session.selection_changed):
        session.select(EventSelection(0, 1))


def test_search_walks_over_all_matches_in_time_and_wraps_around(session):
    session.show(document("gpu 7 | AB.A.BA |\nhost 1 | ..A |"))
    session.set_query(SearchQuery("a"))
    trace = session.trace
    starts = [int(trace.events.start_ns[event]) // US for event in session.matches.events]
    assert starts == [0, 2, 3, 6]
    visited = []
    for _ in range(5):
        session.go_to_match(forward=True)
        visited.append(int(trace.events.start_ns[session.selection.event]) // US)
    assert visited == [0, 2, 3, 6, 0]
    session.go_to_match(forward=False)
    assert int(trace.events.start_ns[session.selection.event]) // US == 6


def test_a_broken_pattern_finds_nothing_and_says_why(session):
    session.show(document("gpu 7 | AB |"))
    session.set_query(SearchQuery("(", regex=True))
    assert len(session.matches) == 0
    assert "position 0" in session.matches.error


def test_another_rank_shows_the_same_moments_of_the_job(session):
    session.show(document("gpu 7 | ..AAAAAA |", "gpu 7 | AAAAAAAA |", epochs_ns=(10**18, 10**18 + 2 * US)))
    session.show_range(2 * US, 4 * US)
    session.set_rank(1)
    assert session.viewport == Viewport(2 * US, 4 * US)


def test_zooming_to_the_selection_twice_fits_it_exactly(session):
    session.show(document("gpu 7 | AAAA..BBBB |"))
    session.select(RangeSelection(0, 4 * US, 6 * US))
    session.show_selection()
    assert session.viewport == Viewport(3800, 6200)
    session.show_selection()
    assert session.viewport == Viewport(4 * US, 6 * US)


def test_marks_can_be_undone(session):
    session.show(document("gpu 7 | AAAA |"))
    session.annotate(session.annotations.with_mark(5, 5))
    session.annotate(session.annotations.with_pin_toggled(0, 0))
    session.undo()
    assert session.annotations.pins == ()
    assert session.annotations.marks[0].label == "1"
    session.redo()
    assert session.annotations.pins == ((0, 0),)


def test_runs_can_be_exchanged(session):
    first, second = document("gpu 7 | AAAA |"), document("gpu 7 | BB |")
    session.show(first)
    session.show(second, Run.B)
    session.exchange_runs()
    assert session.document is second
    assert session.candidate is first


def test_a_moment_far_behind_the_last_slice_is_in_reach_but_not_in_the_first_view(session):
    shown = document("gpu 7 | AAAA |", "gpu 7 | AA |")
    session.show(shown)
    later = [
        replace(entry, trace=replace(entry.trace, time_range=TimeRange(0, entry.trace.time_range.end_ns * 3 // 2)))
        for entry in shown.job.ranks
    ]
    session.show(replace(shown, job=replace(shown.job, ranks=tuple(later))))
    assert session.viewport == Viewport(0, 4_080)
    session.set_rank(1)
    assert session.viewport == Viewport(0, 2_040)
    session.show_all()
    assert session.viewport == session.limits == Viewport(0, 3 * US)
    session.set_rank(0)
    assert session.viewport == Viewport(0, 4_080)
