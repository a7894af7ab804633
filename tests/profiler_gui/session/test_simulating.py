"""A scenario run by the real worker, opened as the captures it wrote."""

from pathlib import Path

import pytest

from engine.analyses.step_history import step_history
from engine.trace.trace import Origin
from profiler_gui.session.document import Run
from profiler_gui.session.session import Session
from tests.support.patience import PATIENCE_MS

SCENARIO = {
    "name": "tiny",
    "model": {"layers": 2, "hidden": 256, "ffn": 512, "heads": 4, "vocab": 1000},
    "device": {"preset": "910b2", "count": 2},
    "parallel": {"tensor": 2},
    "batch": {"micro": 1, "global": 2, "sequence_length": 256},
    "run": {"steps": 3},
}


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    yield session
    session.close()


def test_a_run_opens_as_a_simulated_capture_with_its_history(session, qtbot, tmp_path):
    stages = []
    session.progress_changed.connect(lambda ratio, what: stages.append((ratio, what)))
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.simulate(SCENARIO, Path(), tmp_path / "tiny-1")
    document = session.document
    assert document.label == "tiny-1"
    assert document.is_simulated
    assert document.ranks == (0, 1)
    trace = session.trace
    assert trace.origin is Origin.SIMULATED
    assert len(step_history(trace)) == 3
    assert session.summary.memory is not None
    assert any(what.startswith("step 1 of 3") for _, what in stages)
    ratios = [ratio for ratio, _ in stages]
    assert ratios == sorted(ratios)
    assert len(list((tmp_path / "tiny-1").glob("*_ascend_pt"))) == 2


def test_a_run_can_be_opened_beside_another(session, qtbot, tmp_path):
    for run in (Run.A, Run.B):
        with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
            session.simulate(SCENARIO, Path(), tmp_path / run.value, run)
    assert session.document.label == "a"
    assert session.candidate.label == "b"


def test_a_run_that_ends_before_it_is_recorded_says_how_it_ended(session, qtbot, tmp_path):
    scenario = SCENARIO | {"memory": {"limit_bytes": 1_000_000}}
    with qtbot.waitSignal(session.failed, timeout=PATIENCE_MS) as failed:
        session.simulate(scenario, Path(), tmp_path / "oom")
    assert failed.args[0].what.startswith("out of memory in step 1 of 3")
    assert not failed.args[0].is_crash
    assert session.document is None


def test_a_wrong_scenario_is_a_message_and_no_crash(session, qtbot, tmp_path):
    with qtbot.waitSignal(session.failed, timeout=PATIENCE_MS) as failed:
        session.simulate(SCENARIO | {"modle": {}}, Path(), tmp_path / "wrong")
    assert "modle" in failed.args[0].what
    assert not (tmp_path / "wrong").exists()


def test_a_run_can_be_given_up(session, qtbot, tmp_path):
    long = SCENARIO | {"run": {"steps": 100_000}, "memory": {"long_lived": {"per_step": 2.0}}}
    with qtbot.waitSignal(session.progress_changed, timeout=PATIENCE_MS):
        session.simulate(long, Path(), tmp_path / "long")
    with qtbot.waitSignal(session.busy_changed, timeout=10_000):
        session.cancel()
    assert session.document is None
    assert not (tmp_path / "long").exists()
