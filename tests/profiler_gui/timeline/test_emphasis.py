from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from engine.trace.tables import KernelTable
from profiler_gui.session.filters import SearchQuery
from profiler_gui.session.selection import CandidateSelection, EventSelection, OperatorSelection
from profiler_gui.timeline.emphasis import emphasis_of, events_of_operator
from profiler_gui.timeline.palette import DIMMED
from tests.support.trace_text import trace_from_text

PICTURE = "gpu 7 | AA.BB.AA.CC |"


def described():
    """A and C have recorded types, B has none: its name is its type."""
    trace = trace_from_text(PICTURE, {"A": "MatMul", "B": "Add", "C": "Add_1"})
    types = [trace.strings.id_of("Add"), -1]
    absent = np.full(2, -1, dtype=np.int32)
    kernels = KernelTable(np.array([0, 3], np.int32), np.array(types, np.int32), *[absent] * 7)
    return replace(trace, kernels=kernels)


def test_tasks_of_an_operator_are_found_by_recorded_type_and_else_by_name():
    trace = described()
    assert events_of_operator(trace, "Add").tolist() == [True, True, False, False]
    assert events_of_operator(trace, "MatMul").tolist() == [False, False, True, False]
    assert not events_of_operator(trace, "none such").any()


def test_a_selected_operator_stands_out_and_a_selected_event_dims_nothing(show):
    stage = show(trace_from_text(PICTURE))
    canvas = stage.view.canvas
    stage.session.select(OperatorSelection(0, "A"))
    stage.settle()
    row = stage.view._state.layout.rows[0]
    assert (canvas.lanes_of(row)[0].color >= DIMMED).tolist() == [False, True, False, True]
    stage.session.select(EventSelection(0, 1))
    stage.settle()
    assert not (canvas.lanes_of(row)[0].color >= DIMMED).any()


def test_a_search_stands_out_while_nothing_else_is_selected(show):
    stage = show(trace_from_text(PICTURE))
    stage.session.set_query(SearchQuery("B"))
    key, emphasis = emphasis_of(stage.session)
    assert key == SearchQuery("B")
    assert emphasis().tolist() == [False, True, False, False]
    stage.session.select(OperatorSelection(0, "A"))
    assert emphasis_of(stage.session)[0] == OperatorSelection(0, "A")


def test_the_occurrences_of_a_candidate_stand_out():
    occurrences = (SimpleNamespace(events=(0, 1)), SimpleNamespace(events=(3,)))
    candidate = SimpleNamespace(pattern="p", occurrences=occurrences)
    session = SimpleNamespace(
        trace=trace_from_text(PICTURE),
        selection=CandidateSelection(0, "p"),
        summary=SimpleNamespace(fusion_candidates=(candidate,)),
    )
    assert emphasis_of(session)[1]().tolist() == [True, True, False, True]
    session.selection = CandidateSelection(0, "p", 1)
    assert emphasis_of(session)[1]().tolist() == [False, False, False, True]
