"""The commands of the timeline."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from engine.trace.tables import FlowTable
from profiler_gui.commands.command import KeyPreset, conflicts
from profiler_gui.session.selection import EventSelection, RangeSelection, TrackSelection
from profiler_gui.session.viewport import Viewport
from tests.support.timeline import Stage
from tests.support.trace_text import trace_from_text

PICTURE = """
    host 1 | AAAAAAAA..AAAAAA |
    host 1 | .BB..C........D. |
    gpu 7  | ...EEE..FF...GGG |
"""


@pytest.fixture
def stage(show) -> Stage:
    return show(trace_from_text(PICTURE))


def select(stage: Stage, name: str) -> None:
    trace = stage.session.trace
    event = next(event for event in range(len(trace.events)) if trace.name(event) == name)
    stage.session.select(EventSelection(0, event))


def selected(stage: Stage) -> str:
    return stage.session.trace.name(stage.session.selection.event)


@pytest.mark.parametrize("preset", list(KeyPreset))
def test_no_two_commands_claim_one_key(stage, preset):
    assert conflicts(stage.context.commands, preset) == ()


def test_the_presets_disagree_about_m(stage):
    def keys(commands, preset):
        return {key: command.id for command in commands for key in command.keys_of(preset)}

    commands = stage.context.commands
    assert keys(commands, KeyPreset.PERFETTO)["M"] == "timeline.mark"
    assert keys(commands, KeyPreset.PERFETTO)["R"] == "timeline.range_of_selection"
    assert keys(commands, KeyPreset.INSIGHT)["M"] == "timeline.range_of_selection"
    assert keys(commands, KeyPreset.INSIGHT)["K"] == "timeline.mark"


def test_zooming_in_and_out_keeps_the_middle(stage):
    stage.session.show_range(4_000, 12_000)
    stage.run("zoom_in")
    assert stage.session.viewport.duration_ns == pytest.approx(8_000 / 1.5, abs=2)
    stage.run("zoom_out")
    assert stage.session.viewport.start_ns == pytest.approx(4_000, abs=3)


def test_zooming_in_ends_at_one_ns_and_zooming_out_at_the_whole_trace(stage):
    for _ in range(60):
        stage.run("zoom_in")
    assert stage.session.viewport.duration_ns == 1
    stage.settle()
    for _ in range(80):
        stage.run("zoom_out")
    assert stage.session.viewport == stage.session.limits


def test_moving_left_and_right(stage):
    stage.session.show_range(4_000, 8_000)
    stage.run("pan_right")
    assert stage.session.viewport == Viewport(4_600, 8_600)
    stage.run("pan_left")
    assert stage.session.viewport == Viewport(4_000, 8_000)


def test_zoom_to_selection_twice_fits_exactly_and_show_all_undoes_it(stage):
    select(stage, "E")
    stage.run("zoom_to_selection")
    assert stage.session.viewport == Viewport(2_700, 6_300)
    stage.run("zoom_to_selection")
    assert stage.session.viewport == Viewport(3_000, 6_000)
    stage.run("show_all")
    assert stage.session.viewport == stage.session.limits


def test_walking_over_the_events_of_a_lane(stage):
    stage.run("next_event")
    assert selected(stage) == "A"
    select(stage, "E")
    stage.run("next_event")
    assert selected(stage) == "F"
    stage.run("previous_event")
    assert selected(stage) == "E"
    stage.run("previous_event")
    assert selected(stage) == "E"


def test_a_slice_becomes_a_range_and_ctrl_a_selects_the_whole_trace(stage):
    select(stage, "E")
    stage.run("range_of_selection")
    assert stage.session.selection == RangeSelection(0, 3_000, 6_000)
    stage.run("select_all")
    limits = stage.session.limits
    assert stage.session.selection == RangeSelection(0, limits.start_ns, limits.end_ns)


def test_marks_stand_at_the_slice_or_over_the_range_and_are_undone(stage):
    select(stage, "E")
    stage.run("mark")
    stage.run("range_of_selection")
    stage.run("mark")
    assert [(mark.start_ns, mark.end_ns) for mark in stage.session.annotations.marks] == [
        (3_000, 3_000),
        (3_000, 6_000),
    ]
    stage.settle()
    stage.run("remove_marks")
    assert stage.session.annotations.marks == ()
    stage.session.undo()
    assert len(stage.session.annotations.marks) == 2


def test_time_counts_from_the_selection(stage):
    select(stage, "E")
    stage.run("count_from_selection")
    assert stage.view._state.origin_ns == 3_000
    assert any(text == "0 ns" or text.startswith("0") for _, text in stage.view.ruler.texts())


def test_tracks_are_pinned_folded_moved_and_hidden_by_command(stage):
    state = stage.view._state
    assert not stage.run("pin")
    stage.session.select(TrackSelection(0, 1))
    stage.run("pin")
    assert [row.node.key for row in state.layout.pinned] == [(0, 1)]
    stage.session.undo()
    assert state.layout.pinned == ()
    stage.run("move_track_up")
    assert [row.node.key for row in state.layout.rows] == [(0, 1), (0, 0)]
    stage.run("move_track_down")
    assert [row.node.key for row in state.layout.rows] == [(0, 0), (0, 1)]
    stage.session.select(TrackSelection(0, 0))
    stage.run("fold")
    assert state.layout.rows[0].lane_count == 1
    stage.run("unfold_all")
    assert state.layout.rows[0].lane_count == 2
    stage.run("hide_track")
    assert [row.node.key for row in state.layout.rows] == [(0, 1)]
    stage.run("show_hidden")
    assert len(state.layout.rows) == 2


def test_scrolling_stops_at_the_last_row(show):
    stage = show(trace_from_text(PICTURE), height_px=160)
    for _ in range(20):
        stage.run("scroll_down")
    state = stage.view._state
    assert state.scroll_px == state.max_scroll_px > 0
    stage.run("page_up")
    assert state.scroll_px == 0
    stage.run("page_down")
    stage.run("scroll_up")
    assert state.scroll_px >= 0


def test_the_commands_exist_before_anything_heavy_is_imported():
    code = (
        "import sys; from profiler_gui.timeline.pane import timeline_pane; timeline_pane();"
        "assert not {'numba', 'engine.trace', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # our own text


def test_tracks_are_walked_by_key_and_scrolled_into_view(show):
    stage = show(trace_from_text(PICTURE), height_px=130)
    stage.run("next_track")
    assert stage.session.selection == TrackSelection(0, 0)
    stage.run("next_track")
    assert stage.session.selection == TrackSelection(0, 1)
    assert stage.view._state.scroll_px > 0
    stage.run("next_track")
    assert stage.session.selection == TrackSelection(0, 1)
    stage.run("previous_track")
    assert stage.session.selection == TrackSelection(0, 0)


def test_a_row_that_is_partly_in_view_scrolls_no_further_than_it_must(show):
    stage = show(trace_from_text(PICTURE), height_px=155)
    state = stage.view._state
    select(stage, "E")
    assert state.scroll_px == state.layout.rows[1].bottom_px - state.visible_height_px


def test_arrows_are_followed_by_key(show):
    trace = trace_from_text("host 1 | AA...... |\ngpu 7  | ...BB.CC |")
    ids = {trace.name(event): event for event in range(3)}
    flows = FlowTable(np.array([ids["A"]], np.int32), np.array([ids["B"]], np.int32), np.array([0], np.int32))
    stage = show(replace(trace, flows=flows))
    assert not stage.run("next_flow")
    select(stage, "A")
    stage.run("next_flow")
    assert selected(stage) == "B"
    stage.run("next_flow")
    assert selected(stage) == "B"
    stage.run("previous_flow")
    assert selected(stage) == "A"
