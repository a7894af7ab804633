import json

import pytest

from engine.analyses.steps import steps
from engine.core.errors import EmptyTraceError
from engine.formats import open_job
from engine.formats.kineto.reader import KinetoReader
from engine.formats.readers import built_in_readers
from engine.trace import TrackKind
from engine.trace.tables import UNFINISHED
from tests.support.hostile_files import codes, event, kineto, read_kineto, slices, write, write_gzip


def op(name="aten::mm", ts="1", dur="5", cat="cpu_op", pid="100", tid="100", args=None, **more):
    return event(name, ts, dur, pid=pid, tid=tid, cat=f'"{cat}"', args=args, **more)


def kernel(
    name="gemm", ts="1", dur="5", pid="0", tid="7", args='{"stream":7,"device":0,"correlation":3}', cat="kernel"
):
    return op(name, ts, dur, cat, pid, tid, args)


def memory(ts, address, size, total, *, device_type=1, device=0, tid="100"):
    place = f'"Device Type":{device_type},"Device Id":{device},"Addr":{address}'
    args = f'{{{place},"Bytes":{size},"Total Allocated":{total},"Total Reserved":900}}'
    return event("[memory]", str(ts), None, "i", pid="100", tid=tid, cat='"cpu_instant_event"', args=args)


def read(directory, *events, head='"schemaVersion":1,"deviceProperties":[]', name="fault.json"):
    return read_kineto(write(directory, kineto(*events, head=head), name))


def track_of(trace, name):
    row = next(row for row in range(len(trace.events)) if trace.name(row) == name)
    return trace.tracks[int(trace.events.track[row])]


def test_host_threads_device_streams_and_annotations_get_tracks_of_their_kind(tmp_path):
    trace = read(
        tmp_path,
        op(),
        kernel(),
        kernel("copy", cat="gpu_memcpy", args='{"stream":20}', tid="20"),
        kernel("ProfilerStep#1", cat="gpu_user_annotation", args="{}"),
        event("PyTorch Profiler (0)", pid='"Spans"', tid='"PyTorch Profiler"', cat='"Trace"'),
    )
    kinds = {name: track_of(trace, name) for name in ("aten::mm", "gemm", "copy", "ProfilerStep#1")}
    assert [(track.kind, track.device, track.stream) for track in kinds.values()] == [
        (TrackKind.HOST_THREAD, -1, -1),
        (TrackKind.DEVICE_STREAM, 0, 7),
        (TrackKind.DEVICE_STREAM, 0, 20),
        (TrackKind.ANNOTATION, 0, 7),
    ]
    assert track_of(trace, "PyTorch Profiler (0)").kind is TrackKind.ANNOTATION
    assert all(trace.tracks[track.parent].kind is TrackKind.PROCESS for track in trace.tracks if track.parent >= 0)


def test_a_small_host_pid_that_equals_a_device_number_is_no_device(tmp_path):
    trace = read(
        tmp_path,
        op("frame", cat="python_function", pid="0", tid="0"),
        kernel(pid="0", tid="0", args='{"stream":0,"device":0}'),
    )
    assert track_of(trace, "frame").kind is TrackKind.HOST_THREAD
    device = track_of(trace, "gemm")
    assert (device.kind, device.stream) == (TrackKind.DEVICE_STREAM, 0)


def test_schema_2021_has_capital_categories_and_streams_in_words(tmp_path):
    trace = read(
        tmp_path,
        op("aten::empty", cat="Operator", tid='"100"'),
        op("cudaLaunchKernel", cat="Runtime", ts="7", args='{"correlation":5,"external id":1}'),
        kernel(cat="Kernel", ts="20", tid='"stream 7"', args='{"device":0,"stream":7,"correlation":5}'),
        event("launch", "7", None, "s", pid="100", tid="100", id="5", cat='"async"'),
        event("launch", "20", None, "f", pid="0", tid='"stream 7"', id="5", cat='"async"', bp='"e"'),
    )
    assert (track_of(trace, "gemm").stream, track_of(trace, "gemm").name) == (7, "stream 7")
    assert len(trace.flows) == 1
    assert trace.name(int(trace.flows.source[0])) == "cudaLaunchKernel"
    assert {trace.events.correlation[row] for row in (1, 2)} == {5}


