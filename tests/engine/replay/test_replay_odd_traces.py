"""Traces that hold together badly are replayed all the same."""

import json
from pathlib import Path

import numpy as np
import pytest

from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.graph.task_graph import TaskKind
from engine.replay.replay_quality import ReplayQuality, replay_quality


def call(ts: float, dur: float, correlation: int = 1, name: str = "cudaLaunchKernel", thread: int = 1) -> dict:
    place = {"ph": "X", "cat": "cuda_runtime", "pid": 1, "tid": thread}
    return place | {"name": name, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


def kernel(ts: float, dur: float, correlation: int = 1, name: str = "gemm", stream: int = 7) -> dict:
    place = {"ph": "X", "cat": "kernel", "pid": 0, "tid": stream}
    args = {"stream": stream, "correlation": correlation, "device": 0}
    return place | {"name": name, "ts": ts, "dur": dur, "args": args}


def replayed(folder: Path, events: list[dict]) -> ReplayQuality:
    path = folder / "odd.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    return replay_quality(open_job([path], built_in_readers()))


@pytest.mark.parametrize(
    "events",
    [
        [kernel(10, 5)],
        [call(100, 2), kernel(10, 5)],
        [call(100_000, 2), kernel(10, 5)],
        [kernel(10, 50, correlation=number) for number in range(200)],
        [kernel(0, 100), kernel(10, 10, 2), kernel(30, 10, 3)],
        [kernel(0, 1, 9), call(1.6e15, 2), kernel(1.6e15 + 10, 5)],
        [call(1, 2), kernel(10, 9e12)],
        [call(-100, 2), kernel(-10, 5), call(1, 2, 2), kernel(5, 5, 2)],
        [call(1, 2), call(3, 2), kernel(10, 5), kernel(20, 5), kernel(22, 1, stream=8)],
    ],
    ids=["alone", "late launch", "wrong launch", "all at once", "nested", "stray", "endless", "below zero", "twice"],
)
def test_odd_times_replay_as_they_were(tmp_path: Path, events: list[dict]) -> None:
    quality = replayed(tmp_path, events)
    assert quality.unchanged.schedule.is_complete
    assert quality.unchanged.error_ratio == pytest.approx(0.0, abs=1e-9)


def test_a_copy_the_host_waits_for_is_no_host_time(tmp_path: Path) -> None:
    copy = kernel(30, 20, 2, "Memcpy DtoH (Device -> Pageable)") | {"cat": "gpu_memcpy"}
    events = [call(0, 2), kernel(2, 28), call(3, 60, 2, "cudaMemcpyAsync"), copy, call(70, 2, 3), kernel(73, 5, 3)]
    graph = replayed(tmp_path, events).capture.graph
    (wait,) = np.flatnonzero(graph.kind == TaskKind.SYNCHRONIZE).tolist()
    assert [graph.operator(task) for task in graph.predecessors_of(wait).tolist()] == [copy["name"]]
    # The call returned 13 µs after the copy ended; the next task starts 1 µs after its launch, as the chain counts.
    assert graph.duration_ns[wait] == 14_000
    assert graph.duration_ns[graph.kind == TaskKind.HOST].sum() < 20_000


def test_a_zero_length_task_has_no_error(tmp_path: Path) -> None:
    assert replayed(tmp_path, [kernel(10, 0)]).unchanged.error_ratio is None


@pytest.mark.parametrize("seed", range(6))
def test_random_traces_can_be_run(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    calls = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch", "cudaStreamSynchronize", "cudaStreamWaitEvent"]
    kernels = ["gemm", "add", "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "Memcpy DtoH (Device -> Pageable)"]
    events = []
    for number in range(60):
        begin = int(random.integers(0, 300))
        events.append(call(begin, int(random.integers(0, 20)), number, str(random.choice(calls)), number % 2 + 1))
        for _ in range(int(random.integers(0, 3))):
            start, length = begin + int(random.integers(-20, 200)), int(random.integers(0, 40))
            events.append(kernel(start, length, number, str(random.choice(kernels)), int(random.integers(7, 10))))
    quality = replayed(tmp_path, events)
    assert quality.unchanged.schedule.is_complete
    assert quality.unchanged.error_ratio == pytest.approx(0.0, abs=0.1)
