from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.activity import activities
from engine.analyses.device import device_totals
from engine.analyses.idle import IdleCause, IdleGap, idle_gaps
from engine.analyses.idle.device_gaps import device_gaps
from engine.analyses.idle.host_calls import HostCall, host_call_rows
from engine.analyses.launches import launch_events
from engine.trace import Trace
from engine.trace.tables import MemoryCurve, MemoryLog
from tests.support.opened import opened_trace
from tests.support.trace_rows import Row, trace_from_rows

US = 1_000
BEFORE = Row("npu 2", 0, 100, "before", "AI_CORE", correlation=1)
LAUNCH_BEFORE = Row("cann 2", 0, 1, "Node@launch", correlation=1)


def after(start_us: int = 300) -> Row:
    return Row("npu 2", start_us, start_us + 100, "after", "AI_CORE", correlation=2)


def launch(start_us: float, lane: str = "cann 2") -> Row:
    return Row(lane, start_us, start_us + 4, "late launch", correlation=2)


def only_gap(rows: list[Row], flows: tuple[tuple[int, int, str], ...] = ()) -> tuple[IdleGap, Trace]:
    trace = trace_from_rows([BEFORE, LAUNCH_BEFORE, *rows], [(2 + s, 2 + t, kind) for s, t, kind in flows])
    (gap,) = idle_gaps(trace)
    return gap, trace


def verdict(rows: list[Row], flows: tuple[tuple[int, int, str], ...] = ()) -> tuple[IdleCause, str]:
    gap, trace = only_gap(rows, flows)
    return gap.cause, trace.name(gap.evidence) if gap.evidence >= 0 else ""


def test_a_gap_names_its_bounds_and_the_task_that_ended_it():
    gap, trace = only_gap([after(), launch(250)])
    assert (gap.start_ns, gap.end_ns) == (100 * US, 300 * US)
    assert trace.name(gap.next_event) == "after"


def test_gaps_below_20_us_are_the_devices_normal_switching():
    trace = trace_from_rows([BEFORE, Row("npu 2", 119.999, 130, "after", "AI_CORE")])
    assert idle_gaps(trace) == ()
    assert len(idle_gaps(trace_from_rows([BEFORE, Row("npu 2", 120, 130, "after", "AI_CORE")]))) == 1


def test_copies_and_collectives_end_gaps_and_waits_do_not():
    rows = [
        BEFORE,
        Row("npu 2", 130, 140, "MEMCPY_ASYNC", "SDMA_SQE"),
        Row("npu 2", 140, 299, "EVENT_WAIT", "EVENT_WAIT_SQE"),
        Row("comm 0", 150, 200, "hcom_allReduce__1_0_1"),
        after(),
    ]
    assert [(gap.start_ns // US, gap.end_ns // US) for gap in idle_gaps(trace_from_rows(rows))] == [
        (100, 130),
        (200, 300),
    ]


def test_a_task_launched_after_the_gap_began_was_late_on_the_host():
    assert verdict([after(), launch(250)]) == (IdleCause.HOST_SLOW, "late launch")


def test_a_launch_that_runs_as_the_gap_begins_is_late_too():
    call = Row("cann 2", 98, 180, "late launch", correlation=2)
    assert verdict([after(), call]) == (IdleCause.HOST_SLOW, "late launch")


def test_a_device_clock_behind_the_hosts_does_not_make_the_host_late():
    ahead = [
        Row("npu 2", 20, 21, "early", "AI_CORE", correlation=3),
        Row("cann 2", 60, 61, "Node@launch", correlation=3),
    ]
    assert verdict([after(190), launch(120), *ahead])[0] is IdleCause.DEVICE_SCHEDULING
    assert verdict([after(190), launch(120)])[0] is IdleCause.HOST_SLOW


def test_a_task_launched_before_a_short_gap_waited_for_the_device():
    assert verdict([after(190), launch(50)]) == (IdleCause.DEVICE_SCHEDULING, "late launch")


def test_a_long_gap_that_nothing_explains_is_unknown_and_shows_the_launch():
    assert verdict([after(900), launch(50)]) == (IdleCause.UNKNOWN, "late launch")


def test_a_wait_on_the_stream_makes_it_another_stream():
    wait = Row("npu 2", 100, 890, "EVENT_WAIT", "EVENT_WAIT_SQE")
    assert verdict([after(900), launch(50), wait]) == (IdleCause.OTHER_STREAM, "EVENT_WAIT")


def test_a_wait_on_some_other_stream_explains_nothing():
    wait = Row("npu 3", 100, 890, "EVENT_WAIT", "EVENT_WAIT_SQE")
    assert verdict([after(900), launch(50), wait])[0] is IdleCause.UNKNOWN


def test_a_task_of_another_stream_that_ended_just_before_makes_it_another_stream():
    other = Row("npu 5", 90, 150, "on another stream", "AI_CORE")
    assert verdict([after(190), launch(50), other]) == (IdleCause.OTHER_STREAM, "on another stream")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("AscendCL@opCompile", IdleCause.COMPILATION),
        ("AscendCL@aclrtMallocPhysical", IdleCause.ALLOCATOR),
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", IdleCause.DATA_LOADING),
        ("Python GC", IdleCause.GARBAGE_COLLECTION),
        ("AscendCL@aclrtSynchronizeStreamWithTimeout", IdleCause.HOST_SYNCHRONIZATION),
        ("aten::something", IdleCause.HOST_SLOW),
    ],
)
def test_what_fills_the_time_until_the_launch_is_the_cause(name, cause):
    filler = Row("cann 2", 110, 200, name)
    assert verdict([after(), launch(250), filler])[0] is cause


