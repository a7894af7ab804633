from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QWidget

from engine.optimizations.selection import Refusal
from engine.workloads.results import RunStatus
from profiler_gui.commands.command import CommandRegistry
from profiler_gui.panels.whatif.actions import whatif_commands
from profiler_gui.panels.whatif.courses import course_of, memory_bar
from profiler_gui.panels.whatif.operators import delta_table
from profiler_gui.panels.whatif.page import WhatIfPage
from profiler_gui.panels.whatif.waterfall import Waterfall, rungs_of
from profiler_gui.panels.whatif.words import doubts, facts, headline
from profiler_gui.session.document import Run
from profiler_gui.session.rerun_state import Shown
from profiler_gui.session.rerunning import Answered, TimelinesMapped
from profiler_gui.session.run_tree import RunTree
from profiler_gui.toolkit.theme import ThemeMode
from tests.support.panes import drawn
from tests.support.whatif_samples import GIB, sample_registry, sample_side, sample_whatif
from tests.support.windows import drawn_document

ATTENTION, BOTH = {"fusion.attention": {}}, {"fusion.attention": {}, "memory.amc": {}}
A, B = "gpu 7 | AAAA..BB |", "gpu 7 | AA..B |"


@pytest.fixture
def asked(world, monkeypatch):
    """What the worker would be asked; nothing runs."""
    asked = []
    monkeypatch.setattr(
        world.session.reruns._job, "start", lambda call, request, **_: asked.append((call.__name__, request))
    )
    monkeypatch.setattr("engine.optimizations.catalogue.optimization_registry", sample_registry)
    return asked


@pytest.fixture
def page(world, qtbot, asked):
    world.session.show(drawn(A))
    page = WhatIfPage(world.context, lambda context: QLabel(str(context.session.viewport)))
    qtbot.addWidget(page)
    page.resize(820, 700)
    page.show()
    yield page
    world.session.reruns.cancel()


def answer(world, chosen=ATTENTION, **fields):
    world.session.reruns._take(Answered(chosen, sample_whatif(*chosen, **fields)))


def timelines(world, before=A, after=B, chosen=ATTENTION):
    mapped = TimelinesMapped(chosen, drawn_document(before, label="a"), drawn_document(after, label="b"))
    world.session.reruns._take(mapped)


def compared(**fields):
    """Returns the run as it is and one with fused attention."""
    tree = RunTree().with_answer(ATTENTION, sample_whatif("fusion.attention", **fields))
    return tree[0], tree[1]


def test_the_first_line_says_what_was_gained_and_what_it_rests_on():
    text = headline(*compared())
    assert text == (
        "812.0 ms → 741.0 ms (−7.0…−10 %), reserved −4.1 GiB, 12 % of the gain rests on inferred dependencies"
    )


def test_a_simulated_job_rests_on_no_inferred_dependency_and_has_no_range():
    gained = sample_whatif("fusion.attention").gain
    exact = type(gained)(gained.expected_ns, gained.expected_ns, gained.expected_ns)
    text = headline(*compared(replay_error_ratio=None, gain=exact))
    assert text == "812.0 ms → 741.0 ms (−8.7 %), reserved −4.1 GiB"


def test_a_loss_and_nothing_at_all_are_said_as_such():
    assert headline(*compared(gain_ms=-20.0)).startswith("812.0 ms → 832.0 ms (+2.0…+3.0 %)")
    nothing = compared(candidate=sample_side())
    assert headline(*nothing).startswith("812.0 ms → 812.0 ms (no change), reserved the same")


def test_a_run_that_ran_out_of_memory_has_no_percentage():
    before, after = compared(candidate=sample_side(status=RunStatus.OUT_OF_MEMORY))
    assert headline(before, after).startswith("812.0 ms → out of memory, reserved")


def test_doubts_name_the_replay_error_and_why_a_prediction_is_weak():
    text = doubts(*compared(weak="the replay misses the step by 7 %"))
    assert text == (
        "Replaying the capture unchanged gives its step time to +2.1 %. "
        "A weak prediction: the replay misses the step by 7 %."
    )


def test_facts_are_pairs_of_both_runs():
    told = dict(facts(*compared()))
    assert told["Devices for the same throughput"] == "2 → 2"
    assert told["Stranded at the worst miss"] == "3 GiB → 1 GiB"


