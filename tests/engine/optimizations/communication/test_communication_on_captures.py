"""Communication, host, precision and layout toggles on real captures: what they say and what they could win."""

from functools import lru_cache
from pathlib import Path

import pytest

from engine.devices.catalogue import load_device
from engine.optimizations.interface import Bound, CapturePlan, Verdict
from engine.replay.job_graph import capture_graph
from tests.support.opened import opened_job
from tests.support.toggled_jobs import step_ns, toggle

QWEN = "ascend/910b-qwen3-0.6b-pp2dp2"
CNN = "ascend/910b-cnn-ddp2-text/level1"
NCCL = "pytorch/nccl_data.json.gz"
INDEX = "pytorch/df_index_resolver.json.gz"
DLRM = "pytorch/dlrm-v100-8ranks"
COMPRESSIONS = ("communication.topk_compression", "communication.quantized_gradients")


@lru_cache(maxsize=8)
def plan_of(path: Path, device: str | None = "910b2") -> CapturePlan:
    capture = capture_graph(opened_job(path))
    return CapturePlan(capture, capture.graph, None if device is None else load_device(device))


def answer(identifier: str, plan: CapturePlan):
    return toggle(identifier).check_capture(plan, toggle(identifier).defaults)


def gain_ns(identifier: str, plan: CapturePlan, bound: Bound = Bound.EXPECTED) -> float:
    item = toggle(identifier)
    return step_ns(plan) - step_ns(item.on_capture(plan, item.defaults, bound))


def test_overlap_on_four_qwen3_ranks_wins_no_more_than_its_transfers(captures: Path):
    plan = plan_of(captures / QWEN)
    told = answer("communication.overlap_gradients", plan)
    assert told.verdict is Verdict.APPLIES
    assert "waiting for rank 3" in told.reason
    gradients = gain_ns("communication.overlap_gradients", plan, Bound.HIGH)
    weights = gain_ns("communication.overlap_parameters", plan, Bound.HIGH)
    assert 25e6 < gradients < 46e6  # two reduce-scatters of 45 ms
    assert 8e6 < weights < 21e6  # two all-gathers of 20.5 ms, of which the embedding is needed at once
    assert gain_ns("communication.overlap_gradients", plan, Bound.LOW) == 0
    assert gradients + weights < 102e6


def test_qwen3_shares_no_tensors_and_is_not_forced_to_an_algorithm(captures: Path):
    plan = plan_of(captures / QWEN)
    for identifier in ("communication.chunking", "communication.overlap_tensor_parallel", "communication.algorithm"):
        assert answer(identifier, plan).verdict is Verdict.NO_EFFECT
    assert answer("precision.mixed", plan).verdict is Verdict.ALREADY_ON
    assert answer("host.streams", plan).verdict is Verdict.ALREADY_ON


def test_qwen3_is_host_bound_and_its_second_stage_computes_longer(captures: Path):
    plan = plan_of(captures / QWEN)
    assert 100e6 < gain_ns("host.graph_mode", plan) < 200e6
    told = answer("parallel.layout", plan)
    assert told.verdict is Verdict.APPLIES
    assert told.reason.startswith("stage 1 computes 400")
    assert 20e6 < gain_ns("parallel.layout", plan) < 85e6
    moved = toggle("parallel.layout").check_capture(plan, {**toggle("parallel.layout").defaults, "tensor": 2})
    assert moved.verdict is Verdict.NEEDS_TWIN


def test_compression_on_qwen3_wins_less_than_the_exchanges_take(captures: Path):
    plan = plan_of(captures / QWEN)
    for identifier in COMPRESSIONS:
        assert answer(identifier, plan).verdict is Verdict.APPLIES
        assert 0 < gain_ns(identifier, plan) < 45e6


@pytest.mark.parametrize("capture", [CNN, NCCL, INDEX])
def test_collectives_whose_peers_are_missing_are_never_scaled_or_moved(captures: Path, capture: str):
    plan = plan_of(captures / capture)
    for identifier in (*COMPRESSIONS, "communication.overlap_gradients"):
        told = answer(identifier, plan)
        assert told.verdict is Verdict.UNKNOWN
        assert "unsplit" in told.reason
        assert "open the peers' captures" in told.reason


def test_eight_ranks_that_overlap_already_are_told_so(captures: Path):
    plan = plan_of(captures / DLRM, None)
    assert answer("communication.overlap_gradients", plan).verdict is Verdict.ALREADY_ON
    for identifier in COMPRESSIONS:
        assert "how many bytes" in answer(identifier, plan).reason


def test_gpus_have_no_task_queue_and_may_capture_graphs(captures: Path):
    plan = plan_of(captures / NCCL, "a100-40g")
    assert answer("host.async_dispatch", plan).verdict is Verdict.NO_EFFECT
    assert answer("host.graph_mode", plan).verdict is Verdict.APPLIES
    assert 0 < gain_ns("host.graph_mode", plan) < step_ns(plan)


def test_products_in_fp32_are_found_where_the_table_tells_types(captures: Path):
    told = answer("precision.mixed", plan_of(captures / CNN))
    assert told.verdict is Verdict.APPLIES
    assert told.reason.startswith("38 of 46 products multiply fp32")
    assert gain_ns("precision.mixed", plan_of(captures / CNN)) >= 0
    assert answer("precision.mixed", plan_of(captures / NCCL)).verdict is Verdict.UNKNOWN
