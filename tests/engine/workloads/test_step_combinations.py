"""Whatever is switched on together: a step takes as long operator by operator as in blocks, and it ends."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.workloads.scenario_file import scenario_from_document
from tests.support.scheduled_steps import ALONE, step_times_ns

MODEL = {"layers": 4, "hidden": 512, "ffn": 1024, "heads": 8, "vocab": 4000}
CHOICES: dict[str, list[dict[str, Any]]] = {
    "fusion.attention": [{}],
    "communication.overlap_gradients": [{}, {"bucket_bytes": 1 << 22}],
    "communication.overlap_parameters": [{}],
    "communication.overlap_tensor_parallel": [{}],
    "communication.chunking": [{}, {"chunks": 3}],
    "communication.topk_compression": [{}, {"ratio": 0.2, "error_feedback": False}],
    "communication.quantized_gradients": [{"bits": 16}, {"bits": 8}],
    "communication.algorithm": [{"name": "ring"}, {"name": "hierarchical"}],
    "host.streams": [{"count": 1}],
    "host.graph_mode": [{}],
    "memory.recompute": [{}, {"granularity": "selective"}],
}
TOGGLES = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(parameters) for name, parameters in CHOICES.items()}
)
FEW = st.sampled_from([1, 2])


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    tensor, pipeline, data, context = (draw(FEW) for _ in range(4))
    virtual = draw(FEW) if pipeline > 1 else 1
    layout = {"tensor": tensor, "pipeline": pipeline, "context": context, "virtual_pipeline": virtual}
    layout |= {"sequence_parallel": draw(st.booleans()), "distributed_optimizer": draw(st.booleans())}
    layout["schedule"] = "interleaved" if virtual > 1 else draw(st.sampled_from(["1f1b", "gpipe"]))
    experts = {"experts": 4, "top_k": 2} if draw(st.booleans()) else {}
    return {
        "model": {**MODEL, **experts},
        "device": {"preset": "910b2", "count": tensor * pipeline * data * context, "per_node": draw(FEW) * 4},
        "parallel": layout,
        "batch": {"micro": 1, "global": 4, "sequence_length": draw(st.sampled_from([256, 1024]))},
        "optimizations": draw(TOGGLES),
    }


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(documents())
def test_both_resolutions_of_a_step_agree(document: dict[str, Any]) -> None:
    scenario = scenario_from_document(document, Path())
    try:
        alone = step_times_ns(scenario, ALONE, 1)
    except ScenarioError:
        assume(False)
    for by_operator_ns, in_blocks_ns in alone:
        assert by_operator_ns == in_blocks_ns
    for by_operator_ns, in_blocks_ns in step_times_ns(scenario, None, 1):
        assert by_operator_ns == pytest.approx(in_blocks_ns, rel=1e-3)
