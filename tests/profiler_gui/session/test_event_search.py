"""Search in small traces at once, in large ones without holding the window up."""

import pytest

from profiler_gui.session import event_search
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import NOTHING, EventSelection
from profiler_gui.session.session import Session
from tests.support.windows import drawn_document

PICTURE = "gpu 7 | AB.A |"


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    yield session
    session.close()


@pytest.fixture
def large(session, monkeypatch):
    """A session whose trace counts as large."""
    session.show(drawn_document(PICTURE, "gpu 7 | AAAA |"))
    monkeypatch.setattr(event_search, "MAX_ROWS_AT_ONCE", 0)
    return session


def test_a_small_trace_is_searched_at_once(session, qtbot):
    session.show(drawn_document(PICTURE))
    with qtbot.waitSignal(session.search_changed, timeout=0, raising=False) as heard:
        session.set_query(SearchQuery("a"))
    assert heard.signal_triggered
    assert (len(session.matches), session.is_searching) == (2, False)


def test_a_large_trace_keeps_the_matches_before_until_the_new_ones_are_there(large, qtbot):
    with qtbot.waitSignal(large.search_changed):
        large.set_query(SearchQuery("a"))
        assert (len(large.matches), large.is_searching) == (0, True)
    with qtbot.waitSignal(large.search_changed):
        large.set_query(SearchQuery("b"))
        assert len(large.matches) == 2
    assert (len(large.matches), large.is_searching) == (1, False)


def test_going_to_a_match_waits_for_the_matches(large, qtbot):
    large.set_query(SearchQuery("b"))
    large.go_to_match(forward=True)
    assert large.selection == NOTHING
    with qtbot.waitSignal(large.selection_changed):
        pass
    assert large.selection == EventSelection(0, 1)


def test_matches_of_another_rank_are_never_shown(large, qtbot):
    with qtbot.waitSignal(large.search_changed):
        large.set_query(SearchQuery("b"))
    with qtbot.waitSignals([large.search_changed, large.search_changed]):
        large.set_rank(1)
        assert len(large.matches) == 0
    assert (large.matches.query.text, len(large.matches)) == ("b", 0)


def test_forgetting_the_query_forgets_its_matches_at_once(large, qtbot):
    with qtbot.waitSignal(large.search_changed):
        large.set_query(SearchQuery("a"))
    large.set_query(SearchQuery())
    assert not large.matches.is_active
    assert not large.is_searching
