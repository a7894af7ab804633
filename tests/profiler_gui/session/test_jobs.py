import os
import signal
import subprocess
import sys
import time

import pytest

from engine.core.errors import SourcePosition, TraceReadError
from profiler_gui.session.jobs import LatestJob
from tests.support.captures import REPOSITORY

STUCK_S = 30.0


def double(context, number):
    context.progress(0.5, "doubling")
    context.deliver(number)
    return number * 2


def wait_until_cancelled(context):
    while True:
        context.cancel.check()
        time.sleep(0.005)


def ignore_everything(context):
    time.sleep(STUCK_S)


def fail_as_a_reader_does(context, path):
    raise TraceReadError("half of it is missing", SourcePosition(path, byte=12), "copy it again")


def fail_as_a_programmer_does(context):
    return [][1]


def die(context):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def job(qapp):
    job = LatestJob()
    yield job
    job.close()


def test_a_call_reports_progress_delivers_and_returns(job, qtbot):
    progress, delivered = [], []
    job.progressed.connect(lambda ratio, what: progress.append((ratio, what)))
    job.delivered.connect(delivered.append)
    with qtbot.waitSignal(job.finished, timeout=20_000) as finished:
        job.start(double, 21)
    assert finished.args == [42]
    assert progress == [(0.5, "doubling")]
    assert delivered == [21]
    assert not job.is_running


def test_values_are_adopted_off_the_windows_thread(job, qtbot):
    with qtbot.waitSignal(job.finished, timeout=20_000) as finished:
        job.start(double, 21, adopt=str)
    assert finished.args == ["42"]


def test_the_newest_call_wins(job, qtbot):
    results = []
    job.finished.connect(results.append)
    job.start(wait_until_cancelled)
    job.start(double, 1)
    with qtbot.waitSignal(job.finished, timeout=20_000):
        job.start(double, 2)
    assert results == [4]


def test_nothing_is_heard_of_a_cancelled_call(job, qtbot):
    with qtbot.waitSignal(job.finished, timeout=20_000):
        job.start(double, 1)
    with qtbot.assertNotEmitted(job.failed, wait=200), qtbot.assertNotEmitted(job.finished):
        job.start(wait_until_cancelled)
        job.cancel()
        assert not job.is_running
    with qtbot.waitSignal(job.finished, timeout=20_000) as finished:
        job.start(double, 3)
    assert finished.args == [6]


def test_a_call_that_does_not_listen_is_replaced(job, qtbot):
    job._grace.setInterval(100)
    job.start(ignore_everything)
    with qtbot.waitSignal(job.finished, timeout=20_000) as finished:
        job.start(double, 3)
    assert finished.args == [6]


def test_errors_of_the_engine_keep_what_where_and_advice(job, qtbot, tmp_path):
    with qtbot.waitSignal(job.failed, timeout=20_000) as failed:
        job.start(fail_as_a_reader_does, tmp_path)
    failure = failed.args[0]
    assert (failure.what, failure.where, failure.advice) == (
        "half of it is missing",
        f"{tmp_path}, byte 12",
        "copy it again",
    )
    assert not failure.is_crash


def test_a_programming_error_comes_with_its_traceback(job, qtbot):
    with qtbot.waitSignal(job.failed, timeout=20_000) as failed:
        job.start(fail_as_a_programmer_does)
    assert "fail_as_a_programmer_does" in failed.args[0].traceback


def test_the_death_of_the_process_is_a_message_and_the_next_call_works(job, qtbot):
    with qtbot.waitSignal(job.failed, timeout=20_000) as failed:
        job.start(die)
    assert "ended unexpectedly (signal 9)" in failed.args[0].what
    with qtbot.waitSignal(job.finished, timeout=20_000) as finished:
        job.start(double, 3)
    assert finished.args == [6]


def test_a_program_that_ends_by_an_error_does_not_wait_for_its_worker(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from PySide6.QtCore import QCoreApplication\n"
        "from profiler_gui.session.jobs import LatestJob\n"
        "if __name__ == '__main__':\n"
        "    application = QCoreApplication([])\n"
        "    job = LatestJob()\n"
        "    job.prepare()\n"
        "    raise SystemExit(7)\n",
        encoding="utf-8",
    )
    command = [sys.executable, str(program)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run(command, env=environment, timeout=60, check=False)  # noqa: S603 - our own text
    assert result.returncode == 7
