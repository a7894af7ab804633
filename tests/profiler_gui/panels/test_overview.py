import re
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel

from engine.analyses.headline import headline
from engine.trace import TimeRange
from profiler_gui.panels.communication.page import CommunicationPage
from profiler_gui.panels.overview.evidence import evidence_of
from profiler_gui.panels.overview.findings import checklist_of, findings_of, rank_times_ns
from profiler_gui.panels.overview.memory_bars import memory_bars
from profiler_gui.panels.overview.page import OverviewPage
from profiler_gui.panels.overview.sentence import linked
from profiler_gui.panels.overview.step_bars import step_bars
from profiler_gui.session.selection import (
    CandidateSelection,
    CollectiveSelection,
    IdleSelection,
    OperatorSelection,
    StepSelection,
)
from profiler_gui.toolkit.bars import StackedBars
from profiler_gui.toolkit.columns import StackedColumns
from tests.support.panes import drawn
from tests.support.windows import built_window

SENTENCE = (
    "Step 810 ms: rank 0 waits 39 % for the second stage, computes 29 %, is idle 20 %, transfers 13 %, overlaps 0 %"
)


@pytest.fixture
def page(world, qtbot):
    page = OverviewPage(world.context)
    qtbot.addWidget(page)
    page.resize(1100, 800)
    return page


def plain(rich: str) -> str:
    return re.sub(r"<[^>]+>", "", rich)


def texts(widget) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if not label.isHidden()]


def test_without_a_capture_the_page_says_so(page):
    assert "Open a capture to see it here." in texts(page)


def test_the_first_sentence_of_the_qwen3_job_is_the_engines_with_every_number_a_link(world, page, qwen3):
    world.session.show(qwen3)
    rich = next(text for text in texts(page) if text.startswith("Step"))
    assert plain(rich) == SENTENCE
    assert re.findall(r'href="(\w+)"', rich) == ["step", "waiting", "computing", "idle", "transfer", "overlap"]
    outside = re.sub(r"<a [^>]*>[^<]*</a>", "", rich)
    assert not re.search(r"\d+ ?(%|ms)", outside)
    assert any("10,282.75 MiB allocated of 10,372 MiB reserved" in text for text in texts(page))


def test_following_the_waiting_selects_the_longest_wait_on_the_communication_page(world, page, qwen3):
    world.session.show(qwen3)
    page._follow("waiting")
    selection = world.session.selection
    assert isinstance(selection, CollectiveSelection)
    collectives = qwen3.summary.communication.collectives[0]
    assert collectives[selection.index].wait_ns == max(item.wait_ns for item in collectives)
    assert world.shown == ["communication"]


def test_following_idle_time_zooms_the_timeline_to_the_longest_gap(world, page, qwen3):
    world.session.show(qwen3)
    page._follow("idle")
    selection = world.session.selection
    assert isinstance(selection, IdleSelection)
    gaps = qwen3.summary.rank(0).idle
    lengths = [gap.end_ns - gap.start_ns for gap in gaps]
    assert lengths[selection.index] == max(lengths)
    assert world.session.viewport.duration_ns < 2 * max(lengths)
    assert world.shown == ["timeline"]


def test_following_computing_selects_the_largest_operator_and_the_step_its_step(qwen3):
    largest = qwen3.summary.rank(0).operators[0].type
    assert evidence_of(qwen3.summary, 0, "computing").selection == OperatorSelection(0, largest)
    assert evidence_of(qwen3.summary, 0, "step").selection == StepSelection(0, 0)


def test_following_memory_goes_to_the_memory_page(world, page, qwen3):
    world.session.show(qwen3)
    page._follow("memory")
    assert world.shown == ["memory"]


def test_every_rank_has_a_bar_whose_parts_add_up_to_its_step(qwen3):
    for entry in qwen3.summary.ranks:
        (bar,) = step_bars(qwen3.summary, entry.rank)
        (step,) = entry.steps
        whole_ns = step.computing_ns + step.communication_not_overlapped_ns + step.free_ns
        assert bar.total == pytest.approx(whole_ns, abs=1)
        assert [part.id for part in bar.parts] == ["computing", "transfer", "waiting", "idle"]


def test_the_bars_say_what_the_sentence_says(qwen3):
    shares = {share.id: share.ns for share in headline(qwen3.summary, 0).shares}
    (bar,) = step_bars(qwen3.summary, 0)
    for part in bar.parts:
        assert part.value == pytest.approx(shares[part.id], abs=1)


