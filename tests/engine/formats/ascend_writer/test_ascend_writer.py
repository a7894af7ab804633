import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.analyses.communication import communication
from engine.analyses.device import device_totals
from engine.analyses.steps import steps
from engine.core.errors import ExportError, OperationCancelled
from engine.core.progress import CancelToken
from engine.formats.ascend_writer import directory_name, write_ascend_text
from engine.formats.opening import open_job
from engine.formats.readers import built_in_readers
from engine.runtime.recorder import RecorderSettings, record_job, record_rank
from engine.runtime.scheduler import schedule, uniform_slowdown
from engine.trace import Job, Origin, Trace
from tests.support.ascend_capture import read_capture
from tests.support.msprof_analyze import MsprofAnalyze
from tests.support.same_trace import differences
from tests.support.simulated_job import small_job, small_memory
from tests.support.trace_text import trace_from_text

RANKS = range(4)
SIZES = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 2, "data_parallel_size": 2}


@cache
def recorded(level: int = 1) -> Job:
    graph = small_job()
    result = schedule(graph, uniform_slowdown(graph, 0.2))
    memory = {rank: small_memory(graph, result, rank) for rank in RANKS}
    return record_job(graph, result, settings(level), memory)


def settings(level: int = 1) -> RecorderSettings:
    return RecorderSettings(level=level, parallel_sizes=SIZES, device_memory_bytes=64 << 30)


def trace_of(rank: int, level: int = 1) -> Trace:
    return recorded(level).rank_trace(rank).trace


def events_of(root: Path) -> list[dict[str, Any]]:
    path = root / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("rank", RANKS)
def test_a_written_rank_reads_back_to_an_equal_trace(level: int, rank: int, tmp_path: Path) -> None:
    trace = trace_of(rank, level)
    read = read_capture(write_ascend_text(trace, tmp_path))
    assert differences(trace, read) == []
    assert read.origin is Origin.SIMULATED
    assert read.metadata.device_memory_bytes == 64 << 30


def test_what_was_read_writes_the_same_files_again(tmp_path: Path) -> None:
    first = write_ascend_text(trace_of(0), tmp_path / "first")
    second = write_ascend_text(read_capture(first), tmp_path / "second")
    for path in sorted(first.rglob("*")):
        if path.is_file() and path.name != "trace_view.json":  # arguments come back in the reader's order
            assert (second / path.relative_to(first)).read_bytes() == path.read_bytes(), path.name


def test_a_written_job_gives_the_same_analyses(tmp_path: Path) -> None:
    for rank in RANKS:
        write_ascend_text(trace_of(rank), tmp_path)
    job = open_job([tmp_path], built_in_readers())
    assert [entry.rank for entry in job.ranks] == list(RANKS)
    for rank in RANKS:
        read, trace = job.rank_trace(rank).trace, trace_of(rank)
        assert device_totals(read) == device_totals(trace)
        assert steps(read) == steps(trace)

    def waits(of: Job) -> dict[int, list[tuple[str, int | None, int | None]]]:
        found = communication(of).collectives
        return {rank: [(item.name, item.wait_ns, item.transfer_ns) for item in found[rank]] for rank in RANKS}

    assert waits(job) == waits(recorded())


