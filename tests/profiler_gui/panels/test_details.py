from dataclasses import replace

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication

from profiler_gui.panels.details.event_facts import EventIndex, event_facts
from profiler_gui.panels.details.panel import DetailsPanel
from profiler_gui.panels.details.sections import Line, Section, bytes_line, duration_line, html_of, plain_of, targets_of
from profiler_gui.session.selection import (
    NOTHING,
    AllocationSelection,
    CandidateSelection,
    CollectiveSelection,
    EventSelection,
    IdleSelection,
    OperatorSelection,
    RangeSelection,
    StepSelection,
    TrackSelection,
)
from profiler_gui.toolkit.theme import DARK, LIGHT
from tests.support.panes import captured, drawn
from tests.support.trace_text import US


@pytest.fixture(scope="module")
def h100(captures):
    return captured(next((captures / "pytorch").glob("h100*")))


@pytest.fixture
def pane(world, qtbot):
    pane = DetailsPanel(world.context)
    qtbot.addWidget(pane)
    return pane


def settle(pane, qtbot):
    qtbot.waitUntil(lambda: not pane._call.is_running)


def values(pane):
    return {line.label: line.text for part in pane.sections for line in part.lines if line.label}


def select(world, pane, qtbot, selection):
    world.session.select(selection)
    settle(pane, qtbot)
    return values(pane)


def row_named(trace, name):
    return next(row for row in range(len(trace.events)) if trace.name(row) == name)


def test_without_a_capture_it_says_what_it_would_show(pane):
    assert "Open a capture" in plain_of(pane.sections)


def test_with_nothing_selected_it_describes_the_capture(world, pane, qtbot, qwen3):
    world.session.show(qwen3)
    settle(pane, qtbot)
    shown = values(pane)
    assert shown["Rank"] == "0 / 4"
    assert shown["Format"] == "ascend-text"


def test_an_event_shows_its_times_self_time_and_place(world, pane, qtbot):
    world.session.show(drawn("host 1 | AAAAAAAA |\nhost 1 | .BB.CC.. |"))
    trace = world.session.trace
    shown = select(world, pane, qtbot, EventSelection(0, row_named(trace, "A")))
    assert shown["Duration"] == "8 µs (8,000 ns)"
    assert shown["Self time"] == "4 µs (4,000 ns)"
    assert shown["Children"] == "2"
    assert pane.sections[0].title == "A"
    shown = select(world, pane, qtbot, EventSelection(0, row_named(trace, "C")))
    assert shown["Start"] == "4.000 µs (4,000 ns)"
    assert shown["Depth"] == "1"
    assert shown["Inside"] == "A · 8 µs"


def test_links_select_what_they_name(world, pane, qtbot):
    world.session.show(drawn("host 1 | AAAAAAAA |\nhost 1 | .BB.CC.. |"))
    trace = world.session.trace
    select(world, pane, qtbot, EventSelection(0, row_named(trace, "C")))
    number = targets_of(pane.sections).index(EventSelection(0, row_named(trace, "A")))
    pane._text.anchorClicked.emit(QUrl(f"select:{number}"))
    assert world.session.selection == EventSelection(0, row_named(trace, "A"))
    pane._text.anchorClicked.emit(QUrl("select:999"))
    assert world.session.selection == EventSelection(0, row_named(trace, "A"))


def test_a_kernel_shows_its_launch_its_shapes_and_its_arguments(world, pane, qtbot, cnn):
    world.session.show(cnn)
    trace = world.session.trace
    index = EventIndex(trace)
    event = next(
        int(row)
        for row in trace.kernels.event
        if index.launch[row] >= 0 and trace.kernels.input_shapes[trace.kernel_row_of_event[row]] >= 0
    )
    shown = select(world, pane, qtbot, EventSelection(0, event))
    assert shown["Input shapes"]
    assert shown["Launched by"].startswith(trace.name(int(index.launch[event])))
    assert "Arguments" in [part.title for part in pane.sections]


def test_a_launch_and_its_operator_lead_to_the_device_task_and_back(h100):
    trace = h100.job.ranks[0].trace
    index = EventIndex(trace)
    task = next(row for row in range(len(trace.events)) if index.launch[row] >= 0 and index.operator[row] >= 0)
    launch, operator = int(index.launch[task]), int(index.operator[task])
    assert event_facts(index, task).launch == launch
    assert task in event_facts(index, launch).tasks
    facts = event_facts(index, operator)
    assert facts.task_count >= 1
    assert facts.task_ns >= int(trace.events.duration_ns[task])


def test_an_operator_lists_the_blocks_it_allocated(world, pane, qtbot, h100):
    world.session.show(h100)
    trace = world.session.trace
    event = int(trace.memory.allocations.event[0])
    shown = select(world, pane, qtbot, EventSelection(world.session.rank, event))
    assert shown["Allocated"].startswith("blocks: ")
    assert any(isinstance(target, AllocationSelection) for target in targets_of(pane.sections))