def test_the_waterfall_leads_from_the_baseline_to_the_candidate():
    rungs = rungs_of(sample_whatif("fusion.attention", "memory.amc"), {"fusion.attention": "Fused attention"})
    assert [rung.title for rung in rungs] == ["as it is", "Fused attention", "memory.amc", "with all of it"]
    assert [rung.value_text for rung in rungs] == ["812.0 ms", "▼ −30.00 ms", "▼ −41.00 ms", "741.0 ms"]
    assert rungs[2].end_ns == rungs[3].end_ns
    assert "alone −33.00 ms" in rungs[1].tip


def test_what_contributions_leave_open_is_their_interaction():
    whatif = sample_whatif("fusion.attention", candidate=sample_side(750.0))
    assert [rung.value_text for rung in rungs_of(whatif, {})][2:] == ["▲ +9.000 ms".replace("9.000", "9"), "750.0 ms"]


def test_small_changes_are_drawn_on_an_axis_that_says_where_it_begins(world, qtbot):
    waterfall = Waterfall(world.context.theme)
    qtbot.addWidget(waterfall)
    waterfall.resize(500, 200)
    waterfall.set_rungs(rungs_of(sample_whatif("fusion.attention"), {}))
    assert waterfall.axis_start_ns == (741 - 71 / 2) * 1e6
    saved = waterfall.bar_rect(1)
    assert saved.left() == pytest.approx(waterfall.bar_rect(2).right(), abs=1.5)
    assert saved.right() == pytest.approx(waterfall.bar_rect(0).right(), abs=1.5)
    waterfall.set_rungs(rungs_of(sample_whatif("fusion.attention", gain_ms=500), {}))
    assert waterfall.axis_start_ns == 0
    assert not waterfall.grab().isNull()
    waterfall.set_rungs(rungs_of(sample_whatif("fusion.attention", candidate=sample_side(), gain_ms=0), {}))
    assert waterfall.axis_start_ns == 0.0
    assert waterfall.rungs[1].value_text == "= no change"
    assert waterfall.bar_rect(0).width() > 100


def test_memory_of_the_fullest_rank_adds_up_to_what_is_reserved():
    bar = memory_bar("A", sample_side(), is_current=False)
    assert {part.id: part.value for part in bar.parts} == {
        "allocated": 12 * GIB,
        "stranded": 3 * GIB,
        "cached": 5 * GIB,
    }
    assert memory_bar("A", sample_side(peak_reserved_bytes={}), is_current=False) is None


def test_operators_are_listed_by_what_changed_most():
    before, after = {"MatMulV3": 400, "Softmax": 90, "Add": 5}, {"MatMulV3": 390, "Flash": 20, "Add": 5}
    table = delta_table(before, after)
    cells = [[column.text(row) for column in table.columns] for row in range(table.total_count)]
    assert [row[0] for row in cells] == ["Softmax", "Flash", "MatMulV3", "Add"]
    assert cells[0][3:] == ["▼ −90 ns", "−100 %"]
    assert cells[3][3:] == ["=", "="]


def test_the_page_says_what_to_do_until_something_was_tried(page, world):
    assert page.headline.text().startswith("Switch something on")
    world.session.set_toggles(world.session.toggles.switched("fusion.attention", on=True))
    assert page.headline.text() == "Rerunning with fusion.attention…"
    answer(world)
    assert page.headline.text().startswith("812.0 ms → 741.0 ms")
    assert len(page.summary.waterfall.rungs) == 3
    assert page.operators.view.table.total_count == 3
    world.session.undo()
    assert page.headline.text().startswith("Switch something on")


def test_a_refusal_takes_the_first_line(page, world):
    answer(world, refused=(Refusal("fusion.attention", "fusion.attention conflicts with x: so"),))
    assert page.headline.text() == "Refused: fusion.attention conflicts with x: so"


