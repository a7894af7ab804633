"""Real captures against what the standard library's json and csv say is in them."""

import csv
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.errors import UnsupportedTraceVersionError
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.opening import open_job
from engine.formats.reader import ReadContext
from engine.formats.readers import built_in_readers
from engine.trace import Trace, TrackKind
from engine.trace.intervals import union
from engine.trace.storage import load_trace, save_trace

CNN = [f"level{level}/rank{rank}_ascend_pt" for level in range(3) for rank in range(2)]
QWEN_TABLES = ["rank_0_ascend_pt", "rank_2_ascend_pt"]


@cache
def read(root: Path) -> Trace:
    (capture,) = AscendTextReader().find(root)
    return AscendTextReader().read(capture, ReadContext())


@cache
def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [{key: cell.strip(" \t") for key, cell in row.items()} for row in csv.DictReader(file)]


@cache
def events_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def ns(text: str) -> int:
    return int(Decimal(text) * 1000)


def cnn(captures: Path, name: str) -> tuple[Trace, Path]:
    root = captures / "ascend" / "910b-cnn-ddp2-text" / name
    return read(root), root / "ASCEND_PROFILER_OUTPUT"


def qwen(captures: Path, name: str) -> tuple[Trace, Path]:
    root = captures / "ascend" / "910b-qwen3-0.6b-pp2dp2" / name
    return read(root), root / "ASCEND_PROFILER_OUTPUT"


