import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, Qt

from engine.trace import Origin, Source, TraceBuilder, TraceMetadata, Track, TrackKind, align
from profiler_gui.panels.events import EventsTable, Scope, rows_of, track_titles
from profiler_gui.session.document import Document
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import EventSelection, RangeSelection
from tests.support.panes import drawn
from tests.support.trace_text import US

PICTURE = "gpu 7 | AAAA..BB |\nhost 1 | CCCC.A.. |"


@pytest.fixture
def pane(world, qtbot):
    pane = EventsTable(world.context)
    qtbot.addWidget(pane)
    return pane


def click(view, row):
    index = view.table.index(row, 0)
    flags = QItemSelectionModel.SelectionFlag
    view.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)


def shown_names(pane):
    table = pane._table.view.table
    return [table.index(row, 0).data() for row in range(table.rowCount())]


def choose(box, text):
    box.setCurrentIndex(next(index for index in range(box.count()) if text in box.itemText(index)))


def test_without_a_capture_it_says_what_it_would_show(pane):
    assert "Open a capture" in pane._note.text()


def test_every_event_has_a_row(world, pane):
    world.session.show(drawn(PICTURE))
    assert shown_names(pane) == ["A", "B", "C", "A"]


def test_a_click_selects_the_event_everywhere(world, pane):
    world.session.show(drawn(PICTURE))
    click(pane._table.view, 2)
    assert world.session.selection == EventSelection(0, 2)


def test_the_event_selected_on_the_timeline_becomes_current(world, pane):
    world.session.show(drawn(PICTURE))
    world.session.select(EventSelection(0, 3))
    assert pane._table.view.table.source_row(pane._table.view.currentIndex()) == 3
    assert world.session.selection == EventSelection(0, 3)


def test_tracks_and_categories_restrict_the_rows(world, pane):
    world.session.show(drawn(PICTURE))
    choose(pane._tracks, "host 1")
    assert shown_names(pane) == ["C", "A"]
    choose(pane._tracks, "All")
    choose(pane._categories, "kernel")
    assert shown_names(pane) == ["A", "B"]


def test_search_hits_follow_the_search(world, pane):
    world.session.show(drawn(PICTURE))
    choose(pane._scope, "hits")
    assert shown_names(pane) == []
    world.session.set_query(SearchQuery("A"))
    assert shown_names(pane) == ["A", "A"]


def test_the_selected_range_lists_what_runs_in_it(world, pane):
    world.session.show(drawn(PICTURE))
    choose(pane._scope, "range")
    world.session.select(RangeSelection(0, 6 * US, 8 * US))
    assert shown_names(pane) == ["B"]
    world.session.select(RangeSelection(0, 2 * US, 3 * US))
    assert shown_names(pane) == ["A", "C"]


def test_choosing_an_event_of_the_range_keeps_the_list(world, pane):
    world.session.show(drawn(PICTURE))
    choose(pane._scope, "range")
    world.session.select(RangeSelection(0, 2 * US, 3 * US))
    click(pane._table.view, 1)
    assert world.session.selection == EventSelection(0, 2)
    assert shown_names(pane) == ["A", "C"]


def test_hidden_categories_are_left_out(world, pane):
    world.session.show(drawn(PICTURE))
    world.session.set_hidden_categories(frozenset({"cpu_op"}))
    assert shown_names(pane) == ["A", "B"]


def test_opening_zooms_to_the_event(world, pane):
    world.session.show(drawn(PICTURE))
    pane._open(1)
    viewport = world.session.viewport
    assert viewport.start_ns <= 6 * US
    assert viewport.end_ns >= 8 * US
    assert viewport.duration_ns < 8 * US


def test_another_rank_shows_its_own_events(world, pane):
    world.session.show(drawn(PICTURE, "gpu 7 | Z |"))
    world.session.set_rank(1)
    assert shown_names(pane) == ["Z"]


def test_titles_of_tracks_name_the_process(qwen3):
    trace = qwen3.job.rank_trace(0).trace
    titles = track_titles(trace)
    assert len(titles) == len(trace.tracks)
    assert any(" › " in title for title in titles)


def test_without_any_filter_nothing_is_computed(world):
    world.session.show(drawn(PICTURE))
    assert rows_of(world.session, -2, -2, Scope.ALL) is None


def test_a_million_events_are_listed_sorted_and_found(world, pane, qtbot):
    count = 1_000_000
    builder = TraceBuilder()
    track = builder.add_track(Track(TrackKind.DEVICE_STREAM, "Stream 1", stream=1, device=0))
    names = builder.strings.intern_all([f"kernel {number}" for number in range(200)])
    start_ns = np.arange(count, dtype=np.int64) * 1000
    builder.add_events(
        start_ns=start_ns, duration_ns=np.full(count, 900), track=track, name=names[np.arange(count) % 200]
    )
    trace = builder.build(
        origin=Origin.MEASURED, source=Source("", "test"), metadata=TraceMetadata(), clock_is_unix=False
    )
    world.session.show(Document((), "million", align("", [trace]), None, 0))
    pane.resize(900, 300)
    pane.show()
    pane.grab()
    assert pane._table.view.table.rowCount() == count
    world.session.select(EventSelection(0, count - 1))
    pane._table.view.table.sort(4, Qt.SortOrder.DescendingOrder)
    pane._table.view.table.set_filter("kernel 7")
    assert pane._table.view.table.rowCount() == count // 200 * 11
