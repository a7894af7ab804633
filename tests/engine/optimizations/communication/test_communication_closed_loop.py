"""Communication toggles on recorded simulated jobs against the jobs simulated with them."""

from dataclasses import fields, replace

import numpy as np
import pytest

from engine.graph.task_graph import TaskKind
from engine.optimizations.graph_edits import with_column, with_names
from engine.optimizations.interface import Bound, Verdict
from tests.support.toggled_jobs import closed_loop, plan_of, step_ns, toggle

TOLERANCE_RATIO = 0.05
OVERLAP = "communication.overlap_gradients"
CASES = [
    (OVERLAP, "replicas", {}, ()),
    (OVERLAP, "tensors and replicas", {}, ()),
    (OVERLAP, "stages", {}, ()),
    ("communication.overlap_parameters", "replicas", {}, (OVERLAP,)),
    ("communication.overlap_parameters", "tensors and replicas", {}, (OVERLAP,)),
    ("communication.overlap_parameters", "stages", {}, (OVERLAP,)),
    ("communication.overlap_tensor_parallel", "tensors", {}, ()),
    ("communication.overlap_tensor_parallel", "tensors and replicas", {}, ()),
    ("communication.chunking", "tensors", {}, ()),
    ("communication.chunking", "tensors", {"chunks": 2}, ()),
    ("communication.chunking", "tensors and replicas", {"chunks": 8}, ()),
    ("communication.topk_compression", "replicas", {}, ()),
    ("communication.topk_compression", "stages", {"error_feedback": False}, ()),
    ("communication.topk_compression", "tensors and replicas", {}, (OVERLAP,)),
    ("communication.quantized_gradients", "replicas", {}, ()),
    ("communication.quantized_gradients", "replicas", {"bits": 8}, ()),
    ("communication.algorithm", "replicas", {"name": "ring"}, ()),
]


@pytest.mark.parametrize(("identifier", "name", "parameters", "base_on"), CASES)
def test_toggle_on_a_recording_agrees_with_the_simulation(identifier, name, parameters, base_on):
    loop = closed_loop(identifier, name, parameters, base_on)
    assert loop.answer.verdict is Verdict.APPLIES
    assert abs(loop.error_ratio) < TOLERANCE_RATIO
    if identifier != "communication.algorithm":
        assert loop.predicted_ns[Bound.HIGH] <= loop.predicted_ns[Bound.EXPECTED] <= loop.predicted_ns[Bound.LOW]


def test_too_many_chunks_are_slower_on_a_recording_as_in_the_simulation():
    loop = closed_loop("communication.chunking", "tensors", {"chunks": 32})
    assert loop.simulated_ns > loop.base_ns
    assert loop.predicted_ns[Bound.EXPECTED] > loop.base_ns


@pytest.mark.parametrize(
    "identifier",
    ["overlap_gradients", "overlap_parameters", "topk_compression", "quantized_gradients", "chunking",
     "overlap_tensor_parallel"],
)  # fmt: skip
def test_a_job_on_one_device_has_nothing_to_communicate(identifier):
    item = toggle(f"communication.{identifier}")
    assert item.check_capture(plan_of("alone"), item.defaults).verdict is Verdict.NO_EFFECT


@pytest.mark.parametrize("name", ["replicas", "stages", "tensors and replicas"])
def test_overlap_that_is_there_already_is_told(name):
    item = toggle(OVERLAP)
    answer = item.check_capture(plan_of(name, (OVERLAP,)), item.defaults)
    assert answer.verdict in (Verdict.ALREADY_ON, Verdict.NO_EFFECT)