def test_communication_is_split_into_exposed_and_hidden(world, pane, qtbot, cnn):
    world.session.show(cnn)
    collectives = cnn.summary.communication.collectives[0]
    index = next(index for index, item in enumerate(collectives) if item.event >= 0)
    shown = select(world, pane, qtbot, EventSelection(0, collectives[index].event))
    assert shown["Exposed"] == duration_line("", collectives[index].exposed_ns).text
    assert shown["Waiting, transfer"].startswith("unsplit: open the peers (ranks 1, 2")


def test_a_transfer_of_no_listed_collective_still_tells_what_is_exposed(cnn):
    trace = cnn.job.ranks[0].trace
    index = EventIndex(trace)
    exposed = [event_facts(index, row).exposed_ns for row in range(0, len(trace.events), 97)]
    assert all(value is None or value >= 0 for value in exposed)


def test_a_block_says_where_it_came_from_and_how_long_it_lived(world, pane, qtbot, qwen3):
    world.session.show(qwen3)
    shown = select(world, pane, qtbot, AllocationSelection(0, 0))
    assert shown["Address"] == "not recorded"
    assert shown["Allocated"].startswith("760.660 µs") or shown["Allocated"].startswith("760.66 µs")
    assert "no event" in shown["On the timeline"]


def test_a_block_with_an_operator_links_to_it(world, pane, qtbot, h100):
    world.session.show(h100)
    rank, trace = world.session.rank, world.session.trace
    select(world, pane, qtbot, AllocationSelection(rank, 0))
    event = int(trace.memory.allocations.event[0])
    assert EventSelection(rank, event) in targets_of(pane.sections)


def test_every_kind_of_selection_has_a_summary(world, pane, qtbot, qwen3):
    world.session.show(qwen3)
    summary = qwen3.summary.rank(0)
    for selection, title in (
        (RangeSelection(0, 0, 10_000_000), "Selected range"),
        (TrackSelection(0, int(world.session.trace.events.track[0])), "›"),
        (StepSelection(0, 0), "Step"),
        (OperatorSelection(0, summary.operators[0].type), summary.operators[0].type),
        (CandidateSelection(0, summary.fusion_candidates[0].pattern), summary.fusion_candidates[0].title),
        (CandidateSelection(0, summary.fusion_candidates[0].pattern, 0), "Occurrence 1 of"),
        (CollectiveSelection(0, 0), qwen3.summary.communication.collectives[0][0].name),
        (IdleSelection(0, 0), "Device idle"),
    ):
        select(world, pane, qtbot, selection)
        assert title in pane.sections[0].title
        assert pane.sections[0].lines


def test_a_range_counts_what_begins_or_runs_in_it(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |\nhost 1 | CCCC.A.. |"))
    shown = select(world, pane, qtbot, RangeSelection(0, 2 * US, 3 * US))
    assert shown["Events"] == "2"
    assert shown["Length"] == "1 µs (1,000 ns)"


def test_a_track_tells_how_busy_it_was(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    shown = select(world, pane, qtbot, TrackSelection(0, 0))
    assert shown["Busy"] == "6 µs (6,000 ns)"
    assert shown["Busy between them"] == "75 %"


def test_selecting_nothing_again_describes_the_capture(world, pane, qtbot, qwen3):
    world.session.show(qwen3)
    select(world, pane, qtbot, RangeSelection(0, 0, 10))
    shown = select(world, pane, qtbot, NOTHING)
    assert shown["Format"] == "ascend-text"


def test_arguments_that_cannot_be_read_are_said_not_raised(h100):
    trace = h100.job.ranks[0].trace

    def gone(offset):
        raise OSError("no such file")

    row = next(row for row in range(len(trace.events)) if trace.events.args_offset[row] >= 0)
    facts = event_facts(EventIndex(replace(trace, argument_decoder=gone)), row)
    assert facts.arguments_error == "no such file"


def test_everything_is_copied_as_labels_and_values(world, pane, qtbot):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    select(world, pane, qtbot, EventSelection(0, 0))
    pane.copy_all()
    assert "Duration\t4 µs (4,000 ns)\n" in QGuiApplication.clipboard().text()


def test_names_are_text_never_markup():
    sections = (Section("a<b>", (Line("x<y", "<script>", EventSelection(0, 1)),)),)
    for colours in (LIGHT, DARK):
        shown = html_of(sections, colours)
        assert "<script>" not in shown
        assert 'href="select:0"' in shown
        assert colours.link in shown


def test_small_values_are_not_said_twice():
    assert duration_line("", 7).text == "7 ns"
    assert duration_line("", None) is None
    assert bytes_line("", 512).text == "512 B"
    assert bytes_line("", -1) is None
    assert bytes_line("", 1 << 20).text == "1 MiB (1,048,576 B)"
