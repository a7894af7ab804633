import json
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import TraceReadError
from engine.formats.ascend.reader import AscendTextReader
from engine.trace import Severity, Trace, TrackKind
from engine.trace.tables import INSTANT
from tests.support.ascend_capture import (
    EPOCH_US,
    KERNEL_TITLES,
    found,
    kernel_row,
    layer,
    read_files,
    slice_event,
    us,
)

HOST = layer("Python", 100, {100: "Thread 100"}, "CPU")
CANN = layer("CANN", 201, {100: "Thread 100"}, "CPU", 7)
DEVICE = layer("Ascend Hardware", 202, {2: "Stream 2"}, "NPU 0", 13)
HCCL = layer("HCCL", 203, {0: "Group 0 Communication", 1: "Plane 0"}, "NPU 0", 15)
TASK = {"Task Type": "AI_CORE", "Physic Stream Id": 2, "connection_id": 9}


def kernel(name: str = "MatMul", start: float = 10.0, duration: float = 4.0) -> dict[str, object]:
    return slice_event(name, 202, 2, start, duration, args=TASK)


def read(tmp_path: Path, *events: object, **files: object) -> Trace:
    return read_files(tmp_path, {"trace_view.json": list(events)} | {f"{key}.csv": text for key, text in files.items()})


def names_on(trace: Trace, kind: TrackKind) -> list[str]:
    return [trace.name(event) for event in trace.events_of(kind).tolist()]


def test_lanes_are_told_by_the_names_of_processes_and_threads(tmp_path: Path) -> None:
    overlap = layer("Overlap Analysis", 204, {0: "Communication", 2: "Computing"})
    events = [
        slice_event("aten::mm", 100, 100, 0, 5, cat="cpu_op"),
        slice_event("Node@launch", 201, 100, 1, 2),
        kernel(),
        slice_event("hcom_allReduce__1_0_1", 203, 0, 20, 8),
        slice_event("Memcpy", 203, 1, 20, 3),
        slice_event("Computing", 204, 2, 10, 4),
    ]
    trace = read(tmp_path, *HOST, *CANN, *DEVICE, *HCCL, *overlap, *events)
    assert names_on(trace, TrackKind.HOST_THREAD) == ["aten::mm"]
    assert names_on(trace, TrackKind.CANN_THREAD) == ["Node@launch"]
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["MatMul"]
    assert names_on(trace, TrackKind.COMMUNICATION_GROUP) == ["hcom_allReduce__1_0_1"]
    assert names_on(trace, TrackKind.COMMUNICATION_PLANE) == ["Memcpy"]
    assert names_on(trace, TrackKind.OVERLAP) == ["Computing"]
    stream = trace.tracks[int(trace.tracks_of(TrackKind.DEVICE_STREAM)[0])]
    assert (stream.stream, stream.device, trace.tracks[stream.parent].name) == (2, 0, "Ascend Hardware")


def test_the_newer_name_of_the_communication_layer_means_the_same(tmp_path: Path) -> None:
    newer = layer("Communication", 203, {0: "Group 0 Communication", 1: "Plane 0"})
    trace = read(tmp_path, *newer, slice_event("hcom_allGather__1_0_1", 203, 0, 0, 8), slice_event("x", 203, 1, 0, 1))
    assert names_on(trace, TrackKind.COMMUNICATION_GROUP) == ["hcom_allGather__1_0_1"]
    assert names_on(trace, TrackKind.COMMUNICATION_PLANE) == ["x"]


def test_layers_stand_in_the_profilers_order(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, *CANN, *HOST, kernel())
    assert [track.name for track in trace.tracks if track.kind is TrackKind.PROCESS] == [
        "Python",
        "CANN",
        "Ascend Hardware",
    ]
    assert [track.sort_key for track in trace.tracks if track.kind is TrackKind.PROCESS] == [0, 7, 13]


