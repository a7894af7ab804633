"""The tabs of the Memory page beside the levels: history of a run, and addresses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QColor

from engine.analyses.step_history import history_table
from engine.runtime.addresses.address_map import AddressMap, Basis, BlockRectangles, Misses, SegmentRectangles
from engine.runtime.addresses.from_log import Pools, ServedLog, address_map
from engine.runtime.addresses.table import address_table
from engine.runtime.allocators.caching import CACHING, CachingAllocator, with_limit
from engine.trace.job import align
from engine.trace.trace import Origin
from profiler_gui.panels.memory.address_picture import AddressPicture, View
from profiler_gui.panels.memory.address_space import releasable_spans, stacked_space
from profiler_gui.panels.memory.address_view import worst_miss
from profiler_gui.panels.memory.views import ADDRESSES, LEVELS, RUN, MemoryViews
from profiler_gui.panels.overview.page import OverviewPage
from profiler_gui.session.document import Document
from profiler_gui.toolkit.theme import LIGHT, ThemeMode
from tests.support.histories import made_history
from tests.support.panes import summarized
from tests.support.patience import PATIENCE_MS
from tests.support.request_text import requests
from tests.support.trace_text import trace_from_text

PINNED = "a = 9M\nb = 1.5M\nc = 9M\nfree a\nfree c\nd = 16M"
"""A block in the middle of a segment of 20 MiB: neither hole holds what is asked for then."""


def mapped_program(program, limit_bytes=20 << 20):
    allocator = CachingAllocator(with_limit(CACHING, limit_bytes))
    before, log = allocator.layout(), requests(program)
    pools = Pools(1, allocator.class_of_tag)
    served = [ServedLog(log, allocator.run(log))]
    return address_map(before, served, allocator.settings, pools, basis=Basis.SIMULATED, policy="test")


def simulated(**tables):
    trace = replace(trace_from_text("gpu 7 | AA |"), origin=Origin.SIMULATED, tables=tables)
    return summarized(Document((Path("run"),), "run", align("run", [trace]), None, 0))


@pytest.fixture
def views(world, qtbot):
    views = MemoryViews(world.context)
    qtbot.addWidget(views)
    views.resize(1100, 700)
    views.show()
    return views


def shown_map(views, qtbot):
    views.setCurrentIndex(ADDRESSES)
    qtbot.waitUntil(lambda: views.addresses.canvas._picture is not None, timeout=PATIENCE_MS)
    return views.addresses


# History of a run


def test_a_capture_without_history_shows_its_levels_and_no_tab_for_it(world, views, qwen3):
    world.session.show(qwen3)
    assert views.currentIndex() == LEVELS
    assert not views.isTabVisible(RUN)


def test_a_long_run_begins_with_its_course_and_marks_the_onset(world, views):
    world.session.show(simulated(step_history=history_table(made_history(slower_from=300))))
    assert views.currentIndex() == RUN
    run = views.run
    assert run.badge.text() == "SIMULATED"
    assert "because memory is fragmented" in run.sentence.text()
    assert run.plots.onset_text.startswith("step 3")
    assert run.plots.ticks_of("caught") > run.plots.ticks_of("driver")


def test_a_steady_run_has_no_onset(world, views):
    world.session.show(simulated(step_history=history_table(made_history())))
    assert views.run.plots.onset_text == ""
    assert "steady" in views.run.sentence.text()


def test_a_step_reads_what_it_took_and_what_memory_did(world, views):
    world.session.show(simulated(step_history=history_table(made_history(slower_from=300))))
    text = views.run.plots.reading(799)
    for words in ("Step 799", "tokens", "allocated", "stranded", "retries"):
        assert words in text


def test_zooming_to_steps_says_how_much_the_allocator_explains_of_them(world, views):
    world.session.show(simulated(step_history=history_table(made_history(slower_from=300))))
    assert "Steps 0–799 in view: R²" in views.run.explained.text()
    views.run.plots.times.setXRange(10, 200, padding=0)
    assert "Steps 10–199 in view: the allocator explains nothing" in views.run.explained.text()


def test_plots_take_the_colours_of_the_theme(world, views):
    world.session.show(simulated(step_history=history_table(made_history())))
    light = views.run.plots.grab().toImage()
    world.context.theme.apply(ThemeMode.DARK)
    assert views.run.plots.grab().toImage() != light


# Addresses


def test_addresses_stack_without_the_empty_space_between():
    space = stacked_space(np.array([1000, 5000, 5100]), np.array([100, 100, 50]))
    assert space.total_bytes == 250
    assert space.position_of(np.array([1000, 1099, 5000, 5120])).tolist() == [0, 99, 100, 220]
    assert [space.address_at(place) for place in (0, 99, 100, 220)] == [1000, 1099, 5000, 5120]


def test_a_segment_is_free_as_a_whole_only_while_no_block_is_in_it():
    mapped = mapped_program("a = 9M\nfree a\nb = 9M\nc = 1M\nfree b\nfree c", None)
    rows, first, last = releasable_spans(mapped)
    large = rows == 0
    assert list(zip(first[large].tolist(), last[large].tolist(), strict=True)) == [(1, 2), (5, 6)]


def test_the_picture_shows_blocks_where_they_lie_while_they_live():
    picture = AddressPicture(mapped_program(PINNED))
    image = picture.render(picture.whole, QSize(60, 200), LIGHT)
    block, height_mib = QColor(LIGHT.allocated).rgb(), 20

    def is_block(event, mib):
        return image.pixel(round((event + 0.5) * 10), round(200 * (1 - mib / height_mib))) == block

    assert is_block(0, 4)
    assert not is_block(0, 15)
    assert all(is_block(event, 9.7) for event in range(1, 6))
    assert is_block(3, 15)
    assert not is_block(5, 4)
    assert not is_block(5, 15)


def test_zooming_keeps_the_place_and_stays_inside():
    whole = View(0.0, 100.0, 0.0, 1e6)
    zoomed = View(0.0, 100.0, 0.0, 1e6).zoomed(25.0, 5e5, 0.5, 0.5).inside(whole)
    assert (zoomed.left, zoomed.right) == (12.5, 62.5)
    assert zoomed.moved(1e9, -1e9).inside(whole) == View(50.0, 100.0, 0.0, 5e5)
    assert zoomed.zoomed(25.0, 5e5, 1e-9, 1e-9).inside(whole).right - zoomed.left > 0


def test_the_view_explains_the_gravest_miss_at_once(world, views, qtbot):
    world.session.show(simulated(address_space=address_table(mapped_program(PINNED))))
    view = shown_map(views, qtbot)
    assert view.badge.text() == "SIMULATED"
    assert "There is enough free memory, but not in one piece." in view.report.text()
    assert view.report.text().endswith("out of memory.")
    table = view.holes.table
    assert table.rowCount() == 2
    cells = [[table.index(row, column).data() for column in range(table.columnCount())] for row in range(2)]
    assert all("too small by" in " ".join(map(str, row)) for row in cells)
    assert all("requests old" in " ".join(map(str, row)) for row in cells)
    assert view.misses.view.table.rowCount() == 2


def test_arrows_walk_over_the_misses_and_a_click_on_a_caret_chooses(world, views, qtbot):
    world.session.show(simulated(address_space=address_table(mapped_program(PINNED))))
    view = shown_map(views, qtbot)
    qtbot.keyClick(view.canvas, Qt.Key.Key_Left)
    assert "new segment" in view.report.text()
    last = view.canvas._x_px(5.5)
    qtbot.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(last), 3))
    assert "out of memory" in view.report.text()


def test_what_is_under_the_pointer_is_said(world, views, qtbot):
    world.session.show(simulated(address_space=address_table(mapped_program(PINNED))))
    canvas = shown_map(views, qtbot).canvas
    middle = QPointF(canvas._x_px(1.5), canvas._y_px(9.5 * (1 << 20)))
    assert "1.5 MiB" in canvas.reading(middle)
    assert "free or unused" in canvas.reading(QPointF(canvas._x_px(5.5), canvas._y_px(1000.0)))
    assert "no hole for" in canvas.reading(QPointF(canvas._x_px(5.5), 2.0))


def test_a_real_capture_is_reconstructed_when_it_is_looked_at(world, views, qtbot, qwen3):
    world.session.show(qwen3)
    assert views.addresses.canvas._picture is None
    view = shown_map(views, qtbot)
    assert view.badge.text() == "RECONSTRUCTED"
    assert "expandable segments" in view.summary.text()
    world.session.set_rank(1)
    assert not views.isTabVisible(ADDRESSES)


def test_two_hundred_thousand_blocks_are_painted():
    generator = np.random.default_rng(0)
    count = 200_000
    first = np.sort(generator.integers(0, 2 * count, count))
    size = generator.integers(1, 64, count) * 4096
    address = (1 << 44) + generator.integers(0, 1 << 18, count) * 4096
    blocks = BlockRectangles(address, size, first, first + 400, generator.integers(0, 4, count), np.full(count, -1))
    one = np.zeros(1, dtype=np.int64)
    segments = SegmentRectangles(one + (1 << 44), one + (1 << 31), one - 1, one + 3 * count, one, one, one)
    nothing = np.empty(0, dtype=np.int64)
    mapped = AddressMap(Basis.SIMULATED, "", 2 * count + 400, blocks, segments, Misses(*[nothing] * 7))
    picture = AddressPicture(mapped)
    assert not picture.render(picture.whole, QSize(1280, 800), LIGHT).isNull()
    assert worst_miss(mapped) is None


def test_the_overview_says_that_a_run_slows_down_and_leads_to_its_course(world, qtbot):
    page = OverviewPage(world.context)
    qtbot.addWidget(page)
    world.session.show(simulated(step_history=history_table(made_history(slower_from=300))))
    assert "slows down" in page._run_sentence.text()
    page._run_sentence.linkActivated.emit("memory")
    assert world.shown == ["memory"]
    world.session.show(simulated())
    assert page._run_sentence.text() == ""
