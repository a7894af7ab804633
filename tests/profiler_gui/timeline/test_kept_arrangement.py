"""What the user did to the tracks is found again."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.trace import Alignment, Job, RankTrace
from profiler_gui.session.document import Document
from profiler_gui.timeline.kept_arrangement import arrangement_of, arrangement_text
from profiler_gui.timeline.layout import Arrangement
from tests.support.trace_text import trace_from_text

PICTURE = "host 1 | AAAA |\nhost 1 | .BB. |\ngpu 7 | CC |"


def test_an_arrangement_comes_back_from_its_text():
    arrangement = Arrangement(frozenset({(0, 1)}), frozenset({(1, -100)}), {(0, -1): ((0, 2), (0, 0))})
    assert arrangement_of(arrangement_text(arrangement, frozenset({0, 1}))) == (arrangement, frozenset({0, 1}))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ranks": ["x"]}', "\udcff"])
def test_a_damaged_text_is_no_arrangement(text):
    assert arrangement_of(text) == (Arrangement(), frozenset())


def document(name: str, picture: str = PICTURE) -> Document:
    entry = RankTrace(0, trace_from_text(picture), 0, Alignment.REFERENCE)
    return Document((Path(name),), name, Job(name, (entry,)), None, 0)


def test_folds_and_order_of_a_capture_are_found_at_its_next_opening_and_not_by_others(show):
    stage = show(trace_from_text(PICTURE))
    session, state = stage.session, stage.view._state
    session.show(document("one"))
    state.toggle_collapsed((0, 0))
    state.hide((0, 1))
    session.show(document("two"))
    assert [row.is_collapsed for row in state.layout.rows] == [False, False]
    session.show(document("one"))
    assert [(row.node.label, row.is_collapsed) for row in state.layout.rows] == [("host 1", True)]
    session.show(document("one", PICTURE.replace("CC", "CD")))
    assert len(state.layout.rows) == 2


def test_a_capture_recorded_anew_has_another_key():
    one = document("one")
    entry = one.job.ranks[0]
    later = replace(entry.trace, metadata=replace(entry.trace.metadata, epoch_ns=7))
    again = replace(one, job=replace(one.job, ranks=(replace(entry, trace=later),)))
    assert one.key == document("one").key
    assert one.key != again.key
    assert one.key != document("two").key