def test_a_call_that_fills_less_than_half_is_not_the_cause():
    assert verdict([after(), launch(250), Row("cann 2", 110, 170, "AscendCL@aclrtFree")])[0] is IdleCause.HOST_SLOW


def test_many_short_calls_fill_the_time_together():
    calls = [Row("cann 2", 100 + 10 * index, 108 + 10 * index, "cudaMalloc") for index in range(15)]
    assert verdict([after(), launch(250), *calls])[0] is IdleCause.ALLOCATOR


def test_a_synchronising_call_that_ran_as_the_gap_began_is_why_nothing_was_queued():
    call = Row("cann 2", 20, 102, "AscendCL@aclrtSynchronizeDevice")
    assert verdict([after(), launch(250), call]) == (IdleCause.HOST_SYNCHRONIZATION, call.name)


def test_calls_of_threads_that_launch_nothing_are_not_the_cause():
    watchdog = Row("host 9", 0, 400, "cudaStreamSynchronize", "cuda_runtime")
    assert verdict([after(), launch(250), watchdog])[0] is IdleCause.HOST_SLOW


def test_garbage_collection_holds_every_thread():
    collection = Row("host 9", 110, 240, "GC")
    assert verdict([after(), launch(250), collection])[0] is IdleCause.GARBAGE_COLLECTION


def test_a_task_enqueued_in_time_and_dequeued_late_is_the_queues_fault():
    rows = [
        after(),
        launch(252),
        Row("host 1", 60, 70, "Enqueue", "enqueue"),
        Row("host 2", 250, 260, "Dequeue@Mm", "dequeue"),
        Row("host 1", 80, 240, "AscendCL@aclrtSynchronizeDevice"),
    ]
    queued = ((2, 3, "async_task_queue"),)
    assert verdict(rows, queued) == (IdleCause.DEQUEUE_SLOW, "Dequeue@Mm")
    rows[2] = Row("host 1", 120, 130, "Enqueue", "enqueue")
    assert verdict(rows, queued)[0] is IdleCause.HOST_SYNCHRONIZATION


def test_compile_and_execute_is_no_compilation_where_the_compilation_inside_is_short():
    call = Row("cann 2", 110, 249, "AscendCL@aclopCompileAndExecute")
    assert verdict([after(), launch(250), call])[0] is IdleCause.COMPILATION
    inside = Row("cann 2", 112, 120, "AscendCL@opCompile")
    assert verdict([after(), launch(250), call, inside])[0] is IdleCause.HOST_SLOW


def test_blocking_calls_are_told_from_those_that_return_at_once():
    names = {
        HostCall.SYNCHRONIZE: ["cudaStreamSynchronize", "cudaMemcpy", "AscendCL@aclrtMemcpy", "hipDeviceSynchronize"],
        HostCall.ALLOCATE: ["cudaMalloc", "cudaFree", "AscendCL@aclrtMallocPhysical", "cudaHostAlloc", "hipMalloc"],
        HostCall.COMPILE: ["aclopCompile", "cuModuleLoadDataEx", "nvrtcCompileProgram"],
    }
    others = [
        "cudaMemcpyAsync",
        "cudaMallocAsync",
        "cudaFreeAsync",
        "cudaEventQuery",
        "torch/_compile.py(20): inner",
        "GCNConv",
    ]
    listed = [name for group in names.values() for name in group]
    trace = trace_from_rows([Row("host 1", index, index + 1, name) for index, name in enumerate(listed + others)])
    found = {call: [trace.name(row) for row in rows.tolist()] for call, rows in host_call_rows(trace).items()}
    assert found == {call: names.get(call, []) for call in HostCall}