def test_overlap_wins_no_more_than_the_exposed_transfer():
    item, plan = toggle(OVERLAP), plan_of("stages")
    loop = closed_loop(OVERLAP, "stages")
    exchanged = plan.graph.duration_ns[plan.graph.bytes > 1e8].max()
    best = step_ns(item.on_capture(plan, item.defaults, Bound.HIGH))
    assert 0 < step_ns(plan) - best <= exchanged
    assert "waiting for rank" in loop.answer.reason


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        (OVERLAP, "replicas"),
        ("communication.overlap_parameters", "replicas"),
        ("communication.overlap_tensor_parallel", "tensors"),
        ("communication.chunking", "tensors"),
        ("communication.topk_compression", "replicas"),
        ("communication.quantized_gradients", "replicas"),
    ],
)
def test_a_toggle_leaves_the_recorded_tasks_as_they_are(identifier, name):
    item, plan = toggle(identifier), plan_of(name)
    before = {entry.name: getattr(plan.graph, entry.name) for entry in fields(plan.graph)}
    copies = {key: value.copy() for key, value in before.items() if isinstance(value, np.ndarray)}
    item.on_capture(plan, item.defaults, Bound.EXPECTED)
    for key, value in copies.items():
        assert np.array_equal(getattr(plan.graph, key), value)


def test_compression_is_applied_bucket_by_bucket_behind_an_overlap():
    overlap, compress = toggle(OVERLAP), toggle("communication.quantized_gradients")
    plan = overlap.on_capture(plan_of("replicas"), {"bucket_bytes": 50_000_000}, Bound.EXPECTED)
    both = compress.on_capture(plan, compress.defaults, Bound.EXPECTED)
    casts = len(both.graph) - len(plan.graph)
    assert casts > 8  # a cast before and behind every bucket of four ranks
    assert step_ns(both) < step_ns(plan)


@pytest.mark.parametrize("name", ["replicas", "stages", "tensors and replicas"])
@pytest.mark.parametrize("bucket_bytes", [20_000_000, 1 << 40])
def test_buckets_carry_the_bytes_of_the_whole_exchange_and_meet_on_every_rank(name, bucket_bytes):
    item, plan = toggle(OVERLAP), plan_of(name)
    moved = item.on_capture(plan, {"bucket_bytes": bucket_bytes}, Bound.EXPECTED).graph
    graph = plan.graph
    assert moved.bytes[moved.group >= 0].sum() == pytest.approx(graph.bytes[graph.group >= 0].sum())
    sizes = np.bincount(moved.rendezvous[moved.rendezvous >= 0])
    assert set(sizes[sizes > 0].tolist()) <= set(np.bincount(graph.rendezvous[graph.rendezvous >= 0]).tolist())
    assert np.count_nonzero(moved.origin_event >= 0) == np.count_nonzero(graph.origin_event >= 0)


@pytest.mark.parametrize("identifier", ["communication.chunking", "communication.overlap_tensor_parallel"])
def test_products_fused_with_their_transfer_are_not_overlapped_again(identifier):
    item, fused = toggle(identifier), toggle("fusion.matmul_all_reduce")
    plan = fused.on_capture(plan_of("tensors"), fused.defaults, Bound.EXPECTED)
    assert item.check_capture(plan, item.defaults).verdict is Verdict.NO_EFFECT


def test_fused_kernels_of_a_capture_are_told_to_hide_their_transfers():
    item, plan = toggle("communication.chunking"), plan_of("alone")
    graph, (name,) = with_names(plan.graph, ("aclnnMatmulAllReduce_MatmulAllReduceAiCore_MatmulAllReduce",))
    products = np.flatnonzero(graph.kind == TaskKind.CUBE)[:3]
    renamed = replace(plan, graph=with_column(graph, "name", products, int(name)))
    told = item.check_capture(renamed, item.defaults)
    assert told.verdict is Verdict.NO_EFFECT
    assert told.reason.startswith("3 fused kernels (MC2)")


@pytest.mark.parametrize("name", ["replicas", "stages"])
def test_weights_that_are_gathered_beside_the_forward_pass_are_told(name):
    item = toggle("communication.overlap_parameters")
    answer = item.check_capture(plan_of(name, (OVERLAP, item.id)), item.defaults)
    assert answer.verdict in (Verdict.ALREADY_ON, Verdict.NO_EFFECT)