def test_a_context_synchronisation_stands_on_a_row_without_stream(tmp_path):
    trace = read(tmp_path, kernel("Context Sync", cat="cuda_sync", tid="-1", args='{"stream":-1,"device":0}'))
    assert (track_of(trace, "Context Sync").kind, track_of(trace, "Context Sync").stream) == (
        TrackKind.DEVICE_STREAM,
        -1,
    )


@pytest.mark.parametrize(
    ("ts", "base", "epoch_ns", "start_ns"),
    [
        ("1669783687464181", "", 1669783687464181000, 1000),
        ("1712195495519689.047", "", 1712195495519689047, 1000),
        ("5000000000000.123", '"baseTimeNanoseconds":1716408916000000000,', 1721408916000000123, 1000),
    ],
)
def test_the_three_eras_of_timestamps_give_unix_time(tmp_path, ts, base, epoch_ns, start_ns):
    whole, _, rest = ts.partition(".")
    later = f"{int(whole) + 1}" + (f".{rest}" if rest else "")
    trace = read(tmp_path, op("a", ts=ts), op("b", ts=later), head=base + '"schemaVersion":1')
    assert trace.metadata.epoch_ns == epoch_ns
    assert slices(trace)["b"][0] == start_ns


def test_a_relative_clock_without_a_base_is_no_unix_time(tmp_path):
    assert read(tmp_path, op(ts="12.5")).metadata.epoch_ns is None


def test_pytorch_853_epoch_microseconds_from_a_double_still_nest(tmp_path):
    trace = read(
        tmp_path, op("parent", ts="1712195495519689.047", dur="10"), op("child", ts="1712195495519690.250", dur="9")
    )
    assert trace.events.parent.tolist() == [-1, 0]
    assert slices(trace)["child"] == (1203, 9000)


def test_zero_durations_unsorted_events_and_broken_frames_are_kept_as_they_are(tmp_path):
    trace = read(
        tmp_path,
        op("late", ts="50", dur="0"),
        op("frame", ts="0", dur="10", cat="python_function"),
        op("cut", ts="5", dur="90", cat="python_function"),
    )
    assert slices(trace) == {"late": (50_000, 0), "frame": (0, 10_000), "cut": (5_000, 90_000)}
    assert codes(trace) == {}


def test_kernels_that_overlap_on_one_stream_are_both_kept(tmp_path):
    trace = read(tmp_path, kernel("a", ts="0", dur="5.7"), kernel("b", ts="2", dur="9"))
    assert slices(trace) == {"a": (0, 5700), "b": (2000, 9000)}
    assert trace.events.depth.tolist() == [0, 1]


def test_one_graph_launch_has_many_kernels(tmp_path):
    launch = op("hipGraphLaunch", ts="1", cat="cuda_runtime", args='{"correlation":9}')
    kernels = [
        kernel(f"k{index}", ts=str(10 + index), dur="1", args='{"stream":0,"correlation":9}') for index in range(3)
    ]
    trace = read(tmp_path, launch, *kernels)
    assert trace.events.correlation.tolist() == [9, 9, 9, 9]


def test_orphan_launch_arrows_are_counted_not_drawn(tmp_path):
    trace = read(
        tmp_path,
        op("cudaMalloc", cat="cuda_runtime", args='{"correlation":4}'),
        event("ac2g", "1", None, "f", pid="100", tid="100", id="4", cat='"ac2g"', bp='"e"'),
    )
    assert len(trace.flows) == 0
    assert codes(trace) == {"flow-without-start": 1}