def test_runs_are_listed_as_a_tree_and_any_two_are_compared(page, world, asked):
    answer(world)
    answer(world, BOTH)
    top = page.history.tree.topLevelItem(0)
    assert (top.text(0), top.child(0).text(0), top.child(0).child(0).text(0)) == (
        "as it is",
        "1 · fusion.attention",
        "2 · fusion.attention, memory.amc",
    )
    top.child(0).setSelected(True)
    top.child(0).child(0).setSelected(True)
    page.history.compare.click()
    assert [run.number for run in world.session.reruns.compared] == [1, 2]
    assert page.run_a.currentData() == 1
    world.session.reruns.compare(2, 2)
    assert page.headline.text() == "A and B are the same run: choose another one."
    world.session.reruns.compare(1, 2)
    assert "The range is known only" in page.doubts.text()
    page.run_a.setCurrentIndex(0)
    page.run_a.activated.emit(0)
    assert [run.number for run in world.session.reruns.compared] == [0, 2]
    page.history.wanted.emit(1)
    assert world.session.toggles.chosen == ATTENTION


def test_both_timelines_appear_and_zoom_together_from_their_step(page, world):
    assert page.timelines._note.text().startswith("Switch something on")
    answer(world)
    assert not page.timelines.views
    assert page.timelines._note.text().startswith("One of these runs has no timeline")
    timelines(world)
    first, second = page.timelines.sessions
    assert (first.document.label, second.document.label) == ("a", "b")
    page.tabs.setCurrentWidget(page.timelines)
    first.show_range(1_000, 3_000)
    assert second.viewport == first.viewport
    second.zoom(2_000, 0.5)
    assert first.viewport == second.viewport


def test_blinking_shows_a_then_b_in_one_place(page, world):
    commands = CommandRegistry()
    commands.add(*whatif_commands(world.context))
    answer(world)
    assert not commands.run("whatif.blink", world.session)
    timelines(world)
    page.tabs.setCurrentWidget(page.timelines)
    sides = page.timelines._sides

    def in_view():
        return [not side.isHidden() for side in sides]

    assert in_view() == [True, True]
    assert commands.run("whatif.blink", world.session)
    assert in_view() == [True, False]
    page.blink.click()
    assert in_view() == [False, True]
    page.both.click()
    assert in_view() == [True, True]
    assert world.session.reruns.shown is Shown.BOTH


def test_ranks_are_followed_in_both_timelines(page, world, asked):
    world.session.show(drawn(A, B))
    answer(world)
    mapped = TimelinesMapped(ATTENTION, drawn_document(A, B, label="a"), drawn_document(B, A, label="b"))
    world.session.reruns._take(mapped)
    world.session.set_rank(1)
    assert [session.rank for session in page.timelines.sessions] == [1, 1]
    page.timelines.sessions[1].set_rank(0)
    assert page.timelines.sessions[0].rank == 0


def test_what_it_gives_opens_as_run_b(page, world):
    commands = CommandRegistry()
    commands.add(*whatif_commands(world.context))
    answer(world)
    timelines(world)
    assert commands.run("whatif.open_candidate", world.session)
    assert world.session.candidate.label == "b"
    assert page.headline.text().startswith("812.0 ms → 741.0 ms")


def test_a_trace_without_memory_has_no_course_and_the_picture_says_so(page, world):
    assert course_of(drawn_document(A).job.ranks[0].trace) is None
    side = sample_side(peak_reserved_bytes={})
    answer(world, baseline=side, candidate=side)
    timelines(world)
    page.tabs.setCurrentWidget(page.memory)
    assert page.memory.is_empty
    assert not page.memory.grab().isNull()


def test_courses_of_a_capture_are_drawn_on_one_scale(page, qwen3):
    course = course_of(qwen3.job.ranks[0].trace)
    assert not course.over_steps
    assert np.all(course.reserved.y_bytes >= course.allocated.y_bytes)
    page.memory.set_courses(course, course, (True, True))
    assert not page.memory.grab().isNull()
    page.memory.set_courses(replace(course, reserved=None), None, (True, True), (10 * GIB, 9 * GIB))
    page.tabs.setCurrentWidget(page.memory)
    assert not page.memory.is_empty
    assert not page.memory.grab().isNull()


def test_it_copes_with_nothing_open_themes_and_little_room(page, world):
    answer(world)
    timelines(world)
    for index in range(page.tabs.count()):
        page.tabs.setCurrentIndex(index)
        for mode in (ThemeMode.DARK, ThemeMode.LIGHT):
            world.context.theme.apply(mode)
            assert not page.grab().isNull()
        assert page.minimumSizeHint().width() <= 780
        assert page.minimumSizeHint().height() <= 480
    world.session.close_run(Run.A)
    assert page.headline.text().startswith("Open a capture")
    assert isinstance(page, QWidget)
