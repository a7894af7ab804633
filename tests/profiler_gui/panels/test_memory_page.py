import pytest
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QTableView

from profiler_gui.panels.memory.page import MemoryPage
from profiler_gui.panels.memory.tables import alive_table, leak_table, step_memory_table
from profiler_gui.session.selection import (
    NOTHING,
    AllocationSelection,
    EventSelection,
    RangeSelection,
    StepSelection,
)
from profiler_gui.toolkit.theme import ThemeMode
from tests.support.panes import captured, drawn


@pytest.fixture(scope="module")
def df(captures):
    return captured(captures / "pytorch" / "df_index_resolver.json.gz")


@pytest.fixture(scope="module")
def gpt(captures):
    return captured(captures / "pytorch" / "gpt-cpu")


@pytest.fixture
def page(world, qtbot):
    page = MemoryPage(world.context)
    qtbot.addWidget(page)
    page.resize(900, 700)
    page.show()
    return page


def click(view, source_row):
    flags = QItemSelectionModel.SelectionFlag
    view.selectionModel().setCurrentIndex(view.table.index_of(source_row), flags.ClearAndSelect | flags.Rows)


def test_without_memory_one_sentence_says_which_switch_records_it(world, page):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    assert page.currentIndex() == 0
    assert "profile_memory=True" in page._note.text()


def test_a_rank_without_a_record_says_so_and_another_shows_its_own(world, page, qwen3):
    world.session.show(qwen3)
    world.session.set_rank(1)
    assert "rank 1 records no memory" in page._note.text()
    world.session.set_rank(2)
    assert page.currentIndex() == 1


def test_qwen3_shows_its_peak_of_10282_mib(world, page, qwen3):
    world.session.show(qwen3)
    assert "10,282.75 MiB allocated of 10,372 MiB" in page._sentence.text()
    assert page._plot.marks.peak_text == "peak 10,282.75 MiB at 317.402 ms"
    assert "1 − peak allocated ÷ peak reserved" in page._fragmentation.toolTip()
    assert page._badge.text() == "RECORDED (csv, no addresses)"


def test_the_drawn_line_reaches_the_peak(world, page, qwen3):
    world.session.show(qwen3)
    _, y = page._plot.points("PTA/0/allocated")
    assert y.max() == qwen3.summary.rank(0).memory.peak_allocated_bytes


def test_lines_can_be_hidden_and_others_added(world, page, qwen3):
    world.session.show(qwen3)
    shown = page._choice.shown
    assert "PTA/0/allocated" in shown
    assert "PTA+GE/0/allocated" not in shown
    page._choice.set_shown("PTA/0/allocated", is_shown=False)
    page._choice.set_shown("PTA+GE/0/allocated", is_shown=True)
    assert not page._plot._lines["PTA/0/allocated"].isVisible()
    assert page._plot._lines["PTA+GE/0/allocated"].isVisible()
    world.session.set_rank(1)
    world.session.set_rank(0)
    assert "PTA/0/allocated" not in page._choice.shown


def test_a_drag_over_the_plot_selects_a_range_of_the_trace(world, page, qwen3):
    world.session.show(qwen3)
    page._plot.drag(2e8, 1e8, is_finished=False)
    assert world.session.selection == NOTHING
    page._plot.drag(2e8, 1e8, is_finished=True)
    assert world.session.selection == RangeSelection(0, 100_000_000, 200_000_000)
    assert page._plot.marks.range_ns == (1e8, 2e8)
    page._plot.clear_range()
    assert world.session.selection == NOTHING


def test_a_range_selected_elsewhere_is_marked(world, page, qwen3):
    world.session.show(qwen3)
    world.session.select(RangeSelection(0, 5_000_000, 6_000_000))
    assert page._plot.marks.range_ns == (5_000_000, 6_000_000)


def test_the_plot_can_zoom_with_the_timeline(world, page, qwen3):
    world.session.show(qwen3)
    world.session.show_range(300_000_000, 400_000_000)
    assert page._plot.view == world.session.limits
    page._follows.setChecked(True)
    assert page._plot.view == world.session.viewport
    _, y = page._plot.points("PTA/0/allocated")
    assert y.max() == qwen3.summary.rank(0).memory.peak_allocated_bytes
    world.session.show_range(0, 1_000_000)
    assert page._plot.marks.peak_text == ""


