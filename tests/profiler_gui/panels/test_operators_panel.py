import pytest
from PySide6.QtCore import QItemSelectionModel

from profiler_gui.panels.operators import OperatorsTable, query_of, task_names
from profiler_gui.session import event_search
from profiler_gui.session.filters import search
from profiler_gui.session.selection import EventSelection, OperatorSelection
from tests.support.panes import drawn


@pytest.fixture
def pane(world, qtbot):
    pane = OperatorsTable(world.context)
    qtbot.addWidget(pane)
    return pane


def click(view, row):
    index = view.table.index(row, 0)
    flags = QItemSelectionModel.SelectionFlag
    view.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)


def types_of(pane):
    return [item.type for item in pane._operators]


def test_without_a_capture_it_says_what_it_would_show(pane):
    assert "Open a capture" in pane._note.text()


def test_operators_stand_with_the_largest_first(world, pane):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    assert types_of(pane) == ["A", "B"]
    assert pane._note.text() == "6 µs of computing in 2 tasks, whole trace"


def test_a_click_selects_the_operator_and_takes_no_search_away(world, pane):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    click(pane._table.view, 1)
    assert world.session.selection == OperatorSelection(0, "B")
    assert world.session.query.text == ""


def test_opening_finds_exactly_the_tasks_of_the_type(world, pane, qwen3):
    world.session.show(qwen3)
    row = next(row for row, item in enumerate(pane._operators) if item.type == "RmsNorm")
    pane._open(row)
    assert len(world.session.matches) == pane._operators[row].count
    assert world.shown == ["timeline"]


def test_in_a_large_trace_a_match_is_brought_into_view_when_it_is_found(world, pane, qtbot, monkeypatch):
    monkeypatch.setattr(event_search, "MAX_ROWS_AT_ONCE", 0)
    session = world.session
    session.show(drawn("gpu 7 | AAAA..BB |"))
    session.show_range(0, 1_000)
    row = next(row for row, item in enumerate(pane._operators) if item.type == "B")
    with qtbot.waitSignal(session.viewport_changed):
        pane._open(row)
        assert session.viewport.end_ns == 1_000
    assert session.viewport == session.limits


def test_every_type_of_a_real_capture_can_be_found(qwen3):
    trace = qwen3.job.rank_trace(0).trace
    for item in qwen3.summary.rank(0).operators:
        assert len(search(trace, query_of(trace, item.type))) >= item.count
        assert task_names(trace, item.type)


def test_the_row_of_a_selected_task_becomes_current(world, pane):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    world.session.select(EventSelection(0, 1))
    assert pane._operators[pane._table.view.table.source_row(pane._table.view.currentIndex())].type == "B"
    assert world.session.selection == EventSelection(0, 1)


def test_a_step_restricts_the_table_to_what_ran_in_it(world, pane, captures, qtbot, cnn):
    world.session.show(cnn)
    whole = sum(item.count for item in pane._operators)
    world.session.set_step(0)
    qtbot.waitUntil(lambda: "step in view" in pane._note.text())
    assert 0 < sum(item.count for item in pane._operators) <= whole


def test_a_rank_without_kernels_says_so(world, pane, qwen3):
    world.session.show(qwen3)
    world.session.set_rank(1)
    assert "no computing" in pane._note.text()
    assert pane._table.isHidden()


def test_a_viewport_without_a_match_gives_way_to_the_whole_trace(world, pane):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    world.session.show_range(0, 3000)
    pane._open(0)
    assert world.session.viewport.end_ns == 3000
    pane._open(1)
    assert world.session.viewport == world.session.limits
