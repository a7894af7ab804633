"""What-ifs of the window: the real worker on a tiny job, and what the model makes of its answers."""

from pathlib import Path

import pytest

from engine.optimizations.interface import Applicability, Verdict
from engine.optimizations.selection import Refusal
from profiler_gui.session.rerun_state import Shown
from profiler_gui.session.rerunning import Answered, Described, portable_side
from profiler_gui.session.session import Session
from tests.profiler_gui.session.test_simulating import SCENARIO
from tests.support.panes import drawn
from tests.support.patience import PATIENCE_MS
from tests.support.whatif_samples import sample_side, sample_whatif

ROPE, CHUNKS = {"fusion.rope": {}}, {"communication.chunking": {"chunks": 8}}


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    yield session
    session.close()


@pytest.fixture
def asked(session, monkeypatch):
    """What the worker would be asked; nothing runs."""
    asked = []
    monkeypatch.setattr(session.reruns._job, "start", lambda call, request, **_: asked.append((call.__name__, request)))
    session.show(drawn("gpu 7 | AAAA..BB |"))
    return asked


def switch(session, identifier, *, on=True):
    session.set_toggles(session.toggles.switched(identifier, on=on))


def test_nothing_runs_until_somebody_looks_or_switches(session, asked):
    assert asked == []
    session.reruns.want()
    assert [name for name, _ in asked] == ["describe_in_worker"]


def test_toggles_rerun_once_after_the_last_change(session, asked, qtbot):
    switch(session, "fusion.rope")
    switch(session, "fusion.swiglu")
    assert asked == []
    qtbot.waitUntil(lambda: bool(asked))
    (name, request), *others = asked
    assert (name, others) == ("rerun_in_worker", [])
    assert request.chosen == {"fusion.rope": {}, "fusion.swiglu": {}}


def test_what_was_tried_before_is_shown_without_running_it_again(session, asked):
    reruns = session.reruns
    switch(session, "fusion.rope")
    reruns._take(Answered(ROPE, sample_whatif("fusion.rope")))
    assert [run.number for run in reruns.compared] == [0, 1]
    session.undo()
    assert [run.number for run in reruns.compared] == [0, 0]
    session.redo()
    assert [run.number for run in reruns.compared] == [0, 1]
    assert not reruns.is_pending
    assert asked == []


def test_going_to_a_run_sets_its_toggles(session, asked):
    reruns = session.reruns
    reruns._take(Answered(CHUNKS, sample_whatif("communication.chunking")))
    reruns.go_to(1)
    assert session.toggles.chosen == CHUNKS
    reruns.go_to(0)
    assert session.toggles.on == frozenset()
    assert session.can_undo


def test_a_refusal_is_said_and_makes_no_run(session, asked):
    refusal = Refusal("fusion.rope", "fusion.rope conflicts with something")
    session.reruns._take(Answered(ROPE, sample_whatif("fusion.rope", refused=(refusal,))))
    assert session.reruns.refused == (refusal,)
    assert len(session.reruns.tree.runs) == 1
    switch(session, "fusion.swiglu")
    assert session.reruns.refused == ()
    session.reruns.cancel()


def test_any_two_runs_are_compared(session, asked):
    reruns = session.reruns
    reruns._take(Answered(ROPE, sample_whatif("fusion.rope")))
    reruns._take(Answered(CHUNKS, sample_whatif("communication.chunking", gain_ms=10)))
    reruns.compare(1, 2)
    before, after = reruns.compared
    assert (before.chosen, after.chosen) == (ROPE, CHUNKS)


def test_blinking_shows_one_of_the_two_in_the_place_of_the_other(session, asked):
    shown = []
    session.reruns.runs_changed.connect(lambda: shown.append(session.reruns.shown))
    for _ in range(3):
        session.reruns.blink()
    session.reruns.show_both()
    assert shown == [Shown.A, Shown.B, Shown.A, Shown.BOTH]


def test_another_capture_forgets_everything(session, asked):
    reruns = session.reruns
    reruns._take(Described({"fusion.rope": Applicability(Verdict.APPLIES, "so")}, {"A": "1"}))
    reruns._take(Answered(ROPE, sample_whatif("fusion.rope")))
    session.show(drawn("gpu 7 | AA |", "gpu 7 | B |"))
    assert not reruns.is_described
    assert (len(reruns.tree.runs), reruns.applicability, reruns.environment) == (1, {}, {})


def test_a_simulated_job_is_rerun_with_a_toggle_and_both_timelines_arrive(session, qtbot, tmp_path):
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.simulate(SCENARIO, Path(), tmp_path / "tiny-1")
    reruns = session.reruns
    assert reruns.place.is_scenario
    switch(session, "memory.recompute")
    qtbot.waitUntil(lambda: reruns.compared[1].timeline is not None, timeout=PATIENCE_MS)
    before, after = reruns.compared
    assert reruns.applicability["memory.recompute"].verdict is Verdict.APPLIES
    assert after.side.mean_step_ns > before.side.mean_step_ns
    assert after.answer.contributions[0].id == "memory.recompute"
    assert before.timeline.ranks == after.timeline.ranks == (0, 1)
    assert all(item.is_simulated for item in (before.timeline, after.timeline))
    qtbot.waitUntil(lambda: not reruns.is_busy, timeout=PATIENCE_MS)


def test_a_prediction_is_kept_and_scored_by_the_capture_that_is_open(session, qtbot, tmp_path):
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.simulate(SCENARIO, Path(), tmp_path / "tiny-1")
    reruns = session.reruns
    failures = []
    reruns.failed.connect(failures.append)
    switch(session, "memory.recompute")
    with qtbot.waitSignal(reruns.reported, timeout=PATIENCE_MS) as kept:
        reruns.keep_prediction(tmp_path / "kept")
    assert kept.args[0] == tmp_path / "kept" / "prediction.json"
    assert list((tmp_path / "kept" / "candidate").glob("*_ascend_pt"))
    with qtbot.waitSignal(reruns.scored, timeout=PATIENCE_MS) as scored:
        reruns.score(kept.args[0])
    assert "predicted" in scored.args[0].lower()
    assert list((tmp_path / "data").rglob("*.jsonl"))
    assert failures == []


def test_a_side_leaves_the_worker_without_the_run_behind_it():
    side = portable_side(sample_side(run=object(), service=object()))
    assert side.run is None
    assert side.service is None


def test_a_rerun_can_be_given_up(session, qtbot, tmp_path):
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.simulate(SCENARIO, Path(), tmp_path / "tiny-1")
    switch(session, "memory.recompute")
    qtbot.waitUntil(lambda: session.reruns.is_busy, timeout=PATIENCE_MS)
    session.reruns.cancel()
    assert not session.reruns.is_busy
    assert session.reruns.is_pending