def with_allocator(rows: list[Row], *moments_us: int) -> Trace:
    column = np.array(moments_us, dtype=np.int64) * US
    curve = MemoryCurve("PTA", 0, column, column, column, column)
    trace = trace_from_rows(rows)
    return replace(trace, memory=MemoryLog(trace.memory.allocations, (curve,)))


def test_without_host_rows_the_allocators_clock_shows_the_host_at_work():
    rows = [replace(BEFORE, end_us=3000), after(3300)]
    (gap,) = idle_gaps(with_allocator(rows, 2900, 3150))
    assert gap.cause is IdleCause.HOST_SLOW


def test_an_allocator_silent_while_the_device_worked_shows_a_synchronisation():
    rows = [replace(BEFORE, end_us=3000), after(3300)]
    (gap,) = idle_gaps(with_allocator(rows, 10, 3150))
    assert gap.cause is IdleCause.HOST_SYNCHRONIZATION


def test_without_host_rows_and_allocator_the_cause_is_unknown():
    (gap,) = idle_gaps(trace_from_rows([BEFORE, after()]))
    assert (gap.cause, gap.evidence) == (IdleCause.UNKNOWN, -1)


def test_a_capture_without_device_streams_has_no_gaps():
    rows = [Row("comm 0", 0, 10, "hcom_send__1_0_1"), Row("comm 0", 500, 510, "hcom_send__1_1_1")]
    assert idle_gaps(trace_from_rows(rows)) == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 800), st.integers(0, 60), st.sampled_from([3, 7]), st.integers(-200, 100)),
        min_size=1,
        max_size=20,
    ),
    st.lists(
        st.tuples(st.integers(0, 800), st.integers(0, 200), st.sampled_from(["cudaMalloc", "GC", "x"])), max_size=6
    ),
)
def test_gaps_and_work_tile_the_span(tasks, calls):
    rows = [
        row
        for index, (start, length, stream, lag) in enumerate(tasks)
        for row in (
            Row(f"gpu {stream}", start, start + length, "k", "kernel", correlation=index),
            Row("host 1", start + lag, start + lag + 5, "cudaLaunchKernel", "cuda_runtime", correlation=index),
        )
    ]
    rows += [Row("host 1", start, start + length, name) for start, length, name in calls]
    trace = trace_from_rows(rows)
    found = idle_gaps(trace)
    kinds, launches = activities(trace), launch_events(trace)
    every = device_gaps(trace, kinds, launches, min_gap_ns=1)
    totals = device_totals(trace)
    assert totals is not None
    longest = [(start, end) for start, end in zip(every.start_ns, every.end_ns, strict=True) if end - start >= 20 * US]
    assert [(gap.start_ns, gap.end_ns) for gap in found] == longest
    if all(length for _, length, _, _ in tasks):
        assert int((every.end_ns - every.start_ns).sum()) == totals.idle_ns
    assert all(trace.events.start_ns[gap.next_event] == gap.end_ns for gap in found)


def test_the_qwen_rank_is_host_bound(captures):
    gaps = idle_gaps(opened_trace(captures / "ascend/910b-qwen3-0.6b-pp2dp2/rank_0_ascend_pt"))
    lengths = np.array([gap.end_ns - gap.start_ns for gap in gaps])
    short = lengths < 1_000_000
    assert np.count_nonzero(short) == 1211
    assert lengths[short].sum() == pytest.approx(145.52e6, abs=0.01e6)
    host_ns = lengths[np.array([gap.cause is IdleCause.HOST_SLOW for gap in gaps])].sum()
    assert host_ns / lengths.sum() > 0.9


@pytest.mark.parametrize(("level", "rank", "count"), [(1, 0, 47), (1, 1, 47), (2, 0, 46), (2, 1, 46)])
def test_half_of_the_cnn_gaps_are_the_device_starting_queued_tasks(level, rank, count, captures):
    gaps = idle_gaps(opened_trace(captures / f"ascend/910b-cnn-ddp2-text/level{level}/rank{rank}_ascend_pt"))
    scheduling = [gap.end_ns - gap.start_ns for gap in gaps if gap.cause is IdleCause.DEVICE_SCHEDULING]
    assert len(scheduling) == count
    assert 80 * US < min(scheduling) < max(scheduling) < 120 * US
    assert IdleCause.UNKNOWN not in {gap.cause for gap in gaps}


def test_a_slow_data_loader_is_found_in_the_2021_resnet_trace(captures):
    gaps = idle_gaps(opened_trace(captures / "pytorch/resnet50-schema2021.json.gz"))
    loading = [gap.end_ns - gap.start_ns for gap in gaps if gap.cause is IdleCause.DATA_LOADING]
    assert len(loading) == 5
    assert sum(loading) == pytest.approx(285.2e6, abs=0.1e6)
