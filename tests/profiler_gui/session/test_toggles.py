import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.session.annotations import Annotations
from profiler_gui.session.run_tree import BASELINE, RunTree
from profiler_gui.session.session import Session
from profiler_gui.session.toggles import Toggles, text_of, toggles_of
from tests.support.whatif_samples import sample_whatif
from tests.support.windows import drawn_document

IDS = st.sampled_from(("fusion.rope", "memory.amc", "host.streams"))
VALUES = st.one_of(st.booleans(), st.integers(0, 9), st.sampled_from(("ring", "mesh")))
CHANGES = st.lists(st.one_of(st.tuples(IDS, st.booleans()), st.tuples(IDS, st.sampled_from("ab"), VALUES)))


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    session.show(drawn_document("gpu 7 | AAAA..BB |"))
    yield session
    session.close()


def changed(toggles, change):
    if len(change) == 2:
        return toggles.switched(change[0], on=change[1])
    return toggles.with_parameter(*change)


@given(CHANGES)
def test_what_a_rerun_is_asked_for_gives_the_same_toggles_again(changes):
    toggles = Toggles()
    for change in changes:
        toggles = changed(toggles, change)
    assert toggles_of(toggles.chosen).chosen == toggles.chosen


def test_parameters_stay_while_an_optimization_is_off_and_go_back_to_their_default():
    toggles = Toggles().with_parameter("memory.amc", "interval", 50)
    assert toggles.chosen == {}
    on = toggles.switched("memory.amc", on=True)
    assert on.chosen == {"memory.amc": {"interval": 50}}
    assert on.with_parameter("memory.amc", "interval", None).chosen == {"memory.amc": {}}


def test_the_text_is_what_the_command_line_takes():
    chosen = {"fusion.rope": {}, "memory.amc": {"interval": 50, "reuse": True}}
    assert text_of(chosen) == "fusion.rope, memory.amc:interval=50,reuse=true"


def test_toggles_and_marks_are_undone_in_the_order_they_were_made(session):
    heard = []
    session.toggles_changed.connect(lambda: heard.append(session.toggles.on))
    session.set_toggles(session.toggles.switched("fusion.rope", on=True))
    session.annotate(session.annotations.with_mark(1, 2))
    session.undo()
    assert session.annotations == Annotations()
    assert session.toggles.on == {"fusion.rope"}
    session.undo()
    assert session.toggles.on == frozenset()
    assert not session.can_undo
    session.redo()
    assert session.toggles.on == {"fusion.rope"}
    assert heard == [{"fusion.rope"}, frozenset(), {"fusion.rope"}]
    session.reruns.cancel()


def test_another_capture_begins_with_nothing_switched_on(session):
    session.set_toggles(session.toggles.switched("fusion.rope", on=True))
    session.show(drawn_document("gpu 7 | AA |", label="another"))
    assert session.toggles == Toggles()
    assert not session.can_undo


def test_runs_hang_below_the_run_whose_toggles_were_changed():
    first, both = {"fusion.rope": {}}, {"fusion.rope": {}, "memory.amc": {}}
    tree = RunTree().with_answer(first, sample_whatif("fusion.rope", gain_ms=30))
    tree = tree.with_answer(both, sample_whatif("fusion.rope", "memory.amc"))
    assert [run.number for run in tree.children(BASELINE)] == [1]
    assert [run.chosen for run in tree.children(1)] == [both]
    assert tree.baseline.side.mean_step_ns == 812e6
    assert tree[2].side.mean_step_ns == 741e6


def test_a_run_tried_again_keeps_its_place():
    chosen = {"fusion.rope": {}}
    tree = RunTree().with_answer(chosen, sample_whatif("fusion.rope", gain_ms=30)).at(BASELINE)
    again = tree.with_answer({"fusion.rope": {}}, sample_whatif("fusion.rope", gain_ms=31))
    assert len(again.runs) == 2
    assert again.current == 1
    assert again[1].side.mean_step_ns == 781e6
    assert again.found({"fusion.rope": {"a": 1}}) is None