def test_a_click_on_a_part_goes_to_its_evidence_on_its_rank(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    bars = next(item for item in page.findChildren(StackedBars) if item.accessibleName() == "Steps")
    bars.resize(900, bars.sizeHint().height())
    waiting = [part.id for part in bars.bars[1].parts].index("waiting")
    middle = bars.part_rect(1, waiting).center().toPoint()
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=middle)
    assert isinstance(world.session.selection, CollectiveSelection)
    assert world.session.rank == 1


def test_the_keyboard_reaches_every_part_of_the_bars(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    bars = next(item for item in page.findChildren(StackedBars) if item.accessibleName() == "Steps")
    with qtbot.waitSignal(bars.activated) as activated:
        for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Return):
            qtbot.keyClick(bars, key)
    assert activated.args == [1, "transfer"]


def test_bars_are_described_to_those_who_cannot_see_them(world, page, qwen3):
    world.session.show(qwen3)
    bars = next(item for item in page.findChildren(StackedBars) if item.accessibleName() == "Steps")
    assert "rank 0 810.0 ms: computing 231.3 ms (29 %)" in bars.accessibleDescription()


def test_the_memory_of_rank_0_is_allocated_cache_and_what_the_process_holds_besides(qwen3):
    (rank, bar), *_ = memory_bars(qwen3.summary, 0)
    memory = qwen3.summary.rank(0).memory
    sizes = {part.id: part.value for part in bar.parts}
    assert rank == 0
    assert sizes["allocated"] == memory.peak_allocated_bytes
    assert sizes["cached"] == memory.peak_reserved_bytes - memory.peak_allocated_bytes
    assert sizes["other"] == memory.other_bytes
    assert "fragment" not in bar.description


def test_where_the_capacity_is_known_the_bar_reaches_the_devices_limit(qwen3):
    entry = qwen3.summary.rank(0)
    memory = replace(entry.memory, headroom_bytes=50 << 30)
    summary = replace(qwen3.summary, ranks=(replace(entry, memory=memory),))
    ((_, bar),) = memory_bars(summary, 0)
    assert [part.id for part in bar.parts] == ["allocated", "cached", "other", "free"]
    assert bar.total == memory.process_bytes + (50 << 30)
    assert bar.value_text.endswith("device")


def test_five_findings_at_most_the_most_expensive_first_and_memory_last(qwen3):
    findings = findings_of(qwen3.summary, 0)
    costs = [item.cost_ns for item in findings[:-1]]
    assert len(findings) == 5
    assert costs == sorted(costs, reverse=True)
    assert findings[0].title == "Waits for rank 2"
    assert findings[-1].evidence.pane == "memory"


def test_the_late_ranks_cross_entropy_is_among_the_findings_of_the_rank_that_waits(qwen3):
    found = next(item for item in findings_of(qwen3.summary, 0) if item.title.startswith("Fuse"))
    assert isinstance(found.evidence.selection, CandidateSelection)
    assert found.evidence.selection.rank in (2, 3)
    assert "low" in found.gain
    assert "high" in found.gain


def test_every_show_button_selects_or_changes_the_page(world, page, qwen3):
    world.session.show(qwen3)
    buttons = page._findings.buttons
    assert len(buttons) == 5
    for button in buttons:
        before, shown = world.session.selection, len(world.shown)
        button.click()
        assert len(world.shown) == shown + 1
        assert world.session.selection != before or world.shown[-1] == "memory"
        world.session.set_rank(0)


def test_unsplit_communication_asks_for_the_peers(cnn):
    found = next(item for item in findings_of(cnn.summary, 0) if item.title == "Exposed communication")
    assert "open the peers (ranks 1, 2, 3, 4, 5, 6, 7)" in found.detail


def test_the_parts_of_a_ranks_time_are_those_of_its_steps(qwen3):
    times_ns = rank_times_ns(qwen3.summary, 0)
    assert sum(times_ns.values()) == pytest.approx(810.0e6, rel=1e-3)
    assert set(times_ns) == {"computing", "transfer", "waiting", "idle"}


def test_waits_of_collectives_that_overlap_are_not_added_up(world, page, gloo):
    found = next(item for item in findings_of(gloo.summary, 0) if item.title == "Waits for rank 2")
    collectives = [item for item in gloo.summary.communication.collectives[0] if item.late_rank == 2]
    assert 0 < found.cost_ns < sum(item.wait_ns for item in collectives)
    assert "%" not in found.detail.split(" in ")[0]