def test_a_pid_beyond_32_bits_is_an_ordinary_pid(tmp_path: Path) -> None:
    trace = read(
        tmp_path, *layer("Ascend Hardware", 4376751100, {2: "Stream 2"}), slice_event("k", 4376751100, 2, 0, 1)
    )
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["k"]
    assert trace.tracks[int(trace.tracks_of(TrackKind.DEVICE_STREAM)[0])].process_id == "4376751100"


def test_a_layer_without_metadata_gets_a_lane_of_its_own(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel(), slice_event("pruned", 999, 5, 0, 1))
    assert names_on(trace, TrackKind.OTHER) == ["pruned"]


def test_flow_ends_of_a_pruned_layer_are_counted(tmp_path: Path) -> None:
    start = {"name": "h", "ph": "s", "cat": "HostToDevice", "id": "9", "pid": 999, "tid": 5, "ts": us(0)}
    end = {"name": "h", "ph": "f", "bp": "e", "cat": "HostToDevice", "id": "9", "pid": 202, "tid": 2, "ts": us(10)}
    trace = read(tmp_path, *DEVICE, kernel(), start, end)
    assert len(trace.flows) == 0
    notice = found(trace, "flow-without-slice")
    assert notice is not None
    assert notice.count == 2


def test_a_step_trace_lane_is_no_stream(tmp_path: Path) -> None:
    hardware = layer("Ascend Hardware", 202, {2: "Stream 2", 9: "Step Trace(Model ID:2)"})
    trace = read(tmp_path, *hardware, kernel(), slice_event("Iteration Time", 202, 9, 0, 50))
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["MatMul"]
    assert names_on(trace, TrackKind.ANNOTATION) == ["Iteration Time"]


@pytest.mark.parametrize(
    ("timestamp", "ns"),
    [
        (f"{EPOCH_US}.001", EPOCH_US * 1000 + 1),
        (f"{EPOCH_US}", EPOCH_US * 1000),
        (EPOCH_US, EPOCH_US * 1000),
        (EPOCH_US + 0.5, EPOCH_US * 1000 + 500),
    ],
)
def test_timestamps_may_be_text_or_numbers_with_or_without_decimals(timestamp: object, ns: int, tmp_path: Path) -> None:
    event = {"name": "k", "pid": 202, "tid": 2, "ts": timestamp, "dur": 1.0009, "ph": "X"}
    trace = read(tmp_path, *DEVICE, event)
    assert trace.metadata.epoch_ns == ns
    assert trace.events.duration_ns.tolist() == [1001]


def test_three_decimals_beyond_float64_are_exact(tmp_path: Path) -> None:
    first = slice_event("a", 202, 2, 0.001, 0.001)
    second = slice_event("b", 202, 2, 0.003, 0.001)
    trace = read(tmp_path, *DEVICE, second, first)
    assert trace.events.start_ns.tolist() == [0, 2]
    assert trace.events.parent.tolist() == [-1, -1]


def test_flow_ids_beyond_64_bits_are_text(tmp_path: Path) -> None:
    ids = ["40004631069296951295", "40004631069296951296", 1736412474725417508, 1736412474725417509]
    events = [slice_event(f"launch{n}", 201, 100, n, 0.5) for n in range(4)]
    events += [slice_event(f"kernel{n}", 202, 2, 10 + n, 0.5) for n in range(4)]
    for number, flow in enumerate(ids):
        common = {"name": "h", "cat": "HostToDevice", "id": flow}
        events.append({**common, "ph": "s", "pid": 201, "tid": 100, "ts": us(number)})
        events.append({**common, "ph": "f", "bp": "e", "pid": 202, "tid": 2, "ts": us(10 + number)})
    trace = read(tmp_path, *CANN, *DEVICE, *events)
    pairs = zip(trace.flows.source.tolist(), trace.flows.target.tolist(), strict=True)
    assert {(trace.name(a), trace.name(b)) for a, b in pairs} == {(f"launch{n}", f"kernel{n}") for n in range(4)}


