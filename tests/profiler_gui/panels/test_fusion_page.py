from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton

from engine.analyses.fusion import FusionCandidate, Occurrence, Range3
from profiler_gui.panels.fusion.kernel_table import kernel_table
from profiler_gui.panels.fusion.lanes import OccurrenceLanes, difference_text, slice_text
from profiler_gui.panels.fusion.occurrences import lanes_of, shown_occurrences
from profiler_gui.panels.fusion.page import FusionPage, title_of
from profiler_gui.session.selection import CandidateSelection, EventSelection
from tests.support.panes import drawn


@pytest.fixture
def page(world, qtbot):
    page = FusionPage(world.context)
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    return page


def candidate_of(lengths):
    places = tuple(
        Occurrence((index,), 1000 * index, 1000 * index + length, length) for index, length in enumerate(lengths)
    )
    return FusionCandidate(
        "p",
        "Pattern",
        "call",
        "kernels",
        len(lengths),
        sum(lengths),
        0,
        len(lengths),
        "vector",
        Range3(1, 2, 3),
        "",
        places,
    )


def click(view, row):
    flags = QItemSelectionModel.SelectionFlag
    view.selectionModel().setCurrentIndex(view.table.index_of(row), flags.ClearAndSelect | flags.Rows)


def row_of(document, pattern):
    return next(i for i, item in enumerate(document.summary.rank(0).fusion_candidates) if item.pattern == pattern)


def test_the_farthest_from_the_median_come_first_and_a_typical_one_last():
    candidate = candidate_of([100, 100, 100, 100, 100, 101, 900, 10, 500])
    assert shown_occurrences(candidate)[:3] == (6, 8, 7)
    assert candidate.occurrences[shown_occurrences(candidate)[-1]].busy_ns == 100


@given(st.lists(st.integers(1, 10**6), max_size=40), st.integers(0, 45))
def test_no_more_than_six_are_shown_each_once_and_the_wanted_one_among_them(lengths, wanted):
    candidate = candidate_of(lengths)
    shown = shown_occurrences(candidate, wanted)
    assert len(shown) == len(set(shown)) == min(6, len(lengths))
    if wanted < len(lengths):
        assert wanted in shown
    if lengths and len(shown) == len(lengths):
        middle = median(lengths)
        distances = [abs(lengths[index] - middle) for index in shown_occurrences(candidate)]
        assert distances == sorted(distances, reverse=True)


def test_lanes_hold_the_kernels_in_order_with_their_shapes(qwen3):
    trace = qwen3.job.rank_trace(0).trace
    candidate = qwen3.summary.rank(0).fusion_candidates[row_of(qwen3, "repeated_cos_sin")]
    lanes = lanes_of(trace, candidate)
    assert [item.name for item in lanes[0].slices][:2] == ["Cos", "Mul"]
    assert lanes[0].slices[0].shapes == "4096,1,1,128 → 4096,1,1,128"
    for lane in lanes:
        place = candidate.occurrences[lane.index]
        assert sum(item.duration_ns for item in lane.slices) == lane.busy_ns == place.busy_ns
        assert lane.slices[0].offset_ns == 0


def test_gaps_of_the_table_and_durations_fill_the_occurrence(qwen3, qtmodeltester, qapp):
    trace = qwen3.job.rank_trace(0).trace
    candidate = qwen3.summary.rank(0).fusion_candidates[row_of(qwen3, "repeated_cos_sin")]
    lane = lanes_of(trace, candidate)[0]
    table = kernel_table(lane)
    qtmodeltester.check(table)
    duration, gap = table.columns[2], table.columns[3]
    total_ns = sum(int(duration.raw(row)) + int(gap.raw(row)) for row in range(len(lane.slices)))
    assert total_ns == lane.length_ns


def test_without_kernels_one_sentence_says_so(world, page, qwen3):
    world.session.show(qwen3)
    world.session.set_rank(1)
    assert page.currentIndex() == 0
    assert "rank 1 lists no kernels" in page._note.text()


def test_kernels_that_nothing_replaces_are_said_to_be_so(world, page):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    assert "No sequence of kernels" in page._note.text()


def test_the_largest_saving_is_shown_first_and_its_replacement_can_be_copied(world, page, qwen3):
    world.session.show(qwen3)
    first = qwen3.summary.rank(0).fusion_candidates[0]
    assert page._title.text() == title_of(first)
    assert page._reason.text() == first.reason
    row = row_of(qwen3, "optimizer")
    click(page._table.view, row)
    page._copy.click()
    assert QGuiApplication.clipboard().text() == qwen3.summary.rank(0).fusion_candidates[row].replacement


def test_there_is_nothing_to_copy_where_no_replacement_is_known(world, page, qwen3):
    world.session.show(qwen3)
    candidates = qwen3.summary.rank(0).fusion_candidates
    for row, item in enumerate(candidates):
        click(page._table.view, row)
        assert page._copy.isEnabled() == bool(item.replacement)