def test_forward_arrows_bind_to_operators_and_launch_arrows_to_runtime_calls_of_the_same_time(tmp_path):
    trace = read(
        tmp_path,
        op("forward", ts="1", dur="9"),
        op("cudaLaunchKernel", ts="1", dur="2", cat="cuda_runtime", args='{"correlation":3}'),
        op("frame", ts="1", dur="1", cat="python_function"),
        op("backward", ts="50", tid="101"),
        kernel(ts="60"),
        event("fwdbwd", "1", None, "s", pid="100", tid="100", id="1", cat='"fwdbwd"'),
        event("fwdbwd", "50", None, "f", pid="100", tid="101", id="1", cat='"fwdbwd"', bp='"e"'),
        event("ac2g", "1", None, "s", pid="100", tid="100", id="1", cat='"ac2g"'),
        event("ac2g", "60", None, "f", pid="0", tid="7", id="1", cat='"ac2g"', bp='"e"'),
    )
    arrows = {
        (trace.name(source), trace.name(target))
        for source, target in zip(trace.flows.source.tolist(), trace.flows.target.tolist(), strict=True)
    }
    assert arrows == {("forward", "backward"), ("cudaLaunchKernel", "gemm")}


def test_memory_events_are_paired_by_address_and_know_their_operator(tmp_path):
    trace = read(
        tmp_path,
        op("aten::empty", ts="0", dur="10"),
        memory(2, 4096, 512, 1512),
        memory(30, 4096, -512, 1000),
        memory(40, 8192, 1024, 2024),
        memory(50, 777, -100, 1924),
    )
    table = trace.memory.allocations
    rows = sorted(
        zip(
            table.address.tolist(),
            table.size_bytes.tolist(),
            table.allocated_at_ns.tolist(),
            table.freed_at_ns.tolist(),
            trace.strings.texts(table.operator),
            strict=True,
        )
    )
    assert rows == [(777, 100, -1, 50_000, ""), (4096, 512, 2000, 30_000, "aten::empty"), (8192, 1024, 40_000, -1, "")]
    (curve,) = trace.memory.curves
    assert (curve.component, curve.device) == ("PTA", 0)
    assert curve.time_ns.tolist() == [2000, 30_000, 40_000, 50_000]
    assert curve.allocated_bytes.tolist() == [1512, 1000, 2024, 1924]
    assert curve.reserved_bytes.tolist() == [900] * 4
    assert codes(trace) == {"memory-older-than-capture": 1}
    assert len(trace.events) == 1


def test_an_address_handed_out_again_without_a_free_was_free_by_then(tmp_path):
    trace = read(tmp_path, op(), memory(2, 4096, 512, 512), memory(9, 4096, 256, 256))
    table = trace.memory.allocations
    assert table.freed_at_ns.tolist() == [8000, -1]
    assert codes(trace) == {"memory-free-not-recorded": 1}


def test_host_and_npu_memory_get_curves_of_their_own(tmp_path):
    trace = read(tmp_path, memory(1, 1, 1, 1, device_type=0, device=-1), memory(2, 1, 5, 5, device_type=20, device=3))
    assert [(curve.device, curve.allocated_bytes.tolist()) for curve in trace.memory.curves] == [(-1, [1]), (3, [5])]
    assert trace.memory.allocations.device.tolist() == [-1, 3]


def test_memory_events_without_totals_give_the_change_and_say_so(tmp_path):
    place = '"Device Type":1,"Device Id":0'
    events = [
        event("[memory]", str(ts), None, "i", args=f'{{{place},"Bytes":{size}}}')
        for ts, size in ((1, -64), (2, 512), (3, -512))
    ]
    trace = read(tmp_path, op(), *events)
    (curve,) = trace.memory.curves
    assert (curve.component, curve.allocated_bytes.tolist()) == ("PTA net change", [0, 512, 0])
    assert codes(trace) == {"memory-without-totals": 3}
    assert len(trace.memory.allocations) == 0


def test_nccl_arguments_give_payload_and_group(tmp_path):
    sizes = '"dtype":"BFloat16","In msg nelems":100,"Out msg nelems":800'
    args = f'{{"stream":40,"Collective name":"allreduce",{sizes},"Process Group Name":"tp"}}'
    trace = read(
        tmp_path,
        kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", args=args, tid="40"),
        kernel("ncclKernel_Broadcast", ts="9", args='{"stream":40}', tid="40"),
        op("record_param_comms", args=args),
    )
    table = trace.collectives
    assert len(table) == 1
    assert trace.name(int(table.event[0])).startswith("ncclDevKernel_AllReduce")
    assert trace.strings.texts(table.group) == ["tp"]
    assert (table.bytes.tolist(), table.elapsed_ns.tolist()) == ([1600], [5000])


