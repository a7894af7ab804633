"""Steps operator by operator: they must take exactly as long as the same steps in three tasks per block."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.graph.task_graph import Stream, TaskGraph
from engine.runtime.scheduler import Schedule
from engine.trace.intervals import difference, union
from engine.workloads.block_times import Contention
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate
from tests.support.scheduled_steps import ALONE, scheduled_steps, step_times_ns

MODEL = {"layers": 4, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 32000}
FUSED = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}
OVERLAPS = {f"communication.overlap_{what}": {} for what in ("gradients", "parameters", "tensor_parallel")}

JOBS: dict[str, dict[str, Any]] = {
    "one device": {},
    "host-bound": {"batch": {"sequence_length": 64}},
    "pipeline": {"device": {"count": 4}, "parallel": {"pipeline": 4}},
    "gpipe": {"device": {"count": 2}, "parallel": {"pipeline": 2, "schedule": "gpipe"}},
    "interleaved": {"device": {"count": 4}, "parallel": {"pipeline": 2, "virtual_pipeline": 2, "tensor": 2}},
    "overlaps": {"device": {"count": 8}, "parallel": {"tensor": 4}, "optimizations": {**FUSED, **OVERLAPS}},
    "chunks": {
        "device": {"count": 8},
        "parallel": {"tensor": 4},
        "optimizations": {**FUSED, "communication.chunking": {"chunks": 3}},
    },
    "compression": {
        "device": {"count": 8},
        "parallel": {"pipeline": 2},
        "optimizations": {**FUSED, **OVERLAPS, "communication.topk_compression": {}},
    },
    "buckets": {
        "device": {"count": 4},
        "optimizations": {
            **FUSED,
            "communication.overlap_gradients": {"bucket_bytes": 20_000_000},
            "communication.quantized_gradients": {"bits": 8},
        },
    },
    "one queue": {
        "device": {"count": 8},
        "parallel": {"tensor": 2, "pipeline": 2},
        "optimizations": {**FUSED, **OVERLAPS, "host.streams": {"count": 1}},
    },
    "one queue for all": {
        "device": {"count": 8, "per_node": 2},
        "parallel": {"tensor": 2},
        "optimizations": {**FUSED, "communication.overlap_gradients": {}, "host.streams": {"count": 1}},
    },
    "recompute": {"memory": {"recompute": "full"}},
    "unfused": {"optimizations": {}},
    "tiers": {"memory": {"tiering": {"cold": ["optimizer_state"], "prefetch_distance": 3}}},
    "tiers and stages": {
        "device": {"count": 8},
        "parallel": {"pipeline": 2, "tensor": 2},
        "memory": {"tiering": {"cold": ["optimizer_state"]}},
        "optimizations": {**FUSED, **OVERLAPS},
    },
    "offload": {"optimizations": {**FUSED, "memory.offload": {"prefetch_distance": 1}}},
    "offload and stages": {
        "device": {"count": 2},
        "parallel": {"pipeline": 2},
        "optimizations": {
            "memory.offload": {"prefetch_distance": 2},
            "memory.recompute": {"granularity": "activation"},
        },
    },
    "graphs": {
        "device": {"count": 4},
        "parallel": {"tensor": 2, "pipeline": 2},
        "batch": {"sequence_length": 128},
        "optimizations": {**FUSED, "host.graph_mode": {}},
    },
    "one thread": {"batch": {"sequence_length": 64}, "optimizations": {"host.async_dispatch": {"level": 0}}},
    "eight bits": {
        "device": {"count": 4},
        "parallel": {"tensor": 4},
        "optimizations": {**FUSED, **OVERLAPS, "precision.quantized_training": {}, "fusion.add_norm": {}},
    },
    "upkeep": {
        "optimizations": {
            **FUSED,
            "memory.periodic_check": {"every_steps": 1},
            "memory.restart": {"every_steps": 1, "cost_s": 0.5},
        }
    },
    "experts": {
        "model": {**MODEL, "ffn": 512, "experts": 4, "top_k": 2},
        "device": {"count": 4},
        "parallel": {"expert": 2},
        "batch": {"sequence_length": 512},
    },
    "contexts": {"device": {"count": 4}, "parallel": {"context": 2, "tensor": 2}},
    "lengths": {
        "device": {"count": 4},
        "batch": {"micro": 2, "sequence_length": {"distribution": "lognormal", "mean": 1000, "max": 2000}},
    },
    "splits": {
        "batch": {"micro": 4, "sequence_length": 1024},
        "memory": {"limit_bytes": 3_400_000_000, "on_out_of_memory": "split", "long_lived": {"per_step": 3}},
    },
}


def document(**tables: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2", "count": 1},
        "batch": {"micro": 1, "global": 8, "sequence_length": 2048},
        "optimizations": FUSED,
        "run": {"steps": 2},
    }
    for name, values in tables.items():
        base[name] = values if name in ("optimizations", "model") else {**base.get(name, {}), **values}
    return base


def job(name: str) -> Scenario:
    return scenario_from_document(document(**JOBS[name]), Path())


@cache
def times_ns(name: str, slowing: Contention | None) -> list[tuple[int, int]]:
    return step_times_ns(job(name), slowing)


@pytest.mark.parametrize("name", JOBS)
def test_a_step_takes_as_long_operator_by_operator_as_in_blocks(name: str) -> None:
    for by_operator_ns, in_blocks_ns in times_ns(name, ALONE):
        assert by_operator_ns == in_blocks_ns


@pytest.mark.parametrize("name", JOBS)
def test_it_does_within_a_thousandth_where_transfers_slow_computing(name: str) -> None:
    """A transfer that covers a part of a block slows the block's mean; operator by operator it slows that part."""
    alone = {time for times in times_ns(name, ALONE) for time in times}
    for by_operator_ns, in_blocks_ns in times_ns(name, None):
        assert by_operator_ns == pytest.approx(in_blocks_ns, rel=1e-3)
        assert by_operator_ns >= min(alone)


def test_the_more_transfers_slow_computing_the_longer_steps_with_overlap_are() -> None:
    times = [times_ns("overlaps", Contention(1.5e12, ratio))[1][0] for ratio in (0.0, 0.043, 0.5)]
    assert times[0] < times[1] < times[2]


def beside_computing_ns(graph: TaskGraph, result: Schedule, rank: int) -> int:
    """Returns for how long receives of a rank are pending or running while it computes."""
    own = graph.rank == rank
    receives = own & np.array([graph.operator(task) == "hcom_receive_" for task in range(len(graph))])
    computes = own & (graph.stream == Stream.COMPUTE)
    waiting, busy = (union(result.start_ns[rows], result.end_ns[rows]) for rows in (receives, computes))
    return waiting.total_ns - difference(waiting, busy).total_ns


@pytest.mark.parametrize("name", ["pipeline", "gpipe"])
def test_a_receive_is_posted_once_its_stage_has_come_to_it(name: str) -> None:
    """Bubbles then lie outside of computing, as profilers of real jobs show them."""
    (graph, result), _ = next(scheduled_steps(job(name), None))
    assert [beside_computing_ns(graph, result, rank) for rank in np.unique(graph.rank).tolist()] == [0] * (
        4 if name == "pipeline" else 2
    )


def test_stages_of_several_chunks_post_receives_ahead() -> None:
    (graph, result), _ = next(scheduled_steps(job("interleaved"), None))
    assert beside_computing_ns(graph, result, 0) > 0


def test_every_job_of_this_file_runs() -> None:
    result = simulate(scenario_from_document(document(**JOBS["splits"]), Path()))
    assert result.memory[0].caught.sum() > 0