def test_equal_flow_ids_of_different_categories_do_not_meet(tmp_path: Path) -> None:
    events = [slice_event("op", 100, 100, 0, 5, cat="cpu_op"), slice_event("launch", 201, 100, 1, 2), kernel()]
    for category, pid in (("async_npu", 100), ("HostToDevice", 201)):
        start = us(0 if pid == 100 else 1)
        events.append({"name": "x", "cat": category, "id": 7, "ph": "s", "pid": pid, "tid": 100, "ts": start})
    events.append({"name": "x", "cat": "async_npu", "id": 7, "ph": "f", "bp": "e", "pid": 202, "tid": 2, "ts": us(10)})
    trace = read(tmp_path, *HOST, *CANN, *DEVICE, *events)
    assert trace.strings.texts(trace.flows.kind) == ["async_npu"]
    assert trace.name(int(trace.flows.source[0])) == "op"


def test_one_start_may_have_several_ends_and_an_end_may_come_first(tmp_path: Path) -> None:
    launch = slice_event("launch", 201, 100, 11, 2)
    common = {"name": "h", "cat": "HostToDevice", "id": "9"}
    ends = [{**common, "ph": "f", "bp": "e", "pid": 202, "tid": 2, "ts": us(at)} for at in (10, 20)]
    start = {**common, "ph": "s", "pid": 201, "tid": 100, "ts": us(11)}
    trace = read(tmp_path, *CANN, *DEVICE, launch, kernel("early", 10), kernel("late", 20), *ends, start)
    assert sorted(trace.name(event) for event in trace.flows.target.tolist()) == ["early", "late"]


def test_host_and_device_are_linked_by_connection(tmp_path: Path) -> None:
    launch = slice_event("Node@launch", 201, 100, 0, 2, args={"connection_id": 9})
    lonely = slice_event("EVENT_WAIT", 202, 2, 20, 1, args={"connection_id": 4294967295})
    python = slice_event("aten::mm", 100, 100, 0, 2, cat="cpu_op", args={"Sequence number": 9})
    trace = read(tmp_path, *HOST, *CANN, *DEVICE, launch, kernel(), lonely, python)
    by_name = {trace.name(event): int(trace.events.correlation[event]) for event in range(len(trace.events))}
    assert by_name == {"Node@launch": 9, "MatMul": 9, "EVENT_WAIT": -1, "aten::mm": -1}


def test_the_category_of_a_device_task_is_its_task_type(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel(), slice_event("x", 202, 2, 30, 1, cat="", args={"Task Type": "SDMA"}))
    assert trace.category(0) == "AI_CORE"


def test_arguments_are_read_from_the_file_when_asked(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel())
    assert trace.arguments(0) == TASK
    again = AscendTextReader().argument_decoder(trace.source)
    assert again is not None
    assert again(int(trace.events.args_offset[0])) == TASK