def test_a_payload_of_an_unknown_element_type_is_absent(tmp_path):
    args = '{"Collective name":"send","dtype":"Mystery","In msg nelems":100}'
    assert read(tmp_path, kernel("ncclKernel_SendRecv", args=args)).collectives.bytes.tolist() == [-1]


def test_an_operator_still_open_when_the_profiler_stopped_is_marked(tmp_path):
    trace = read(tmp_path, op("open", args='{"finished":false}'), op("closed", ts="20", args='{"finished":true}'))
    assert trace.events.flags.tolist() == [UNFINISHED, 0]


def test_metadata_after_the_events_and_ranks_as_text_are_read(tmp_path):
    group = '{"pg_name":"0","pg_desc":"default_pg","pg_size":2,"ranks":"[0, 1]"}'
    info = f'"distributedInfo":{{"rank":1,"world_size":2,"nccl_version":"2.17.1","pg_config":[{group}]}}'
    device = '"deviceProperties":[{"id":0,"name":"GPU","totalGlobalMem":1024}]'
    text = '{"schemaVersion":1,"traceEvents":[' + kernel() + f'],{device},{info},"host_name":"vm","k":[1]}}'
    metadata = read_kineto(write(tmp_path, text)).metadata
    assert (metadata.rank, metadata.world_size, metadata.host) == (1, 2, "vm")
    assert (metadata.device, metadata.device_memory_bytes, metadata.device_count) == ("GPU", 1024, 1)
    assert [(group.id, group.name, group.ranks) for group in metadata.parallel_groups] == [("0", "default_pg", (0, 1))]
    assert metadata.software == {"nccl_version": "2.17.1"}
    assert metadata.extra["k"] == [1]


def test_a_missing_rank_comes_from_the_file_name_with_a_notice(tmp_path):
    trace = read(tmp_path, op(), name="worker3_step_12.169.pt.trace.json")
    assert trace.metadata.rank == 3
    assert codes(trace) == {"rank-from-file-name": 1}
    assert read(tmp_path, op(), name="trace.json").metadata.rank is None


def test_counters_of_a_device_stand_under_it(tmp_path):
    trace = read(
        tmp_path,
        kernel(),
        event("occupancy", "2", None, "C", pid="0", tid="0", args='{"value":0.5}'),
        head='"schemaVersion":1,"baseTimeNanoseconds":1716408916000000000',
    )
    (series,) = trace.counters
    assert series.time_ns.tolist() == [1000]
    assert trace.tracks[trace.tracks[series.track].parent].device == 0


def test_a_killed_run_gives_its_complete_events(tmp_path):
    text = kineto(op("a"), op("b"))
    trace = read_kineto(write(tmp_path, text[: text.rindex('"ph"')], "trace.json.tmp"))
    assert slices(trace) == {"a": (0, 5000)}
    assert codes(trace) == {"truncated-array": 1}


def test_kineto_file_is_found_by_content_and_gzip_by_its_first_bytes(tmp_path):
    reader = KinetoReader()
    write_gzip(tmp_path, kineto(op()), "packed.json")
    write(tmp_path, kineto(op()), "plain.json.gz")
    write(tmp_path, '{"traceEvents":[' + op(args='{"External id":3}') + "]}", "old.json")
    write(tmp_path, '{"traceEvents":[' + event() + "]}", "chrome.json")
    write(tmp_path, "[" + op(args='{"Sequence number":3}') + "]", "trace_view.json")
    write(tmp_path, '{"schema":"1.1.1","pid":1,"nodes":[{"id":1,"name":"x"}]}', "rank0_et.json")
    write(tmp_path, '{"schemaVersion":1,"deviceProperties":[]}', "no_events.json")
    assert [capture.root.name for capture in reader.find(tmp_path)] == ["old.json", "packed.json", "plain.json.gz"]
    assert reader.find(tmp_path / "missing.json") == ()


