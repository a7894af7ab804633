"""Layers: what they keep for the backward pass, against the published formula."""

from dataclasses import replace

import numpy as np
import pytest

from engine.graph.task_graph import BufferTag
from engine.workloads.blocks import Block
from engine.workloads.layers import layer_backward, layer_forward
from engine.workloads.lowering import Fusions, Lowering
from engine.workloads.models.spec import ModelSpec
from engine.workloads.scenario import Parallelism, Recompute

GPT = ModelSpec("gpt", 2, 1024, 4096, 16, 16, 64, 51200, gated=False)
LLAMA = ModelSpec("llama", 2, 1024, 2816, 16, 4, 64, 32000)
MOE = ModelSpec("moe", 2, 1024, 1024, 16, 4, 64, 32000, experts=8, top_k=2)


def lowering(model: ModelSpec, parallel: Parallelism, recompute: Recompute, fused: bool = False) -> Lowering:
    return Lowering(model, parallel, Fusions(attention=fused, softmax=True), recompute, 4, np.array([2048, 512]))


def kept_bytes(block: Block) -> int:
    return sum(int(item.size_bytes[0]) for item in block.requests if item.allocates and item.tag == BufferTag.STEP)


@pytest.mark.parametrize(
    ("tensor", "sequence_parallel", "recompute", "per_sbh"),
    [
        (1, False, Recompute.NONE, 34 + 5 * 16 * 2048 / 1024),
        (8, False, Recompute.NONE, 10 + 24 / 8 + 5 * 16 * 2048 / (1024 * 8)),
        (8, True, Recompute.NONE, 34 / 8 + 5 * 16 * 2048 / (1024 * 8)),
        (8, False, Recompute.SELECTIVE, 10 + 24 / 8),
        (8, True, Recompute.SELECTIVE, 34 / 8),
        (8, False, Recompute.FULL, 2),
    ],
)
def test_a_layer_keeps_what_korthikanti_et_al_count(
    tensor: int, sequence_parallel: bool, recompute: Recompute, per_sbh: float
) -> None:
    """arXiv:2205.05198, table 2: bytes of one layer's activations in units of s·b·h."""
    parallel = Parallelism(tensor=tensor, sequence_parallel=sequence_parallel)
    block = layer_forward(lowering(GPT, parallel, recompute), 0)
    assert kept_bytes(block) == pytest.approx(per_sbh * 2048 * 4 * 1024, rel=1e-9)


@pytest.mark.parametrize("model", [GPT, LLAMA, MOE])
@pytest.mark.parametrize("recompute", list(Recompute))
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    "parallel",
    [
        Parallelism(),
        Parallelism(tensor=4),
        Parallelism(tensor=4, sequence_parallel=False),
        Parallelism(context=4),
        Parallelism(data=4, expert=4),
    ],
)
def test_the_backward_pass_frees_all_a_layer_kept(
    model: ModelSpec, recompute: Recompute, fused: bool, parallel: Parallelism
) -> None:
    low = lowering(model, parallel, recompute, fused)
    alive = {"x", "g+1"}
    for block in (layer_forward(low, 0), layer_backward(low, 0)):
        for request in block.requests:
            if request.allocates:
                assert request.tensor not in alive
                alive.add(request.tensor)
            else:
                alive.remove(request.tensor)
    assert alive == {"x+1", "g"}


def test_a_windowed_layer_computes_less() -> None:
    low = lowering(LLAMA, Parallelism(), Recompute.NONE, fused=True)
    flops = [
        sum(int(item.table.flop[0]) for item in layer_forward(low, window).operators if item.table is not None)
        for window in (0, 128)
    ]
    assert flops[1] < flops[0]


def test_single_operators_keep_what_autograd_saves_of_them() -> None:
    """Bytes of one layer beyond the fused ones, in units of s·b: 6·h a norm, 2·f of SwiGLU, 4·a·s of the softmax."""
    single = Lowering(LLAMA, Parallelism(), Fusions(), Recompute.NONE, 4, np.array([2048]))
    whole = kept_bytes(layer_forward(single, 0))
    expected = {
        Fusions(rms_norm=True): 2 * 6 * 1024 * 2048 * 4,
        Fusions(swiglu=True): 2 * 2816 * 2048 * 4,
        Fusions(softmax=True): 4 * 16 * 2048 * 2048 * 4,
    }
    for fusions, saved_bytes in expected.items():
        assert whole - kept_bytes(layer_forward(replace(single, fusions=fusions), 0)) == saved_bytes
