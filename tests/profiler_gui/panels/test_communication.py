from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QLabel

from engine.trace import ParallelGroup, align
from engine.trace.intervals import EMPTY, union
from profiler_gui.panels.communication.descriptions import collective_text, short_name
from profiler_gui.panels.communication.lane_image import lane_image
from profiler_gui.panels.communication.lanes import Lane, LaneClass, lane_pixels, lanes_of
from profiler_gui.panels.communication.late_rank import late_rank_work, lateness_text, unsplit_text
from profiler_gui.panels.communication.overlap_bars import overlap_bars, overlap_parts
from profiler_gui.panels.communication.page import CommunicationPage, sentence_of
from profiler_gui.session.document import Document
from profiler_gui.session.selection import CollectiveSelection, EventSelection, RangeSelection, StepSelection
from profiler_gui.toolkit.theme import LIGHT
from tests.support.panes import summarized
from tests.support.trace_text import US, trace_from_text


@pytest.fixture
def page(world, qtbot):
    page = CommunicationPage(world.context)
    qtbot.addWidget(page)
    page.resize(1100, 700)
    return page


@pytest.fixture
def filled(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    qtbot.waitUntil(lambda: len(page._strip.lanes) == 4)
    return page


def member(trace):
    """Returns the trace as one of the two members of the group of its collectives."""
    group = ParallelGroup("123", "dp", (0, 1))
    return replace(trace, metadata=replace(trace.metadata, world_size=2, parallel_groups=(group,)))


def turn(widget, modifiers):
    """Turns the wheel one notch away from the user over the middle of the widget."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(widget.mapToGlobal(middle.toPoint())),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    widget.wheelEvent(event)


def moved_to(widget, place):
    """Returns the event of the pointer having moved to a place in the widget."""
    no_button = Qt.MouseButton.NoButton
    across = widget.mapToGlobal(place)
    return QMouseEvent(QEvent.Type.MouseMove, place, across, no_button, no_button, Qt.KeyboardModifier.NoModifier)


def longest_wait(document, rank):
    collectives = document.summary.communication.collectives[rank]
    return max(range(len(collectives)), key=lambda index: collectives[index].wait_ns or 0)


def lane(starts, ends):
    start_ns, end_ns = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    return Lane(0, 0, (union(start_ns, end_ns), EMPTY, EMPTY), (EMPTY, EMPTY, EMPTY), start_ns, end_ns)


def test_without_communication_one_sentence_says_so(world, page, alexnet):
    world.session.show(alexnet)
    assert page.currentIndex() == 0
    assert page._note.text() == "This capture holds no communication: no collective ran in it."


def test_the_rank_the_others_wait_for_stands_first(qwen3):
    joined = qwen3.summary.communication
    lanes = lanes_of(qwen3.job, joined)
    assert lanes[0].rank == joined.slow_ranks[0].rank
    assert {item.rank for item in lanes} == {0, 1, 2, 3}


def test_lanes_hold_every_nanosecond_of_communication_once(qwen3):
    for item in lanes_of(qwen3.job, qwen3.summary.communication):
        (step,) = qwen3.summary.rank(item.rank).steps
        total_ns = sum(part.total_ns for part in (*item.exposed, *item.hidden))
        assert total_ns == pytest.approx(step.communication_ns, abs=2000)
        assert item.exposed[LaneClass.WAIT].total_ns == pytest.approx(step.wait_ns, abs=2000)


def test_unsplit_collectives_are_neither_waiting_nor_transfer(cnn):
    (item,) = lanes_of(cnn.job, cnn.summary.communication)
    assert item.exposed[LaneClass.UNSPLIT].total_ns > 0
    assert item.hidden[LaneClass.UNSPLIT].total_ns > 0
    assert item.exposed[LaneClass.WAIT].total_ns == item.exposed[LaneClass.TRANSFER].total_ns == 0


@given(
    bounds=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**5)), min_size=1, max_size=20),
    view=st.tuples(st.integers(-1000, 10**6), st.integers(1, 10**6)),
    columns=st.integers(1, 300),
)
def test_pixel_columns_hold_exactly_what_lies_in_the_view(bounds, view, columns):
    item = lane([start for start, _ in bounds], [start + length for start, length in bounds])
    start_ns, end_ns = view[0], view[0] + max(view[1], columns)
    filled = lane_pixels(item, start_ns, end_ns, columns).exposed[LaneClass.TRANSFER]
    assert filled.min() >= 0
    assert filled.max() <= 1
    edges = start_ns + np.arange(columns + 1) * (end_ns - start_ns) // columns
    shown_ns = float((filled * np.diff(edges)).sum())
    inside = union(np.maximum(item.exposed[0].start_ns, start_ns), np.minimum(item.exposed[0].end_ns, end_ns)).total_ns
    assert shown_ns == pytest.approx(inside, abs=1e-3 * columns + 1)


def test_a_sliver_fills_one_column_and_is_pale(qapp):
    pixels = lane_pixels(lane([500_000_000], [500_000_001]), 0, 10**9, 1000)
    assert np.count_nonzero(pixels.exposed) == 1
    image = lane_image(pixels, 20, LIGHT)
    painted = [x for x in range(1000) if image.pixelColor(x, 2) != image.pixelColor(0, 2)]
    assert painted == [500]
    assert image.pixelColor(500, 2).lightness() > 180


def test_hidden_communication_has_half_the_height(qapp):
    whole = union(np.array([0]), np.array([100]))
    hidden = Lane(0, 0, (EMPTY,) * 3, (whole, EMPTY, EMPTY), np.array([0]), np.array([100]))
    image = lane_image(lane_pixels(hidden, 0, 100, 10), 20, LIGHT)
    assert image.pixelColor(5, 2).name() == LIGHT.background
    assert image.pixelColor(5, 17).name() == LIGHT.transfer


def test_a_click_in_the_strip_selects_the_collective_everywhere(world, filled, qwen3, qtbot):
    strip = filled._strip
    strip.resize(1000, strip.sizeHint().height())
    index = longest_wait(qwen3, 1)
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.position_of(1, index).toPoint())
    assert world.session.selection == CollectiveSelection(1, index)
    assert filled._table.view.table.source_row(filled._table.view.currentIndex()) == index
    assert filled._arrivals.chart.collective is qwen3.summary.communication.collectives[1][index]


def test_the_arrival_chart_names_the_last_member_and_what_it_did_before(world, filled, qwen3, qtbot):
    world.session.select(CollectiveSelection(0, longest_wait(qwen3, 0)))
    qtbot.waitUntil(lambda: "Meanwhile" in filled._arrivals.words)
    assert filled._arrivals.words.startswith("Rank 2 arrived last, 157.7 ms after rank 0. Rank 0 waited 157.7 ms.")
    assert "Meanwhile rank 2 was: computing" in filled._arrivals.words
    assert filled._arrivals.words.count("MatMulV3") == 1
    assert "rank 2 +157.7 ms, last" in filled._arrivals.chart.accessibleDescription()


def test_the_work_of_the_late_rank_lies_between_the_first_and_its_own_arrival(qwen3):
    collective = qwen3.summary.communication.collectives[0][longest_wait(qwen3, 0)]
    work = late_rank_work(qwen3.job, qwen3.summary.communication.collectives, collective)
    assert work.window_ns[1] - work.window_ns[0] == collective.members[-1].start_ns - collective.members[0].start_ns
    assert work.computing.total_ns == work.totals.compute_ns <= work.totals.span_ns


def test_the_button_selects_what_the_late_rank_did_on_the_timeline(world, filled, qwen3, qtbot):
    world.session.select(CollectiveSelection(0, longest_wait(qwen3, 0)))
    button = filled._arrivals._look
    qtbot.waitUntil(lambda: not button.isHidden())
    button.click()
    selection = world.session.selection
    assert isinstance(selection, RangeSelection)
    assert selection.rank == world.session.rank == 2
    assert world.shown == ["timeline"]


def test_the_strip_paints_waiting_light_and_transfer_dark(filled, qwen3):
    strip = filled._strip
    strip.resize(1000, strip.sizeHint().height())
    image = strip.grab().toImage()
    collectives = qwen3.summary.communication.collectives[0]
    waiting = strip.position_of(0, longest_wait(qwen3, 0)).toPoint()
    reduced = next(index for index, item in enumerate(collectives) if "reduceScatter__097_4" in item.name)
    transferring = strip.position_of(0, reduced).toPoint()
    assert image.pixelColor(waiting).name() == LIGHT.wait
    assert image.pixelColor(transferring).name() == LIGHT.transfer


def test_the_strip_outlines_the_selected_collective_and_shades_a_selected_range(world, filled, qwen3):
    strip = filled._strip
    strip.resize(1000, strip.sizeHint().height())
    before = strip.grab().toImage()
    world.session.select(CollectiveSelection(0, longest_wait(qwen3, 0)))
    outlined = strip.grab().toImage()
    world.session.select(RangeSelection(0, 0, world.session.limits.end_ns))
    shaded = strip.grab().toImage()
    assert before != outlined != shaded
    assert shaded.pixelColor(990, 2) != before.pixelColor(990, 2)


def test_the_wheel_zooms_with_ctrl_at_the_pointer_and_moves_with_shift(world, filled):
    strip = filled._strip
    strip.resize(1000, strip.sizeHint().height())
    whole = world.session.viewport
    turn(strip, Qt.KeyboardModifier.ControlModifier)
    zoomed = world.session.viewport
    assert zoomed.duration_ns == pytest.approx(whole.duration_ns * 0.8, rel=1e-6)
    turn(strip, Qt.KeyboardModifier.ShiftModifier)
    assert world.session.viewport.start_ns < zoomed.start_ns
    assert world.session.viewport.duration_ns == zoomed.duration_ns
    turn(strip, Qt.KeyboardModifier.NoModifier)
    assert world.session.viewport.duration_ns == zoomed.duration_ns


def test_plus_and_minus_zoom_the_strip(world, filled, qtbot):
    whole = world.session.viewport
    qtbot.keyClick(filled._strip, Qt.Key.Key_Plus)
    assert world.session.viewport.duration_ns < whole.duration_ns
    qtbot.keyClick(filled._strip, Qt.Key.Key_Minus)
    assert world.session.viewport == whole


def test_the_pointer_over_the_strip_reports_the_time(world, filled, qtbot):
    strip = filled._strip
    strip.resize(1000, strip.sizeHint().height())
    with qtbot.waitSignal(world.session.cursor_changed) as reported:
        strip.mouseMoveEvent(moved_to(strip, strip.position_of(0, 1)))
    collective = world.session.job_summary.communication.collectives[0][1]
    assert collective.start_ns < reported.args[0] < collective.start_ns + collective.elapsed_ns


def test_the_arrival_chart_paints_the_last_tick_red_and_waiting_before_it(world, filled, qwen3, qtbot):
    world.session.select(CollectiveSelection(0, longest_wait(qwen3, 0)))
    qtbot.waitUntil(lambda: "Meanwhile" in filled._arrivals.words)
    chart = filled._arrivals.chart
    chart.resize(600, chart.sizeHint().height())
    image = chart.grab().toImage()
    rows = [
        {image.pixelColor(x, y).name() for x in range(image.width())}
        for y in (image.height() // 4, image.height() * 3 // 4)
    ]
    assert LIGHT.wait in rows[0]
    assert LIGHT.error not in rows[0]
    assert LIGHT.error in rows[1]
    assert LIGHT.computing in rows[1]


def test_following_the_blame_selects_what_kept_the_late_rank_waiting(world, filled, qwen3, qtbot):
    collectives = qwen3.summary.communication.collectives
    works = {
        (rank, index): late_rank_work(qwen3.job, collectives, item)
        for rank, own in collectives.items()
        for index, item in enumerate(own)
        if item.wait_ns and item.late_rank not in (None, rank)
    }
    (rank, index), work = next(entry for entry in works.items() if entry[1].waited_for is not None)
    world.session.select(CollectiveSelection(rank, index))
    qtbot.waitUntil(lambda: not filled._arrivals._follow.isHidden())
    filled._arrivals._follow.click()
    assert world.session.selection == CollectiveSelection(work.rank, work.waited_for)
    assert collectives[work.rank][work.waited_for].wait_ns > 0


def test_an_event_selected_on_the_timeline_shows_its_collective(world, filled, qwen3):
    index = longest_wait(qwen3, 0)
    event = qwen3.summary.communication.collectives[0][index].event
    world.session.select(EventSelection(0, event))
    assert filled._arrivals.chart.collective is qwen3.summary.communication.collectives[0][index]
    assert world.session.selection == EventSelection(0, event)


def test_the_table_sorts_by_waiting_and_hides_the_profilers_own_columns(world, filled, qwen3):
    view = filled._table.view
    table = view.table
    names = [column.id for column in table.columns]
    table.sort(names.index("wait"), Qt.SortOrder.DescendingOrder)
    assert table.order[0] == longest_wait(qwen3, 0)
    hidden = {name for number, name in enumerate(names) if view.isColumnHidden(number)}
    assert hidden == {"vendor_wait", "vendor_transit", "vendor_idle"}


def test_a_row_chosen_in_the_table_is_selected(world, filled):
    view = filled._table.view
    view.setCurrentIndex(view.table.index(3, 0))
    assert world.session.selection == CollectiveSelection(0, view.table.source_row(view.table.index(3, 0)))


def test_arrow_keys_walk_over_collectives_and_ranks(world, filled, qtbot):
    strip = filled._strip
    first = strip.lanes[0].rank
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    assert world.session.selection == CollectiveSelection(first, 0)
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    assert world.session.selection == CollectiveSelection(first, 1)
    qtbot.keyClick(strip, Qt.Key.Key_Down)
    assert world.session.selection.rank == strip.lanes[1].rank


def test_the_sentence_gives_waiting_and_transfer(qwen3):
    text = sentence_of(qwen3.summary, 0)
    assert text == (
        "Rank 0: 15 collectives, 318.2 ms waiting, 102.0 ms transfer, 420.2 ms exposed, 0 % hidden behind computing."
    )


def test_unsplit_communication_says_which_peers_to_open(world, page, cnn, qtbot):
    world.session.show(cnn)
    qtbot.waitUntil(lambda: len(page._strip.lanes) == 1)
    assert "4 unsplit: open the peers (ranks 1, 2, 3, 4, 5, 6, 7)." in page._sentence.text()
    world.session.select(CollectiveSelection(0, 0))
    assert page._arrivals.words == "unsplit: open the peers (ranks 1, 2, 3, 4, 5, 6, 7)"
    assert page._arrivals.chart.collective is None


def test_one_missing_peer_is_one_rank():
    assert unsplit_text((3,)) == "unsplit: open the peer (rank 3)"
    assert unsplit_text(()).startswith("unsplit: the capture does not say")


def test_nobody_late_is_said(qwen3):
    collective = replace(qwen3.summary.communication.collectives[0][0], late_rank=None)
    assert lateness_text(0, collective, None) == "All members arrived at the same time."


def test_overlap_bars_add_up_to_the_step(cnn):
    (step,) = cnn.summary.rank(0).steps
    parts = dict(overlap_parts(step))
    assert parts["overlapped"] == step.overlapped_ns
    assert sum(parts.values()) == pytest.approx(
        step.computing_ns + step.communication_not_overlapped_ns + step.free_ns, abs=1
    )


def test_a_step_without_device_times_says_so(cnn):
    (step,) = cnn.summary.rank(0).steps
    (bar,) = overlap_bars((replace(step, computing_ns=None),), None)
    assert (bar.parts, bar.value_text) == ((), "no device times")


def test_a_step_of_the_overlap_bars_is_selected_by_click(world, filled):
    filled._bars.activated.emit(0, "computing")
    assert world.session.selection == StepSelection(0, 0)


def test_a_drawn_rank_waits_for_the_one_that_computes_longer(world, page, qtbot):
    names = {"H": "hcom_allReduce__123_0_1"}
    first = trace_from_text("npu 1 | AAA....... |\ncomm dp | ...HHHHHHH |", names, rank=0)
    second = trace_from_text("npu 1 | AAAAAAA... |\ncomm dp | .......HHH |", names, rank=1)
    world.session.show(summarized(Document((), "two", align("two", [member(first), member(second)]), None, 0)))
    qtbot.waitUntil(lambda: len(page._strip.lanes) == 2)
    late, waiting = page._strip.lanes
    assert (late.rank, waiting.rank) == (1, 0)
    assert waiting.exposed[LaneClass.WAIT].total_ns == 4 * US
    assert waiting.exposed[LaneClass.TRANSFER].total_ns == 3 * US
    assert late.exposed[LaneClass.WAIT].total_ns == 0
    world.session.select(CollectiveSelection(0, 0))
    qtbot.waitUntil(lambda: "Meanwhile" in page._arrivals.words)
    assert "Meanwhile rank 1 was: computing 100 %. Most of it: A 4" in page._arrivals.words


def test_kernel_names_lose_templates_and_parameters():
    assert short_name("void at::native::reduce_kernel<128, 4>(float*)") == "at::native::reduce_kernel"
    assert short_name("hcom_allReduce__586_0_1") == "hcom_allReduce__586_0_1"
    assert short_name("<lambda>") == "<lambda>"


def test_the_tooltip_of_a_collective_says_what_is_known_of_it(qwen3, cnn):
    split = collective_text(0, qwen3.summary.communication.collectives[0][longest_wait(qwen3, 0)])
    assert split.splitlines()[0] == "hcom_batchSendRecv__128_4_1 · rank 0"
    assert "waiting 157.7 ms" in split
    unsplit = collective_text(0, cnn.summary.communication.collectives[0][0])
    assert "unsplit" in unsplit
    assert "waiting 1" not in unsplit


def test_every_label_shows_text_to_screen_readers(filled):
    assert filled.accessibleName() == "Communication"
    assert filled._strip.accessibleDescription().startswith("Ranks from the top: ")
    assert all(label.text() for label in filled.findChildren(QLabel) if label.isVisible())
