"""What the idle worker compiles with: captures that the real readers take without loss."""

import pytest

from engine.analyses.summary import summarize
from engine.core.errors import OperationCancelled
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.trace import Severity
from profiler_gui.session.compile_ahead import compile_in_worker, write_captures
from profiler_gui.session.jobs import LatestJob
from profiler_gui.session.opening import open_in_worker, open_request
from profiler_gui.session.worker import JobContext
from tests.support.patience import PATIENCE_MS
from tests.support.trace_text import US


def nothing() -> None:
    """Compiles nothing more."""


def test_the_captures_hold_everything_that_kernels_read(tmp_path):
    for path, source in zip(write_captures(tmp_path), ("kineto", "ascend-text"), strict=True):
        job = open_job([path], built_in_readers())
        trace = job.ranks[0].trace
        assert trace.source.format == source
        assert {item.severity for item in trace.diagnostics} <= {Severity.NOTICE}
        assert len(trace.flows) == 8
        assert len(trace.memory.allocations) > 0
        assert len(trace.memory.curves) > 0
        summary = summarize(job).rank(job.ranks[0].rank)
        assert len(summary.steps) == 1
        assert sum(item.total_ns for item in summary.operators) >= 7 * 9 * US


def test_compiling_leaves_nothing_behind_and_stops_when_asked(tmp_path):
    context = JobContext(lambda message: None, lambda: False)
    compile_in_worker(context, tmp_path, nothing)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OperationCancelled):
        compile_in_worker(JobContext(lambda message: None, lambda: True), tmp_path, nothing)
    assert list(tmp_path.iterdir()) == []


def test_a_request_is_answered_by_a_worker_that_was_compiling(qapp, qtbot, tmp_path):
    *_, path = write_captures(tmp_path)
    job = LatestJob()
    try:
        job.prepare(compile_in_worker, tmp_path, nothing)
        assert not job.is_running
        process = job._worker.process_id
        with qtbot.waitSignal(job.finished, timeout=PATIENCE_MS):
            job.start(open_in_worker, open_request((path,), tmp_path / "cache"))
        assert job._worker.process_id == process
    finally:
        job.close()