def test_wheel_and_keys_move_the_shared_viewport(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    whole = world.session.viewport
    assert not page._plot.wheel(120, 0.0, Qt.KeyboardModifier.NoModifier)
    assert page._plot.wheel(120, 4e8, Qt.KeyboardModifier.ControlModifier)
    assert world.session.viewport.duration_ns < whole.duration_ns
    before = world.session.viewport
    assert page._plot.wheel(-120, 0.0, Qt.KeyboardModifier.ShiftModifier)
    assert world.session.viewport.start_ns > before.start_ns
    for key in (Qt.Key.Key_Plus, Qt.Key.Key_Left, Qt.Key.Key_Minus, Qt.Key.Key_0):
        qtbot.keyClick(page._plot, key)
    assert world.session.viewport == whole


def test_the_levels_under_the_pointer_are_read_out(world, page, qwen3):
    world.session.show(qwen3)
    peak_ns = qwen3.summary.rank(0).memory.peak_at_ns
    assert "allocated: 10.04 GiB" in page._plot.reading(peak_ns)


def test_a_device_limit_far_above_the_lines_does_not_press_them_flat(world, page, df):
    world.session.show(df)
    (_, _), (_, top) = page._plot.viewRange()
    assert top < df.job.ranks[0].trace.metadata.device_memory_bytes
    assert page._plot.marks.limit_text == "device: 31.75 GiB ↑"


def test_an_operator_alive_at_the_peak_leads_to_its_blocks(world, page, qwen3):
    world.session.show(qwen3)
    alive = qwen3.summary.rank(0).memory.alive_at_peak
    row = next(row for row, item in enumerate(alive) if item.operator == "aten::matmul")
    click(page._alive.operators.view, row)
    assert page._alive.blocks.table.view.table.rowCount() == alive[row].count


def test_a_click_on_a_block_selects_it(world, page, qwen3):
    world.session.show(qwen3)
    row = qwen3.summary.rank(0).memory.alive_at_peak[1].allocations[0]
    click(page._alive.blocks.table.view, row)
    assert world.session.selection == AllocationSelection(0, row)


def test_opening_a_block_shows_its_operator_on_the_timeline(world, page, df):
    world.session.show(df)
    blocks = df.job.ranks[0].trace.memory.allocations
    page._blocks._open(5)
    assert world.session.selection == EventSelection(1, int(blocks.event[5]))
    assert world.shown == ["timeline"]


def test_a_block_without_an_operator_shows_its_lifetime(world, page, qwen3):
    world.session.show(qwen3)
    click(page._blocks.table.view, 7)
    page._blocks._show.click()
    assert world.session.selection == AllocationSelection(0, 7)
    assert world.shown == ["timeline"]
    blocks = qwen3.job.rank_trace(0).trace.memory.allocations
    assert world.session.viewport.start_ns <= int(blocks.allocated_at_ns[7])


def test_a_block_selected_elsewhere_becomes_current(world, page, qwen3):
    world.session.show(qwen3)
    world.session.select(AllocationSelection(0, 100))
    view = page._blocks.table.view
    assert view.table.source_row(view.currentIndex()) == 100


def test_an_operator_selected_on_the_timeline_leads_to_its_block(world, page, df):
    world.session.show(df)
    blocks = df.job.ranks[0].trace.memory.allocations
    world.session.select(EventSelection(1, int(blocks.event[200])))
    view = page._blocks.table.view
    assert blocks.event[view.table.source_row(view.currentIndex())] == blocks.event[200]
    assert world.session.selection == EventSelection(1, int(blocks.event[200]))


def test_columns_the_source_leaves_empty_are_hidden(world, page, qwen3, df):
    def hidden(pane):
        view = pane.table.view
        return {column.id for number, column in enumerate(view.table.columns) if view.isColumnHidden(number)}

    world.session.show(qwen3)
    assert "address" in hidden(page._blocks)
    world.session.show(df)
    assert "address" not in hidden(page._blocks)


def test_steps_show_cache_and_headroom_and_select_the_step(world, page, df):
    world.session.show(df)
    steps = df.summary.rank(1).memory.steps
    table = page._steps.view.table
    assert table.rowCount() == len(steps)
    titles = [column.title for column in table.columns]
    assert "Reserved − allocated (cache)" in titles
    click(page._steps.view, 1)
    assert isinstance(world.session.selection, StepSelection)


def test_histograms_can_count_bytes(world, page, qwen3):
    world.session.show(qwen3)
    count = sum(bar.total for bar in page._sizes.rows[0].bars)
    assert count == len(qwen3.job.rank_trace(0).trace.memory.allocations)
    page._measure.setCurrentIndex(1)
    assert sum(bar.total for bar in page._sizes.rows[0].bars) > count


def test_memory_of_a_host_is_shown_as_such(world, page, gpt):
    world.session.show(gpt)
    assert page.currentIndex() == 1
    assert "host" in page._sentence.text()
    assert page._badge.text() == "MEASURED (with addresses)"


def test_colours_follow_the_theme(world, page, qwen3):
    world.session.show(qwen3)
    world.context.theme.apply(ThemeMode.DARK)
    assert page._plot.backgroundBrush().color().name() == world.context.theme.colours.background
    world.context.theme.apply(ThemeMode.LIGHT)


def test_every_control_has_a_name(world, page, qwen3):
    world.session.show(qwen3)
    for kind in (QComboBox, QCheckBox, QPushButton, QLineEdit, QTableView):
        for control in page.findChildren(kind):
            assert control.accessibleName() or control.text()


def test_tables_are_sound_models(qtmodeltester, qwen3, qapp):
    memory = qwen3.summary.rank(0).memory
    for table in (
        alive_table(memory.alive_at_peak),
        leak_table(memory.leaks),
        step_memory_table(memory.steps),
    ):
        qtmodeltester.check(table)