def test_without_a_device_nothing_is_said_about_what_computing_covers(gloo):
    found = next(item for item in findings_of(gloo.summary, 0) if item.title == "Transfer")
    assert found.detail.endswith(" of transfer.")


def test_every_number_about_a_trace_of_the_host_is_a_link_too(gloo):
    rich = linked(headline(gloo.summary, 0))
    assert re.findall(r'href="(\w+)"', rich) == ["events", "step", "waiting"]


def test_what_was_checked_and_found_nothing_is_listed_and_what_was_not_recorded_beside_it(alexnet):
    checklist = checklist_of(alexnet.summary, 0)
    assert "no communication in this capture" in checklist.fine
    assert any(text.startswith("memory: not recorded") for text in checklist.unknown)


def test_many_steps_stand_as_columns_and_a_click_shows_the_step(world, page, qtbot, alexnet):
    entry = alexnet.summary.ranks[0]
    step = entry.steps[0]
    many = tuple(replace(step, step=number) for number in range(40))
    summary = replace(alexnet.summary, ranks=(replace(entry, steps=many),))
    world.session.show(replace(alexnet, summary=summary))
    columns = page.findChild(StackedColumns)
    assert not columns.isHidden()
    assert len(columns.rows[0].bars) == 40
    columns.resize(800, columns.sizeHint().height())
    middle = columns.column_rect(0, 7).center().toPoint()
    qtbot.mouseClick(columns, Qt.MouseButton.LeftButton, pos=QPoint(middle.x(), middle.y()))
    assert world.session.selection == StepSelection(0, 7)


def test_the_rank_and_step_in_view_are_marked(world, page, qwen3):
    world.session.show(qwen3)
    world.session.set_rank(2)
    bars = next(item for item in page.findChildren(StackedBars) if item.accessibleName() == "Steps")
    assert [bar.is_current for bar in bars.bars] == [False, False, True, False]


def test_every_step_of_a_long_run_has_its_bar(qwen3):
    entry = qwen3.summary.rank(0)
    step, collective = entry.steps[0], qwen3.summary.communication.collectives[0][0]
    length_ns = step.range.duration_ns
    many = tuple(
        replace(step, step=number, range=TimeRange(number * length_ns, (number + 1) * length_ns))
        for number in range(1000)
    )
    started = tuple(replace(collective, start_ns=number * length_ns // 20) for number in range(20_000))
    joined = replace(qwen3.summary.communication, collectives={0: started})
    summary = replace(qwen3.summary, ranks=(replace(entry, steps=many),), communication=joined)
    assert len(step_bars(summary, 0)) == 1000


def test_a_drawn_trace_shows_its_parts(world, page):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    bars = next(item for item in page.findChildren(StackedBars) if item.accessibleName() == "Steps")
    assert [(part.id, part.value) for part in bars.bars[0].parts] == [("computing", 6000), ("idle", 2000)]


def test_a_trace_of_the_host_has_no_empty_bars(world, page):
    world.session.show(drawn("host 1 | AAAA..BB |"))
    assert page._steps_card.isHidden()
    assert any(text.startswith("No device work") for text in texts(page))


def test_texts_of_the_capture_are_not_read_as_markup(qwen3):
    first = replace(headline(qwen3.summary, 0), sentence="Step 1 ms: <b>rank</b>", shares=())
    assert linked(first) == 'Step <a href="step">1 ms</a>: &lt;b&gt;rank&lt;/b&gt;'


def test_nothing_is_wider_than_the_page(world, page, qwen3, qtbot):
    world.session.show(qwen3)
    page.resize(900, 600)
    page.show()
    qtbot.waitExposed(page)
    assert page.widget().width() <= page.viewport().width()


def test_in_the_whole_window_show_brings_up_the_page_with_the_evidence(qapp, qtbot, tmp_path, qwen3):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    session = window.context.session
    try:
        window.resize(1280, 800)
        window.show()
        session.show(qwen3)
        window.show_pane("overview")
        page = window.findChild(OverviewPage)
        page._findings.buttons[0].click()
        communication = window.findChild(CommunicationPage)
        assert communication.isVisible()
        assert communication._arrivals.chart.collective is not None
        assert window.width() == 1280
    finally:
        window.close()
        session.close()
