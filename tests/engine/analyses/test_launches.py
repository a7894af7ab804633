from engine.analyses.launches import clock_lag_ns, launch_events, operator_events
from engine.trace import Trace
from tests.support.opened import opened_trace
from tests.support.trace_rows import Row, trace_from_rows


def named(trace: Trace, name: str) -> int:
    return [trace.name(event) for event in range(len(trace.events))].index(name)


def launch_of(trace: Trace, task: str) -> str | None:
    row = int(launch_events(trace)[named(trace, task)])
    return None if row < 0 else trace.name(row)


def operator_of(trace: Trace, task: str) -> str | None:
    row = int(operator_events(trace)[named(trace, task)])
    return None if row < 0 else trace.name(row)


def test_equal_correlation_numbers_link_launch_and_tasks():
    trace = trace_from_rows(
        [
            Row("host 1", 0, 9, "aten::mm", "cpu_op"),
            Row("host 1", 2, 4, "cudaGraphLaunch", "cuda_runtime", correlation=5),
            Row("gpu 7", 5, 6, "first node", "kernel", correlation=5),
            Row("gpu 7", 6, 7, "second node", "kernel", correlation=5),
            Row("gpu 7", 8, 9, "of before the window", "kernel", correlation=4),
        ]
    )
    assert launch_of(trace, "first node") == launch_of(trace, "second node") == "cudaGraphLaunch"
    assert operator_of(trace, "second node") == "aten::mm"
    assert launch_of(trace, "of before the window") is None
    assert operator_of(trace, "of before the window") is None


def test_the_innermost_of_several_calls_with_one_number_is_the_launch():
    trace = trace_from_rows(
        [
            Row("cann 1", 0, 9, "AscendCL@aclnnMm", correlation=5),
            Row("cann 1", 2, 4, "Node@launch", correlation=5),
            Row("npu 2", 10, 12, "Mm", "AI_CORE", correlation=5),
        ]
    )
    assert launch_of(trace, "Mm") == "Node@launch"


def test_without_a_cann_layer_the_dequeue_is_the_launch():
    rows = [
        Row("host 1", 0, 10, "aten::mm", "cpu_op"),
        Row("host 1", 1, 9, "Mm on the host", "cpu_op"),
        Row("host 1", 2, 3, "Enqueue", "enqueue"),
        Row("host 2", 20, 24, "Dequeue@Mm", "dequeue"),
        Row("npu 2", 30, 40, "Mm", "AI_CORE"),
    ]
    flows = [(1, 4, "async_npu"), (2, 3, "async_task_queue")]
    assert launch_of(trace_from_rows(rows, flows), "Mm") == "Dequeue@Mm"
    assert operator_of(trace_from_rows(rows, flows), "Mm") == "Mm on the host"
    assert launch_of(trace_from_rows(rows, flows[:1]), "Mm") == "Mm on the host"


def test_a_call_of_the_cann_layer_is_closer_to_the_launch_than_the_operator():
    rows = [
        Row("host 1", 0, 10, "aten::mm", "cpu_op"),
        Row("cann 2", 3, 4, "Node@launch"),
        Row("npu 2", 30, 40, "Mm", "AI_CORE"),
    ]
    trace = trace_from_rows(rows, [(1, 2, "HostToDevice"), (0, 2, "async_npu")])
    assert launch_of(trace, "Mm") == "Node@launch"
    assert operator_of(trace, "Mm") == "aten::mm"


def test_every_kernel_of_the_cnn_captures_has_a_launch_before_it(captures):
    for level in (0, 1, 2):
        trace = opened_trace(captures / "ascend" / f"910b-cnn-ddp2-text/level{level}/rank0_ascend_pt")
        launch, operator = launch_events(trace), operator_events(trace)
        kernels = trace.kernels.event
        assert (launch[kernels] >= 0).all()
        assert (operator[kernels] >= 0).all()
        lag_ns = clock_lag_ns(trace, launch)
        assert lag_ns < 30_000
        assert (trace.events.start_ns[launch[kernels]] <= trace.events.start_ns[kernels] + lag_ns).all()


def test_a_device_clock_behind_the_hosts_shows_in_tasks_that_start_before_their_launch():
    rows = [
        Row("cann 1", 10, 11, "Node@launch", correlation=1),
        Row("cann 1", 20, 21, "Node@launch", correlation=2),
        Row("cann 1", 9000, 9001, "of another process", correlation=3),
        Row("npu 2", 8, 9, "a", correlation=1),
        Row("npu 2", 25, 26, "b", correlation=2),
        Row("npu 2", 30, 31, "c", correlation=3),
    ]
    trace = trace_from_rows(rows)
    assert clock_lag_ns(trace, launch_events(trace)) == 2_000
    trace = trace_from_rows(rows[1:2] + rows[4:5])
    assert clock_lag_ns(trace, launch_events(trace)) == 0