def test_long_metadata_before_the_events_does_not_hide_them(tmp_path):
    path = tmp_path / "long.json"
    lines = json.dumps(["x" * 100] * 2000)
    path.write_text('{"schemaVersion":1,"INFO":' + lines + ',"traceEvents":[' + op() + "]}", encoding="utf-8")
    (capture,) = KinetoReader().find(path)
    assert (
        len(KinetoReader().read(capture, __import__("engine.formats.reader").formats.reader.ReadContext()).events) == 1
    )


def test_a_trace_without_events_says_so(tmp_path):
    with pytest.raises(EmptyTraceError, match="no event"):
        read(tmp_path)


@pytest.mark.parametrize("number", ["1000000000000", "-1", "1.5", '"x"', "[1]", "null", "9" * 400])
def test_a_number_no_job_has_is_no_rank_and_no_world_size(tmp_path, number):
    group = f'{{"pg_name":"0","pg_size":{number},"ranks":[0,{number[:40]},1]}}' if len(number) < 40 else ""
    info = f'"distributedInfo":{{"rank":{number},"world_size":{number},"pg_config":[{group}]}}'
    metadata = read_kineto(write(tmp_path, '{"schemaVersion":1,' + info + ',"traceEvents":[' + op() + "]}")).metadata
    assert (metadata.rank, metadata.world_size) == (None, None)
    assert [group.ranks for group in metadata.parallel_groups] in ([(0, 1)], [])


def test_a_device_annotation_a_few_ns_wider_than_its_kernels_holds_them(tmp_path):
    step = kernel("ProfilerStep#3", ts="9.999", dur="5.003", cat="gpu_user_annotation", args="{}")
    trace = read(tmp_path, step, kernel("gemm", ts="10", dur="5"))
    assert slices(trace) == {"ProfilerStep#3": (0, 5003), "gemm": (1, 5000)}
    assert track_of(trace, "gemm") is not track_of(trace, "ProfilerStep#3")


def test_stream_zero_is_a_stream_and_minus_one_is_none(tmp_path):
    trace = read(
        tmp_path,
        kernel("default", tid="0", args='{"stream":0,"correlation":1}'),
        kernel("sync", tid="-1", cat="cuda_sync", args='{"stream":-1,"correlation":2}'),
    )
    assert [track_of(trace, name).stream for name in ("default", "sync")] == [0, -1]


def test_a_temporary_file_of_a_killed_run_opens(tmp_path):
    text = kineto(op("kept"), op("lost"))
    path = write(tmp_path, text[: text.index("lost") + 2], "worker.pt.trace.json.tmp")
    (entry,) = open_job([path], built_in_readers()).ranks
    trace = entry.trace
    assert (len(trace.events), codes(trace)) == (1, {"truncated-array": 1})


def test_steps_of_one_name_on_two_ranks_and_on_the_device_stay_apart(tmp_path):
    rows = [
        op("ProfilerStep#3", ts="0", dur="50", cat="user_annotation"),
        kernel("ProfilerStep#3", ts="20", dur="20", cat="gpu_user_annotation", args="{}"),
        op("cudaLaunchKernel", ts="1", dur="2", cat="cuda_runtime", args='{"correlation":3}'),
        kernel("gemm", ts="20", dur="20"),
    ]
    for rank in range(2):
        head = f'"schemaVersion":1,"deviceProperties":[],"distributedInfo":{{"rank":{rank}}}'
        write(tmp_path, kineto(*rows, head=head), f"{rank}.json")
    job = open_job([tmp_path], built_in_readers())
    assert [entry.rank for entry in job.ranks] == [0, 1]
    assert [[step.step for step in steps(entry.trace)] for entry in job.ranks] == [[3], [3]]


def test_metadata_events_may_outnumber_all_others(tmp_path):
    names = [event("thread_name", ts="0", dur=None, ph="M", tid=str(tid), args='{"name":"t"}') for tid in range(9)]
    trace = read(tmp_path, *names, kernel())
    assert len(trace.events) == 1
    assert codes(trace) == {}