def test_choosing_a_candidate_selects_it_and_lists_its_occurrences(world, page, qwen3):
    world.session.show(qwen3)
    row = row_of(qwen3, "gradient_accumulation")
    click(page._table.view, row)
    assert world.session.selection == CandidateSelection(0, "gradient_accumulation")
    assert len(page._lanes.lanes) == 6


def test_a_click_on_an_occurrence_selects_its_stretch(world, page, qwen3):
    world.session.show(qwen3)
    index = page._lanes.lanes[1].index
    page._lanes.lane_chosen.emit(index)
    pattern = qwen3.summary.rank(0).fusion_candidates[0].pattern
    assert world.session.selection == CandidateSelection(0, pattern, index)
    place = qwen3.summary.rank(0).fusion_candidates[0].occurrences[index]
    assert world.session.viewport.start_ns <= place.start_ns
    assert world.session.viewport.end_ns >= place.end_ns
    assert page._lanes.selected_occurrence == index


def test_a_click_on_a_kernel_selects_its_event_and_lists_its_occurrence(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    place = page._lanes.slice_rect(2, 0).center().toPoint()
    qtbot.mouseClick(page._lanes, Qt.MouseButton.LeftButton, pos=place)
    lane = page._lanes.lanes[2]
    assert world.session.selection == EventSelection(0, lane.slices[0].event)
    assert page._listed is lane
    click(page._kernels, 1)
    assert world.session.selection == EventSelection(0, lane.slices[1].event)


def test_opening_an_occurrence_zooms_the_timeline_to_it(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    page._lanes.lane_opened.emit(page._lanes.lanes[0].index)
    assert world.shown == ["timeline"]
    place = qwen3.summary.rank(0).fusion_candidates[0].occurrences[page._lanes.lanes[0].index]
    assert world.session.viewport.duration_ns <= 2 * (place.end_ns - place.start_ns)
    world.session.show_all()
    page._show.click()
    assert world.shown == ["timeline", "timeline"]
    assert world.session.viewport.duration_ns <= 2 * (place.end_ns - place.start_ns)


def test_the_keyboard_walks_over_lanes_and_kernels(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    qtbot.keyClick(page._lanes, Qt.Key.Key_Right)
    assert world.session.selection == EventSelection(0, page._lanes.lanes[0].slices[0].event)
    qtbot.keyClick(page._lanes, Qt.Key.Key_Down)
    assert world.session.selection == EventSelection(0, page._lanes.lanes[1].slices[0].event)
    qtbot.keyClick(page._lanes, Qt.Key.Key_Return)
    assert world.shown == ["timeline"]


def test_a_candidate_selected_elsewhere_is_shown_with_its_occurrence(world, page, qwen3):
    world.session.show(qwen3)
    row = row_of(qwen3, "gradient_accumulation")
    world.session.select(CandidateSelection(0, "gradient_accumulation", 100))
    assert page._title.text() == title_of(qwen3.summary.rank(0).fusion_candidates[row])
    assert page._lanes.lanes[0].index == 100
    assert page._table.view.table.source_row(page._table.view.currentIndex()) == row
    assert world.session.selection == CandidateSelection(0, "gradient_accumulation", 100)


def test_an_event_selected_elsewhere_is_outlined_where_it_is_shown(world, page, qwen3):
    world.session.show(qwen3)
    lane = page._lanes.lanes[3]
    world.session.select(EventSelection(0, lane.slices[0].event))
    assert page._lanes.selected_occurrence == lane.index


def test_there_is_no_button_without_a_function(page):
    texts = {button.text() for button in page.findChildren(QPushButton)}
    assert texts == {"&Copy Replacement", "Tr&y", "&Show on Timeline"}


def test_lengths_are_compared_with_the_median():
    assert difference_text(0.0) == "typical"
    assert difference_text(0.5) == "50 % longer"
    assert difference_text(-0.25) == "25 % shorter"


def test_lanes_describe_themselves_and_their_kernels(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    lane = page._lanes.lanes[0]
    assert page._lanes.title_of(lane) in page._lanes.accessibleDescription()
    text = slice_text(lane, lane.slices[0])
    assert "Cos (aclnnCos_CosAiCore_Cos)" in text
    assert "4096,1,1,128" in text


def test_lanes_without_occurrences_take_no_keys_and_no_room(world, qtbot):
    lanes = OccurrenceLanes(world.context.theme)
    qtbot.addWidget(lanes)
    lanes.set_lanes((), 0)
    qtbot.keyClick(lanes, Qt.Key.Key_Right)
    assert lanes.sizeHint().height() <= 2


def test_try_presses_the_toggle_that_fuses_the_pattern(page, world, qtbot, qwen3):
    world.session.show(qwen3)
    world.session.set_rank(2)
    patterns = [item.pattern for item in page._candidates]
    page._choose(patterns.index("cross_entropy"))
    page._try.click()
    assert world.session.toggles.on == {"fusion.cross_entropy"}
    assert world.shown[-1] == "whatif"
    world.session.reruns.cancel()
