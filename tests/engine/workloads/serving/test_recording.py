"""A served run on the timeline, written as a profiler directory, read back, and analyzed."""

from pathlib import Path

import numpy as np
import pytest

from engine.analyses.serving.latency import serving_analysis
from engine.analyses.serving.recorded import recorded_serving, served_run
from engine.analyses.steps import steps
from engine.analyses.summary import summarize
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.report.analysis_document import analysis_document
from engine.report.run_capture import write_service
from engine.trace.tracks import TrackKind
from engine.workloads.scenario_file import read_scenario
from engine.workloads.serving.recording import record_service
from engine.workloads.serving.simulate import simulate_serving

BODY = """
name = "chat"
kind = "serving"
[model]
preset = "llama3-8b"
[device]
preset = "910b2"
count = 2
[parallel]
tensor = 2
[run]
profile_steps = [0, 3, 5, 1000000]
[serving]
max_batch = 4
slo_ttft_ms = 500
requests = { rate_per_s = 20.0, count = 12, prompt_tokens = 300, output_tokens = { mean = 20, sigma = 0.5 } }
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("service") / "service.toml"
    path.write_text(BODY)
    return simulate_serving(read_scenario(path))


@pytest.fixture(scope="module")
def read_back(served, tmp_path_factory):
    parent = tmp_path_factory.mktemp("captures")
    write_service(served, parent)
    return open_job([parent], built_in_readers())


def test_every_request_is_a_row_with_its_phases_inside(served):
    trace = record_service(served).ranks[0].trace
    names = trace.strings.texts(trace.events.name)
    rows = [at for at, name in enumerate(names) if name.startswith("request ")]
    assert len(rows) == 12
    tracks = [trace.tracks[track] for track in trace.events.track[rows]]
    assert {track.kind for track in tracks} == {TrackKind.OTHER}
    inside = [at for at, name in enumerate(names) if name in ("queued", "prefill", "decode")]
    assert len(inside) == len(served.run.phases)
    assert set(trace.events.parent[inside].tolist()) <= set(rows)


def test_requests_of_one_row_never_overlap(served):
    trace = record_service(served).ranks[0].trace
    names = trace.strings.texts(trace.events.name)
    rows = np.array([at for at, name in enumerate(names) if name.startswith("request ")])
    for track in np.unique(trace.events.track[rows]):
        own = rows[trace.events.track[rows] == track]
        assert (trace.events.start_ns[own][1:] >= trace.events.end_ns[own][:-1]).all()


def test_operators_of_profiled_iterations_fill_their_device_time(served):
    trace = record_service(served).ranks[0].trace
    run = served.run.iterations
    for iteration in (0, 3, 5):
        own = trace.kernels.event[trace.kernels.step == iteration]
        exchanged = trace.collectives.event[trace.collectives.step == iteration]
        events = np.concatenate((own, exchanged))
        assert trace.events.duration_ns[events].sum() == pytest.approx(run.device_ns[iteration], rel=0.01)
        assert trace.events.start_ns[events].min() >= run.start_ns[iteration]
        assert trace.events.end_ns[events].max() <= run.end_ns[iteration]
        order = events[np.argsort(trace.events.start_ns[events], kind="stable")]
        assert (trace.events.start_ns[order][1:] >= trace.events.end_ns[order][:-1]).all()
    assert [step.step for step in steps(trace)] == [0, 3, 5]


def test_counters_show_what_fills_up(served):
    trace = record_service(served).ranks[0].trace
    found = {series.name: series.value for series in trace.counters}
    assert found["Sequences in the batch"].max() == 4
    assert (found["KV blocks held"] == served.run.iterations.kv_blocks).all()


def test_a_written_service_is_read_back_as_it_ran(served, read_back):
    back = served_run(read_back.ranks[0].trace)
    assert back is not None
    for table in ("requests", "iterations", "phases"):
        before, after = getattr(served.run, table), getattr(back, table)
        for column in before.__slots__:
            assert (getattr(before, column) == getattr(after, column)).all(), column
    assert recorded_serving(read_back.ranks[0].trace) == serving_analysis(served.run, served.settings.slo_ttft_ns)


def test_analyze_tells_what_the_service_came_to(read_back):
    document = analysis_document(read_back, summarize(read_back))
    assert document["diagnostics"] == []
    assert document["ranks"][0]["serving"]["finished"] == 12
    assert document["ranks"][0]["headline"].startswith("Service: 12 of 12 requests answered, first token ")
    assert document["ranks"][0]["serving"]["ttft_ms"]["p99"] > 0
    assert document["ranks"][0]["idle"][0]["cause"] == "host_slow"


def test_a_trace_of_training_shows_no_service(served):
    trace = record_service(served).ranks[0].trace
    assert served_run(trace) is not None
    trace.tables.pop("serving_phases")
    assert served_run(trace) is None
    assert recorded_serving(trace) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e18])
@pytest.mark.parametrize("column", ["Status", "Session", "First Token(us)"])
def test_a_table_with_impossible_numbers_is_no_service(served, value, column):
    trace = record_service(served).ranks[0].trace
    trace.tables["serving_requests"].numbers[column][3] = value
    assert recorded_serving(trace) is None