def test_arguments_of_a_file_that_went_away_are_empty(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel())
    (tmp_path / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
    assert trace.arguments(0) == {}


def test_counters_carry_their_unit_and_series_of_one_name_stay_apart(tmp_path: Path) -> None:
    counters = [
        {"name": "HBM 0/Read", "ts": us(5), "pid": 300, "tid": 0, "args": {"Read(MB/s)": 2.5}, "ph": "C"},
        {"name": "HBM 0/Read", "ts": us(1), "pid": 300, "tid": 0, "args": {"Read(MB/s)": 1.5}, "ph": "C"},
        {"name": "read_ost", "ts": us(1), "pid": 300, "tid": 0, "args": {"value": 3, "acc_id": 0}, "ph": "C"},
        {"name": "read_ost", "ts": us(1), "pid": 300, "tid": 0, "args": {"value": 4, "acc_id": 1}, "ph": "C"},
        {"name": "AI Core Freq", "ts": f"{EPOCH_US}", "pid": 300, "tid": 0, "args": {"MHz": 1800}, "ph": "C"},
    ]
    trace = read(tmp_path, *layer("HBM", 300, {}), *DEVICE, slice_event("k", 202, 2, 0, 1), *counters)
    series = {item.name: (item.unit, item.time_ns.tolist(), item.value.tolist()) for item in trace.counters}
    assert series == {
        "HBM 0/Read": ("MB/s", [1000, 5000], [1.5, 2.5]),
        "read_ost (acc 0)": ("", [1000], [3.0]),
        "read_ost (acc 1)": ("", [1000], [4.0]),
        "AI Core Freq": ("MHz", [0], [1800.0]),
    }
    assert {trace.tracks[item.track].kind for item in trace.counters} == {TrackKind.COUNTER}


def test_hit_rates_called_percent_are_fractions(tmp_path: Path) -> None:
    hit = {"name": "LLC 0 Read/Hit Rate", "ts": us(1), "pid": 300, "tid": 0, "args": {"Hit Rate(%)": 0.93}, "ph": "C"}
    trace = read(tmp_path, *layer("LLC", 300, {}), *DEVICE, kernel(), hit)
    assert trace.counters[0].unit == "%"
    assert trace.counters[0].value.tolist() == pytest.approx([93.0])


def test_counters_without_a_number_are_counted(tmp_path: Path) -> None:
    bad = {"name": "HBM 0/Read", "ts": us(5), "pid": 300, "tid": 0, "args": {"Read(MB/s)": "N/A"}, "ph": "C"}
    assert found(read(tmp_path, *DEVICE, kernel(), bad), "unusable-counter") is not None


def test_kernels_and_table_rows_meet_within_one_ns(tmp_path: Path) -> None:
    table = f"{KERNEL_TITLES}\n{kernel_row('MatMul', us(9.999), core='AI_VECTOR_CORE')}\n"
    trace = read(tmp_path, *DEVICE, kernel(), kernel_details=table)
    assert len(trace.events) == len(trace.kernels) == 1
    assert trace.category(0) == "AI_CORE"
    assert trace.strings.text(int(trace.kernels.core_type[0])) == "AI_VECTOR_CORE"
    assert trace.arguments(0)["Task Type"] == "AI_CORE"
    assert trace.arguments(0)["Input Shapes"] == '"8,16;16,4"'


def test_table_rows_the_trace_lacks_are_added_and_counted(tmp_path: Path) -> None:
    rows = "\n".join(
        [kernel_row("MatMul", us(10)), kernel_row("Lost", us(50)), kernel_row("Other", us(60), stream="7")]
    )
    trace = read(tmp_path, *DEVICE, kernel(), kernel_details=f"{KERNEL_TITLES}\n{rows}\n")
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["MatMul", "Lost", "Other"]
    assert [track.name for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM] == ["Stream 2", "Stream 7"]
    notice = found(trace, "kernel-not-in-trace")
    assert notice is not None
    assert (notice.count, notice.severity) == (2, Severity.NOTICE)
    assert len(trace.kernels) == 3


def test_a_table_whose_times_were_rounded_meets_the_trace_by_stream_and_order(tmp_path: Path) -> None:
    rows = "\n".join(kernel_row("MatMul", "1.73641E+15") for _ in range(3))
    events = [kernel("MatMul", at) for at in (10, 20, 30)]
    trace = read(tmp_path, *DEVICE, *events, kernel_details=f"{KERNEL_TITLES}\n{rows}\n")
    assert trace.kernels.event.tolist() == [0, 1, 2]
    assert found(trace, "rounded-times") is not None


def test_equal_kernels_in_the_same_ns_on_two_streams_get_a_row_each(tmp_path: Path) -> None:
    hardware = layer("Ascend Hardware", 202, {2: "Stream 2", 3: "Stream 3"})
    events = [slice_event("MatMul", 202, stream, 10, 4) for stream in (2, 3)]
    rows = "\n".join(kernel_row("MatMul", us(10), stream=stream) for stream in ("3", "2"))
    trace = read(tmp_path, *hardware, *events, kernel_details=f"{KERNEL_TITLES}\n{rows}\n")
    assert sorted(trace.kernels.event.tolist()) == [0, 1]


def test_phases_that_are_not_used_are_counted(tmp_path: Path) -> None:
    odd = {"name": "b", "ph": "B", "pid": 202, "tid": 2, "ts": us(0)}
    mark = {"name": "m", "ph": "i", "pid": 202, "tid": 2, "ts": us(1)}
    unknown = {"name": "process_uptime", "ph": "M", "pid": 202, "tid": 0, "args": {}}
    trace = read(tmp_path, *DEVICE, kernel(), odd, mark, unknown)
    assert found(trace, "unused-phase-B") is not None
    assert found(trace, "unused-metadata") is not None
    assert trace.events.flags.tolist() == [INSTANT, 0]


@pytest.mark.parametrize("ending", ["", ",", ",]", ', {"name": "cut", "ph": "X", "ts": "17364'])
def test_an_array_that_was_not_closed_gives_its_complete_events(ending: str, tmp_path: Path) -> None:
    text = json.dumps([*DEVICE, kernel()])[:-1] + ending
    trace = read_files(tmp_path, {"trace_view.json": text})
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["MatMul"]
    assert len(trace.diagnostics) == 1


def test_unicode_and_control_characters_in_names_are_kept(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel("前向_算子\u0001"))
    assert trace.name(0) == "前向_算子\u0001"


def test_an_empty_trace_beside_a_table_costs_only_itself(tmp_path: Path) -> None:
    table = f"{KERNEL_TITLES}\n{kernel_row('MatMul', us(0))}\n"
    trace = read_files(tmp_path, {"trace_view.json": b"", "kernel_details.csv": table})
    assert names_on(trace, TrackKind.DEVICE_STREAM) == ["MatMul"]
    error = found(trace, "unreadable-file")
    assert error is not None
    assert error.severity is Severity.ERROR


def test_a_broken_trace_alone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match=r"trace_view\.json"):
        read_files(tmp_path, {"trace_view.json": b"\x00\x01"})


