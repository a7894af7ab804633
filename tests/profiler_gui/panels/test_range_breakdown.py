import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QLabel

from profiler_gui.panels.range_breakdown import RangeBreakdown, breakdown_of, parts_of
from profiler_gui.session.selection import OperatorSelection, RangeSelection, StepSelection
from profiler_gui.toolkit.bars import StackedBars
from tests.support.panes import drawn
from tests.support.trace_text import US, trace_from_text

PICTURE = """
gpu 7 | AAAA..BBBB.. |
gpu 8 | ..NNNN...... |
gpu 9 | .......CCC.. |
"""
NAMES = {"N": "ncclKernel_AllReduce", "C": "Memcpy DtoD"}
CATEGORIES = {"C": "gpu_memcpy"}


@pytest.fixture
def pane(world, qtbot):
    pane = RangeBreakdown(world.context)
    qtbot.addWidget(pane)
    pane.resize(800, 260)
    return pane


def shown_parts(pane):
    return {part.id: part.value for bar in pane.findChild(StackedBars).bars for part in bar.parts}


def title(pane):
    return pane.findChildren(QLabel)[0].text()


def test_without_a_selection_the_whole_device_span_is_broken_down(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    qtbot.waitUntil(lambda: shown_parts(pane) == {"computing": 6 * US, "idle": 2 * US})
    assert title(pane).startswith("Whole device span")


def test_a_selected_range_is_cut_out_of_what_overlaps_it(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    world.session.select(RangeSelection(0, 3 * US, 7 * US))
    qtbot.waitUntil(lambda: shown_parts(pane) == {"computing": 2 * US, "idle": 2 * US})
    assert title(pane) == "Selected range: 4 µs from 3.000 µs"
    assert pane._table.view.table.rowCount() == 2


def test_a_selected_step_is_a_range_too(world, pane, qtbot, qwen3):
    world.session.show(qwen3)
    world.session.select(StepSelection(2, 0))
    qtbot.waitUntil(lambda: title(pane).startswith("Selected step: 809"))
    qtbot.waitUntil(lambda: shown_parts(pane).get("computing", 0) > 300e6)


def test_parts_are_unions_and_never_more_than_the_range():
    trace = trace_from_text(PICTURE, NAMES, CATEGORIES)
    totals = breakdown_of(trace, (0, 12 * US)).totals
    assert dict(parts_of(totals)) == {
        "computing": 6 * US,
        "overlap": 2 * US,
        "communication": 2 * US,
        "idle": 2 * US,
    }


@given(start=st.integers(0, 12 * US), length=st.integers(1, 12 * US))
def test_parts_add_up_to_any_range_exactly(start, length):
    trace = trace_from_text(PICTURE, NAMES, CATEGORIES)
    totals = breakdown_of(trace, (start, start + length)).totals
    parts = dict(parts_of(totals))
    assert sum(parts.values()) == length
    assert min(parts.values()) > 0


def test_a_trace_without_device_work_says_so(world, pane, qtbot):
    world.session.show(drawn("host 1 | AAAA |"))
    qtbot.waitUntil(lambda: title(pane) == "This rank's trace holds no device work.")
    assert pane.findChild(StackedBars).isHidden()


def test_opening_an_operator_selects_it(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    qtbot.waitUntil(lambda: pane._table.view.table is not None)
    pane._table.view.row_opened.emit(0)
    assert world.session.selection == OperatorSelection(0, "A")


def test_the_newest_selection_wins(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    for end in range(1, 8):
        world.session.select(RangeSelection(0, 0, end * US))
    qtbot.waitUntil(lambda: sum(shown_parts(pane).values()) == 7 * US)