@pytest.mark.parametrize("name", CNN)
def test_every_slice_stands_on_the_timeline_exactly(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    slices = [event for event in events_of(output / "trace_view.json") if event["ph"] == "X"]
    epoch_ns = trace.metadata.epoch_ns
    assert epoch_ns is not None
    expected = Counter((event["name"], ns(event["ts"]), round(event["dur"] * 1000)) for event in slices)
    names = trace.strings.texts(trace.events.name)
    starts = (trace.events.start_ns + epoch_ns).tolist()
    assert Counter(zip(names, starts, trace.events.duration_ns.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", CNN)
def test_every_flow_end_is_bound(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    events = events_of(output / "trace_view.json")
    ends = Counter(event["cat"] for event in events if event["ph"] == "f")
    bound = Counter(trace.strings.texts(trace.flows.kind))
    if name.startswith("level0"):
        # The CANN layer is pruned: its flows start nowhere, and that is counted.
        assert bound == ends - Counter({"HostToDevice": ends["HostToDevice"]})
        counted = {item.code: item.count for item in trace.diagnostics}
        assert counted["flow-without-slice"] == 210 + 215  # starts, and their ends
    else:
        assert bound == ends
        # 210 launches; one of them has two device tasks.
        assert len(set(_flows(trace, "HostToDevice"))) == 210


def _flows(trace: Trace, kind: str) -> list[int]:
    return trace.flows.source[trace.flows.kind == trace.strings.id_of(kind)].tolist()


@pytest.mark.parametrize("name", CNN)
def test_every_kernel_row_describes_one_event_of_its_name_and_time(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    rows = rows_of(output / "kernel_details.csv")
    assert len(trace.kernels) == len(rows) == 191
    described = Counter(
        (trace.name(event), trace.arguments(event)["Start Time(us)"].strip()) for event in trace.kernels.event.tolist()
    )
    assert described == Counter((row["Name"], row["Start Time(us)"]) for row in rows)
    epoch_ns = trace.metadata.epoch_ns or 0
    for event in trace.kernels.event.tolist():
        start_ns = int(trace.events.start_ns[event]) + epoch_ns
        assert abs(start_ns - ns(trace.arguments(event)["Start Time(us)"].strip())) <= 1
    on_streams = np.isin(trace.kernels.event, trace.events_of(TrackKind.DEVICE_STREAM))
    assert np.count_nonzero(on_streams) == 187


@pytest.mark.parametrize("name", CNN)
def test_described_kernels_cover_what_the_profiler_calls_computing(name: str, captures: Path) -> None:
    trace, _ = cnn(captures, name)
    kernels = trace.kernels.event[np.isin(trace.kernels.event, trace.events_of(TrackKind.DEVICE_STREAM))]
    ours = union(trace.events.start_ns[kernels], trace.events.end_ns[kernels])
    (lane,) = (index for index, track in enumerate(trace.tracks) if track.name == "Computing")
    theirs = trace.events.duration_ns[trace.track_slices[lane]]
    # The profiler rounds each of the 187 sections to whole ns on its own.
    assert abs(ours.total_ns - int(theirs.sum())) <= 200


@pytest.mark.parametrize("name", CNN)
def test_a_stored_trace_is_the_same(name: str, captures: Path, tmp_path: Path) -> None:
    trace, _ = cnn(captures, name)
    save_trace(trace, tmp_path / "stored")
    again = load_trace(tmp_path / "stored")
    assert np.array_equal(again.events.start_ns, trace.events.start_ns)
    decoder = AscendTextReader().argument_decoder(again.source)
    assert decoder is not None
    for offset in trace.events.args_offset[:: len(trace.events) // 20].tolist():
        assert trace.argument_decoder is not None
        assert decoder(offset) == trace.argument_decoder(offset)


def test_progress_only_grows(captures: Path) -> None:
    seen: list[float] = []
    (capture,) = AscendTextReader().find(captures / "ascend" / "910b-cnn-ddp2-text" / CNN[2])
    AscendTextReader().read(capture, ReadContext(progress=lambda ratio, what: seen.append(ratio)))
    assert seen == sorted(seen)
    assert 0 <= seen[0] < seen[-1] <= 1


def test_each_rank_is_opened_once(captures: Path) -> None:
    job = open_job([captures / "ascend" / "910b-cnn-ddp2-text" / "level2"], built_in_readers())
    assert [(entry.rank, entry.trace.source.format) for entry in job.ranks] == [(0, "ascend-text"), (1, "ascend-text")]


@pytest.mark.parametrize("name", CNN)
def test_every_counter_sample_is_in_a_series(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    samples = [event for event in events_of(output / "trace_view.json") if event["ph"] == "C"]
    assert sum(len(series) for series in trace.counters) == len(samples)
    core = next(series for series in trace.counters if series.name == "AI Core Freq")
    assert core.unit == "MHz"
    assert core.value.tolist() == [event["args"]["MHz"] for event in samples if event["name"] == "AI Core Freq"]


@pytest.mark.parametrize("name", CNN)
def test_nothing_else_was_left_out(name: str, captures: Path) -> None:
    trace, _ = cnn(captures, name)
    notices = {"fraction-called-percent"} | ({"flow-without-slice"} if name.startswith("level0") else set())
    assert {item.code for item in trace.diagnostics} == notices


@pytest.mark.parametrize("name", CNN[2:])
def test_the_payload_of_a_collective_is_its_tensor(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    big = [event for event in events_of(output / "trace_view.json") if event["name"].startswith("hcom_")]
    expected = {event["name"]: event["args"]["count"] * 4 for event in big if event["ph"] == "X"}
    names = trace.strings.texts(trace.collectives.name)
    assert dict(zip(names, trace.collectives.bytes.tolist(), strict=True)) == expected
    assert np.all(trace.collectives.vendor_wait_ns >= 0)


@pytest.mark.parametrize("name", CNN)
def test_framework_allocations_belong_to_an_operator_and_the_graph_engines_to_none(name: str, captures: Path) -> None:
    trace, output = cnn(captures, name)
    rows = rows_of(output / "operator_memory.csv")
    table = trace.memory.allocations
    assert len(table) == len(rows)
    names = trace.strings.texts(table.operator)
    linked = [event >= 0 for event in table.event.tolist()]
    assert linked == [not name.startswith("cann::") for name in names]
    for event, operator in zip(table.event.tolist(), names, strict=True):
        assert event < 0 or trace.name(event) == operator


@pytest.mark.parametrize("name", [*CNN, *QWEN_TABLES])
def test_memory_is_exact_to_the_byte_and_the_ns(name: str, captures: Path) -> None:
    trace, output = qwen(captures, name) if name in QWEN_TABLES else cnn(captures, name)
    epoch_ns = trace.metadata.epoch_ns or 0
    expected = Counter(
        (row["Component"], ns(row["Timestamp(us)"]), int(Decimal(row["Total Reserved(MB)"]) * 2**20))
        for row in rows_of(output / "memory_record.csv")
    )
    read_back: Counter[tuple[str, int, int]] = Counter()
    for curve in trace.memory.curves:
        assert np.all(np.diff(curve.time_ns) >= 0)
        times = (curve.time_ns + epoch_ns).tolist()
        read_back += Counter(
            (curve.component, time, size) for time, size in zip(times, curve.reserved_bytes.tolist(), strict=True)
        )
    assert read_back == expected
    blocks = rows_of(output / "operator_memory.csv")
    sizes = sorted(int(Decimal(row["Size(KB)"]) * 1024) for row in blocks)
    assert sorted(trace.memory.allocations.size_bytes.tolist()) == sizes
    alive = sum(not row["Release Time(us)"] for row in blocks)
    assert np.count_nonzero(trace.memory.allocations.freed_at_ns == -1) == alive


@pytest.mark.parametrize("name", QWEN_TABLES)
def test_kernels_without_a_trace_are_the_table_row_by_row(name: str, captures: Path) -> None:
    trace, output = qwen(captures, name)
    rows = rows_of(output / "kernel_details.csv")
    epoch_ns = trace.metadata.epoch_ns or 0
    expected = Counter((row["Name"], ns(row["Start Time(us)"]), ns(row["Duration(us)"])) for row in rows)
    names = trace.strings.texts(trace.events.name)
    starts = (trace.events.start_ns + epoch_ns).tolist()
    assert Counter(zip(names, starts, trace.events.duration_ns.tolist(), strict=True)) == expected
    shapes = Counter(row["Input Shapes"].strip('"') for row in rows)
    read_back = Counter(text or "N/A" for text in trace.strings.texts(trace.kernels.input_shapes))
    assert read_back[""] == 0
    assert sum(read_back.values()) == sum(shapes.values())
    for text, count in shapes.items():
        if text not in ("", "N/A"):
            assert read_back[text] == count


@pytest.mark.parametrize("rank", range(4))
def test_collectives_of_the_pipeline_job(rank: int, captures: Path) -> None:
    trace, output = qwen(captures, f"rank_{rank}_ascend_pt")
    content = json.loads((output / "communication.json").read_text())
    operators = {
        key: value
        for kinds in content.values()
        for entries in kinds.values()
        for key, value in entries.items()
        if key != "Total Op Info"
    }
    table = trace.collectives
    keys = [f"{name}@{group}" for name, group in zip(*map(trace.strings.texts, (table.name, table.group)), strict=True)]
    assert sorted(keys) == sorted(operators)
    for row, key in enumerate(keys):
        elapsed_ms = operators[key]["Communication Time Info"]["Elapse Time(ms)"]
        assert abs(int(table.elapsed_ns[row]) - elapsed_ms * 1e6) <= 1
        assert trace.name(int(table.event[row])) == key.rpartition("@")[0]
    assert np.all(table.step == 13)
    assert {item.code for item in trace.diagnostics} == {"database-not-read"} | (
        {"rounded-starts"} if rank % 2 else set()
    )


def test_ranks_say_which_device_they_ran_on(captures: Path) -> None:
    devices = {rank: qwen(captures, f"rank_{rank}_ascend_pt")[0].metadata.device for rank in range(4)}
    assert devices == {0: "NPU 0", 1: "NPU 1", 2: "NPU 4", 3: "NPU 5"}


def test_metadata_of_the_pipeline_job(captures: Path) -> None:
    said = qwen(captures, "rank_2_ascend_pt")[0].metadata
    assert (said.rank, said.world_size, said.profiler_level) == (2, 4, "Level2")
    assert said.software == {"torch_npu_version": "2.7.1", "cann_version": "8.3.RC1"}
    assert said.parallel_sizes["pipeline_model_parallel_size"] == 2
    assert ("pp", (0, 2)) in {(group.name, group.ranks) for group in said.parallel_groups}


@pytest.mark.parametrize("name", [*CNN, *QWEN_TABLES])
def test_summary_tables_hold_every_cell(name: str, captures: Path) -> None:
    trace, output = qwen(captures, name) if name in QWEN_TABLES else cnn(captures, name)
    tables = [path for path in output.glob("*.csv") if path.stem in trace.tables]
    assert len(tables) >= 4
    for path in tables:
        rows, table = rows_of(path), trace.tables[path.stem]
        assert len(table) == len(rows)
        for title in table.columns:
            cells = [row[title] for row in rows]
            if title in table.texts:
                assert trace.strings.texts(table.texts[title]) == cells
            else:
                numbers = table.numbers[title].tolist()
                assert all(
                    number == float(cell) if cell not in ("", "N/A") else number != number
                    for number, cell in zip(numbers, cells, strict=True)
                )


def test_a_trace_of_cann_7_opens(captures: Path) -> None:
    trace = read(captures / "ascend" / "old-cann7-timeline")
    assert len(trace.events) == 2212
    assert len(trace.flows) == 713
    assert len(trace.events_of(TrackKind.DEVICE_STREAM)) == 276
    assert len(trace.events_of(TrackKind.CANN_THREAD)) == 382
    assert trace.diagnostics == ()


def test_databases_are_recognised_and_refused(captures: Path) -> None:
    found = AscendTextReader().find(captures / "ascend" / "910b-cnn-ddp2-db")
    assert len(found) == 6
    for capture in found:
        with pytest.raises(UnsupportedTraceVersionError, match="profiler databases are not read yet"):
            AscendTextReader().read(capture, ReadContext())


def test_fusion_counters_and_traces_of_other_profilers_are_not_claimed(captures: Path) -> None:
    assert AscendTextReader().find(captures / "ascend" / "fusion_result.json") == ()
    assert AscendTextReader().find(captures / "pytorch") == ()
    assert AscendTextReader().find(captures / "snapshots") == ()