@pytest.mark.parametrize("level", [0, 1])
def test_the_trace_keeps_the_rules_of_its_viewers(level: int, tmp_path: Path) -> None:
    """Insight accepts these phases only, needs ``ph`` in every event and drops counters at 0."""
    root = write_ascend_text(trace_of(1, level), tmp_path)
    text = (root / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text(encoding="utf-8")
    assert text.startswith("[{")
    assert text.endswith("}]")
    assert "\n" not in text
    events = events_of(root)
    assert {event["ph"] for event in events} <= set("MXICstf")
    names = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
    assert {event["name"] for event in events if event["ph"] == "M"} <= names
    lanes = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert lanes <= named
    for event in events:
        assert event["ph"] == "M" or (isinstance(event["ts"], str) and len(event["ts"].partition(".")[2]) == 3)
        assert event["ph"] != "X" or isinstance(event["dur"], int | float)


def test_every_arrow_starts_and_ends_on_a_slice(tmp_path: Path) -> None:
    events = events_of(write_ascend_text(trace_of(1), tmp_path))
    starts = {(event["pid"], event["tid"], event["ts"]) for event in events if event["ph"] == "X"}
    ends = [event for event in events if event["ph"] in "sf"]
    assert all((event["pid"], event["tid"], event["ts"]) in starts for event in ends)
    assert {event["name"] for event in ends if event["cat"] == "async_npu"} == {"torch_to_npu"}
    queued = [event for event in ends if event["cat"] == "HostToDevice"]
    assert all(event["name"] == f"HostToDevice{event['id']}" and isinstance(event["id"], str) for event in queued)


def test_tables_have_the_profilers_titles_and_marks(tmp_path: Path) -> None:
    output = write_ascend_text(trace_of(0), tmp_path) / "ASCEND_PROFILER_OUTPUT"
    with (output / "kernel_details.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kernel = next(row for row in rows if row["Name"] == "MatMulV3")
    assert kernel["Start Time(us)"].endswith("\t")
    assert kernel["Input Shapes"] == '"4096,512;512,512"'
    assert (kernel["Accelerator Core"], kernel["Stream ID"], kernel["Step Id"]) == ("AI_CORE", "1", "0")
    collective = next(row for row in rows if row["Accelerator Core"] == "COMMUNICATION")
    assert (collective["Stream ID"], collective["Task ID"]) == ("N/A", "N/A")
    written = {path.name for path in output.iterdir()}
    tables = {"kernel_details", "operator_details", "operator_memory", "memory_record", "op_statistic", "api_statistic"}
    assert {f"{name}.csv" for name in tables} <= written
    assert {"step_trace_time.csv", "communication.json", "communication_matrix.json", "trace_view.json"} <= written


def test_communication_files_split_waiting_and_transfer(tmp_path: Path) -> None:
    output = write_ascend_text(trace_of(0), tmp_path) / "ASCEND_PROFILER_OUTPUT"
    document = json.loads((output / "communication.json").read_text(encoding="utf-8"))
    assert set(document) == {"step0", "step1"}
    assert {key.partition("__")[0] for key in document["step0"]["p2p"]} == {"hcom_send", "Total Op Info"}
    for key, operator in document["step0"]["collective"].items():
        times = operator["Communication Time Info"]
        parts = times["Transit Time(ms)"] + times["Wait Time(ms)"] + times["Idle Time(ms)"]
        assert parts == pytest.approx(times["Elapse Time(ms)"])
        if key != "Total Op Info":
            assert key.endswith("@11111111111111111111")
            assert operator["Communication Bandwidth Info"]["HCCS"]["Transit Size(MB)"] == 2.0
    matrix = json.loads((output / "communication_matrix.json").read_text(encoding="utf-8"))
    operators = matrix["step0"]["collective"]
    assert set(operators["allreduce-top1@11111111111111111111"]) == {"0-0", "0-1"}
    assert operators["allreduce-total@11111111111111111111"]["0-1"]["Transit Size(MB)"] == 6.0


def test_equal_runs_are_equal_files(tmp_path: Path) -> None:
    first = write_ascend_text(trace_of(2), tmp_path / "first")
    graph = small_job()
    result = schedule(graph, uniform_slowdown(graph, 0.2))
    again = record_rank(graph, result, 2, settings(), small_memory(graph, result, 2))
    second = write_ascend_text(again, tmp_path / "second")
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    for name in files:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_an_older_directory_of_the_same_run_is_replaced(tmp_path: Path) -> None:
    root = write_ascend_text(trace_of(0), tmp_path)
    (root / "stale.csv").write_text("old", encoding="utf-8")
    assert write_ascend_text(trace_of(0), tmp_path) == root
    assert not (root / "stale.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == [directory_name(trace_of(0))]


def test_a_cancelled_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OperationCancelled):
        write_ascend_text(trace_of(0), tmp_path, cancel=CancelToken(lambda: True))
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ExportError, match="choose another place"):
        write_ascend_text(trace_of(0), tmp_path / "file")


def test_a_trace_of_another_format_becomes_an_ascend_one(tmp_path: Path) -> None:
    trace = trace_from_text("npu 7 | AA.BBB |\nhost 1 | LL.... |", {"A": "MatMul", "B": "Add", "L": "launch"}, rank=3)
    read = read_capture(write_ascend_text(trace, tmp_path))
    assert read.metadata.rank == 3
    assert device_totals(read) == device_totals(trace)
    for one in (read, trace):
        found = sorted(zip(one.strings.texts(one.events.name), one.events.start_ns.tolist(), strict=True))
        assert found == [("Add", 3_000), ("MatMul", 0), ("launch", 0)]


@pytest.mark.parametrize("name", ["level0/rank1_ascend_pt", "level1/rank0_ascend_pt", "level2/rank0_ascend_pt"])
def test_a_real_capture_reads_back_equal_after_writing(name: str, captures: Path, tmp_path: Path) -> None:
    """Only what the reader had to remark on may differ: the written text has no such faults."""
    trace = read_capture(captures / "ascend" / "910b-cnn-ddp2-text" / name)
    found = differences(trace, read_capture(write_ascend_text(trace, tmp_path)))
    assert [line for line in found if not line.startswith("diagnostics")] == []


@pytest.mark.slow
def test_the_vendors_own_tool_finds_nothing_wrong(msprof_analyze: MsprofAnalyze, tmp_path: Path) -> None:
    for rank in RANKS:
        write_ascend_text(trace_of(rank), tmp_path / "job")
    said = msprof_analyze.run("cluster", "-d", tmp_path / "job", "-m", "all", "-o", tmp_path / "cluster")
    said += msprof_analyze.run("advisor", "all", "-d", tmp_path / "job", "-o", tmp_path / "advice")
    assert "cannot be mapped" not in said
    with next((tmp_path / "cluster").rglob("cluster_step_trace_time.csv")).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["Type"] == "rank" and row["Index"] == "1"]
    found = steps(trace_of(1))
    assert [float(row["Computing"]) for row in rows] == [(step.computing_ns or 0) / 1000 for step in found]
