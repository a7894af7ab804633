import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from profiler_gui.item_models.columns import is_nan, nullable, number_column, text_column
from profiler_gui.item_models.export import tsv, write_csv
from profiler_gui.item_models.table_model import RAW_ROLE, ROW_ROLE, SORT_ROLE, UNIT_ROLE, TableModel
from profiler_gui.item_models.table_view import FilteredTable
from profiler_gui.item_models.trace_tables import allocation_table, diagnostic_table, event_table, self_time_ns
from tests.support.trace_text import trace_from_text

ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder


def shown(model, column=0):
    return [model.data(model.index(row, column)) for row in range(model.rowCount())]


@pytest.fixture
def events(qapp):
    return event_table(trace_from_text("gpu 7 | AAAA..BB |\nhost 1 | CCCCCCCC |\nhost 1 | .D.D.... |"))


def small_table():
    values = nullable([3, None, 1, 3, None])
    return TableModel(
        (
            number_column("number", "Number", values, lambda value: f"{value:.0f}", unit="ns", absent=is_nan),
            text_column("text", "Text", ["b", "a", "c", "A", "tab\there"]),
        ),
        5,
    )


def test_the_event_table_is_a_proper_item_model(events, qtmodeltester):
    qtmodeltester.check(events)
    events.sort(4, DESCENDING)
    qtmodeltester.check(events)


def test_cells_read_as_people_do_and_sort_as_numbers(events):
    events.sort(4, DESCENDING)
    assert shown(events, 4) == ["8 µs", "4 µs", "2 µs", "1 µs", "1 µs"]
    first = events.index(0, 4)
    assert [events.data(first, role) for role in (SORT_ROLE, RAW_ROLE, UNIT_ROLE)] == [8000, "8000", "ns"]
    assert events.data(events.index(0, 0)) == "C"


def test_rows_lead_back_to_the_engines_rows(events):
    events.sort(4, ASCENDING)
    for row in range(events.rowCount()):
        index = events.index(row, 0)
        assert events.source_row(index) == index.data(ROW_ROLE)
        assert events.index_of(events.source_row(index)).row() == row


def test_a_filter_looks_at_every_text_column(events):
    events.set_filter("stream")
    assert shown(events) == []
    events.set_filter("gpu 7")
    assert shown(events) == ["A", "B"]
    events.set_filter("d")
    assert shown(events) == ["D", "D"]
    events.set_filter("")
    assert events.rowCount() == 5


def test_rows_can_be_restricted_under_a_filter(events):
    events.set_rows(np.array([0, 2]))
    events.set_filter("a")
    assert [int(row) for row in events.order] == [0]


def test_missing_values_stay_last_and_equal_values_keep_their_order(qapp):
    table = small_table()
    table.sort(0, ASCENDING)
    assert table.order.tolist() == [2, 0, 3, 1, 4]
    table.sort(0, DESCENDING)
    assert table.order.tolist() == [0, 3, 2, 1, 4]
    table.sort(-1)
    assert table.order.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(-5, 5), max_size=30), st.booleans())
def test_sorting_agrees_with_pythons_stable_sort(values, descending):
    table = TableModel((number_column("n", "N", np.array(values, dtype=np.int64)),), len(values))
    table.sort(0, DESCENDING if descending else ASCENDING)
    assert table.order.tolist() == sorted(range(len(values)), key=values.__getitem__, reverse=descending)


def test_texts_sort_without_regard_to_case(qapp):
    table = small_table()
    table.sort(1, ASCENDING)
    assert table.order.tolist() == [1, 3, 0, 2, 4]


def test_selected_rows_stay_selected_when_sorted(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    widget.view.selectRow(0)
    row = events.source_row(widget.view.currentIndex())
    events.sort(4, ASCENDING)
    assert events.source_row(widget.view.currentIndex()) == row


def test_copied_rows_are_exact_and_name_their_units(qapp):
    assert tsv(small_table(), [0, 1, 4]) == "Number (ns)\tText\n3\tb\n\ta\n\ttab here\n"


def test_the_view_copies_the_selection_and_everything_without_one(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    widget.view.copy()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 6
    widget.view.selectRow(1)
    widget.view.copy()
    assert QGuiApplication.clipboard().text().splitlines()[1].startswith("B\t")


def test_a_header_sorts_numbers_descending_first(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    header = widget.view.horizontalHeader()
    header.sectionClicked.emit(4)
    assert events.data(events.index(0, 0)) == "C"
    header.sectionClicked.emit(4)
    assert events.data(events.index(4, 0)) == "C"


def test_the_users_choice_is_announced_and_a_reveal_is_not(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    with qtbot.assertNotEmitted(widget.view.row_chosen):
        widget.view.reveal(3)
    with qtbot.waitSignal(widget.view.row_chosen) as chosen:
        widget.view.selectRow(1)
    assert chosen.args == [1]


def test_typing_in_the_filter_line_filters_and_counts(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    with qtbot.waitSignal(events.layoutChanged):
        widget.filter_edit.setText("d")
    assert widget._count.text() == "2 / 5"


def test_a_table_is_exported_in_the_order_shown(events, tmp_path):
    events.sort(4, DESCENDING)
    assert write_csv(events, tmp_path / "events.csv") == 5
    lines = (tmp_path / "events.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("Name,Category,Track,Start (ns),Duration (ns)")
    assert lines[1].startswith("C,cpu_op,host 1,0,8000,6000")


def test_self_time_is_duration_less_children():
    trace = trace_from_text("host 1 | CCCCCCCC |\nhost 1 | .DD.E... |")
    assert self_time_ns(trace).tolist() == [5000, 2000, 1000]


def test_empty_tables_are_proper_item_models(qapp, qtmodeltester):
    trace = trace_from_text("gpu 7 | A |")
    for model in (allocation_table(trace), diagnostic_table(trace.diagnostics)):
        qtmodeltester.check(model)
        assert model.rowCount() == 0


def test_a_million_rows_sort_in_a_moment(qapp):
    values = np.random.default_rng(1).integers(0, 1 << 40, 1_000_000)
    table = TableModel((number_column("n", "N", values),), len(values))
    table.sort(0, DESCENDING)
    assert table.rowCount() == 1_000_000
    assert int(values[table.order[0]]) == int(values.max())


def test_chosen_columns_come_back_by_id_and_nonsense_is_ignored(events, qtbot):
    widget = FilteredTable("Events")
    qtbot.addWidget(widget)
    widget.set_table(events)
    widget.view.setColumnHidden(2, True)
    widget.view.setColumnWidth(0, 222)
    widget.view.horizontalHeader().moveSection(4, 0)
    text = widget.view.layout_text
    again = FilteredTable("Events")
    qtbot.addWidget(again)
    again.view.restore_layout(text)
    again.set_table(event_table(trace_from_text("gpu 7 | AB |")))
    assert again.view.layout_text == text
    assert again.view.isColumnHidden(2)
    assert again.view.columnWidth(0) == 222
    assert again.view.horizontalHeader().logicalIndex(0) == 4
    for nonsense in ("", "{", "[1]", '{"name": 7, "gone": [0, 10, false], "track": [-1, 5, false]}'):
        again.view.restore_layout(nonsense)
    assert again.view.layout_text == text
