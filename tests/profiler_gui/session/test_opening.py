import json
import threading
import time

import pytest

from profiler_gui.session import opener
from profiler_gui.session.document import Run
from profiler_gui.session.opening import cache_directory
from profiler_gui.session.session import Session
from tests.support.patience import PATIENCE_MS

EVENTS = [{"name": name, "ph": "X", "ts": 10 * start, "dur": 5, "pid": 1, "tid": 1} for start, name in enumerate("ABC")]


@pytest.fixture
def session(qapp, tmp_path):
    session = Session(tmp_path / "cache")
    yield session
    session.close()


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EVENTS), encoding="utf-8")
    return path


def test_a_capture_is_read_in_the_worker_and_arrives_mapped(session, qtbot, trace_file):
    with qtbot.waitSignals([session.document_changed, session.summary_changed], timeout=PATIENCE_MS, order="strict"):
        session.open((trace_file,))
    assert session.document.label == "trace.json"
    assert [session.trace.name(event) for event in range(3)] == ["A", "B", "C"]
    assert session.summary is not None
    assert not session.is_busy


def test_a_second_run_is_opened_beside_the_first(session, qtbot, trace_file, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(EVENTS[:2]), encoding="utf-8")
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((trace_file,))
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((other,), Run.B)
    assert session.document.label == "trace.json"
    assert session.candidate.label == "other.json"
    assert session.candidate.summary is not None


def test_an_unreadable_file_is_a_message_and_what_was_open_stays(session, qtbot, trace_file, tmp_path):
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((trace_file,))
    empty = tmp_path / "empty.json"
    empty.touch()
    with qtbot.waitSignal(session.failed, timeout=PATIENCE_MS) as failed:
        session.open((empty,))
    failure = failed.args[0]
    assert not failure.is_crash
    assert str(empty) in failure.where
    assert session.document.label == "trace.json"


def test_cancelled_opening_leaves_everything_as_it_was(session, qtbot, trace_file):
    session.open((trace_file,))
    session.cancel()
    with qtbot.assertNotEmitted(session.document_changed, wait=100):
        assert not session.is_busy
    assert session.document is None


def test_the_cache_goes_where_it_is_told_and_elsewhere_if_that_cannot_be_written(tmp_path, monkeypatch):
    assert cache_directory() == tmp_path / "cache"
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("CANNSCOPE_CACHE", str(blocked / "inside"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_directory().parent == tmp_path


def test_analyses_reach_the_run_they_belong_to_even_if_the_runs_were_exchanged(session, qtbot, trace_file, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(EVENTS[:2]), encoding="utf-8")
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((trace_file,))
    first_summary = session.job_summary

    def exchange() -> None:
        session.document_changed.disconnect(exchange)
        session.exchange_runs()

    session.document_changed.connect(exchange)
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((other,), Run.B)
    assert session.document.label == "other.json"
    assert session.job_summary is not None
    assert session.job_summary is not first_summary
    assert session.candidate.summary is first_summary


def test_closing_a_run_gives_up_opening_it(session, trace_file):
    session.open((trace_file,))
    session.close_run(Run.A)
    assert not session.is_busy


def test_a_document_waits_for_imports_that_run_in_a_thread(qapp, qtbot, tmp_path, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(opener, "prepare_imports", lambda: release.wait(30))
    (tmp_path / "trace.json").write_text(json.dumps(EVENTS))
    session = Session(tmp_path / "cache")
    try:
        session.import_ahead(())
        session.open((tmp_path / "trace.json",))
        with qtbot.assertNotEmitted(session.document_changed, wait=1_500):
            pass
        with qtbot.waitSignal(session.document_changed, timeout=PATIENCE_MS):
            release.set()
    finally:
        release.set()
        session.close()


@pytest.mark.parametrize("name", ["history.sqlite", "service.toml"])
def test_what_is_no_capture_is_opened_after_imports_that_run_in_a_thread(qapp, tmp_path, monkeypatch, name):
    imported = []

    def take_a_while():
        time.sleep(0.05)
        imported.append(name)

    monkeypatch.setattr(opener, "prepare_imports", take_a_while)
    session = Session(tmp_path / "cache")
    try:
        session.import_ahead(())
        if name == "history.sqlite":
            session.benchmarks.open(tmp_path / name)
        else:
            session.services.open({"kind": "serving"}, tmp_path)
        assert imported
    finally:
        session.close()
