"""Inputs on which other tools computed wrong overlap, each a file under 1 KB named after the fault."""

import json
from pathlib import Path

import pytest

from engine.analyses.device import DeviceTotals, device_totals
from engine.analyses.operators import operator_statistics
from engine.analyses.steps import steps
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.trace import TimeRange, Trace

US = 1_000


def gpu(
    name: str, ts_us: float, dur_us: float, stream: int = 7, category: str = "kernel", correlation: int = 1
) -> dict:
    args = {"stream": stream, "device": 0, "correlation": correlation}
    return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": ts_us, "dur": dur_us, "args": args}


def opened(path: Path, *events: dict) -> Trace:
    text = json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events})
    assert len(text) < 1024
    path.write_text(text)
    (entry,) = open_job([path], built_in_readers()).ranks
    assert entry.trace.source.format == "kineto"
    return entry.trace


def totals_of(trace: Trace, window: TimeRange | None = None) -> DeviceTotals:
    totals = device_totals(trace, window)
    assert totals is not None
    return totals


def test_b3_1_waits_are_not_computing(tmp_path):
    """HTA PR#162: synchronisation rows counted as computing, so overlap came out far too high."""
    trace = opened(
        tmp_path / "B3.1-waits-counted-as-computing.json",
        gpu("gemm", 0, 10),
        gpu("ncclDevKernel_AllReduce", 8, 90, stream=20),
        gpu("Stream Wait Event", 10, 85, category="cuda_sync"),
        gpu("Stream Sync", 10, 88, category="cuda_sync"),
    )
    totals = totals_of(trace)
    assert (totals.compute_ns, totals.overlap_ns) == (10 * US, 2 * US)
    assert totals.overlap_ratio == pytest.approx(2 / 90)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "nccldevkernel_allreduce",
        "hcom_allReduce__271_0_1",
        "HcclAllreduce",
        "allreduceAicpuKernel",
        "MatmulAllReduce",
        "MoeDistributeDispatch",
    ],
)
def test_b3_2_communication_is_recognised_by_every_librarys_names(name, tmp_path):
    """HTA#208, PR#109, #247: not recognised, then 0/0 = NaN."""
    totals = totals_of(opened(tmp_path / "B3.2-names.json", gpu("gemm", 0, 10), gpu(name, 5, 20, stream=20)))
    assert (totals.communication_ns, totals.overlap_ratio) == (20 * US, pytest.approx(0.25))


def test_b3_2_no_communication_has_no_ratio(tmp_path):
    trace = opened(tmp_path / "B3.2-no-communication.json", gpu("gemm", 0, 10))
    assert totals_of(trace).overlap_ratio is None
    (step,) = steps(trace)
    assert (step.communication_ns, step.overlapped_ns) == (0, 0)


def test_b3_3_a_tenth_of_communication_is_a_tenth(tmp_path):
    """HTA#241: a share of 10 % was reported as 0.2 %: durations of parallel streams were added up."""
    trace = opened(
        tmp_path / "B3.3-share-of-communication.json",
        gpu("gemm", 0, 90, stream=7),
        gpu("gemm", 0, 90, stream=8),
        gpu("gemm", 0, 90, stream=9),
        gpu("ncclKernel_AllGather", 90, 10, stream=20),
    )
    totals = totals_of(trace)
    assert totals.communication_ns / totals.span_ns == pytest.approx(0.1)
    assert totals.communication_ns / totals.busy_ns == pytest.approx(0.1)


def test_b3_8_shares_of_a_selected_range_add_up_to_at_most_the_range(tmp_path):
    """A viewer added Communication and Communication(Not Overlapped) and showed more than 100 %."""
    trace = opened(
        tmp_path / "B3.8-selection.json",
        gpu("gemm", 0, 40, stream=7),
        gpu("relu", 10, 40, stream=8),
        gpu("ncclKernel_AllReduce", 20, 60, stream=20),
    )
    window = TimeRange(5 * US, 60 * US)
    totals = totals_of(trace, window)
    exclusive_ns = totals.compute_ns + totals.exposed_communication_ns + totals.idle_ns
    assert exclusive_ns == window.duration_ns
    assert max(totals.compute_ns, totals.communication_ns, totals.busy_ns) <= window.duration_ns
    assert sum(item.share_ratio for item in operator_statistics(trace, window)) == pytest.approx(1)