def test_one_event_at_zero_does_not_stretch_the_view(tmp_path: Path) -> None:
    zero = {"name": "zero", "pid": 202, "tid": 2, "ts": "0", "dur": 1, "ph": "X"}
    trace = read(tmp_path, *DEVICE, kernel("a", 10), kernel("b", 20), zero)
    assert trace.time_range.duration_ns == 14_000
    assert found(trace, "timestamp-far-outside") is not None


def test_a_slice_without_duration_is_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, *DEVICE, kernel(), {"name": "open", "pid": 202, "tid": 2, "ts": us(0), "ph": "X"})
    assert found(trace, "slice-without-duration") is not None
    assert np.count_nonzero(trace.events.duration_ns == 0) == 1


def test_a_stream_number_no_device_has_is_none(tmp_path: Path) -> None:
    tid = int("9" * 30)
    trace = read(tmp_path, *layer("Ascend Hardware", 7, {tid: "Stream 9"}), slice_event("MatMul", 7, tid, 0, 1))
    assert [track.stream for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM] == [-1]


def test_vllm_ascend_1210_a_trace_without_flows_between_host_and_device_still_opens(tmp_path: Path) -> None:
    """Post-processing failed with "Failed to get acl to npu flow events"; host, device and table were there."""
    node = slice_event("Node@launch", 5, 6, 0, 2)
    trace = read(tmp_path, *layer("CANN", 5, {6: "Thread 6"}, "CPU"), *DEVICE, node, kernel())
    assert (len(trace.events), len(trace.flows)) == (2, 0)
    assert trace.diagnostics == ()
