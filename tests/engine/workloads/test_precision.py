"""Element types: mixed precision, products in eight bits, and one kernel for addition and norm."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.core.errors import ScenarioError
from engine.devices.spec import DType
from engine.workloads.blocks import NEXT, Block
from engine.workloads.layers import layer_backward, layer_forward, loss_backward, loss_forward
from engine.workloads.lowering import Fusions, Lowering
from engine.workloads.models.spec import ModelSpec
from engine.workloads.parameters import WeightTensor, optimizer_block
from engine.workloads.precision import NarrowProducts
from engine.workloads.results import RunResult
from engine.workloads.scenario import Parallelism, Recompute
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

SMALL = {"layers": 2, "hidden": 1024, "ffn": 2816, "heads": 16, "vocab": 4096}
WIDE = {"layers": 2, "hidden": 8192, "ffn": 22016, "heads": 64, "vocab": 4096}
FUSED: dict[str, Any] = {"fusion.attention": {}, "fusion.rms_norm": {}, "fusion.swiglu": {}, "fusion.rope": {}}
LLAMA = ModelSpec("llama", 2, 1024, 2816, 16, 4, 64, 32000)
MODELS = (
    LLAMA,
    ModelSpec("gpt", 2, 1024, 4096, 16, 16, 64, 51200, gated=False),
    ModelSpec("moe", 2, 1024, 1024, 16, 4, 64, 32000, experts=8, top_k=2),
    ModelSpec("fp32", 2, 1024, 2816, 16, 4, 64, 32000, dtype=DType.FP32),
)


def run(optimizations: dict[str, Any], model: dict[str, Any] = SMALL, device: str = "910b2") -> RunResult:
    document = {
        "model": model,
        "device": {"preset": device},
        "batch": {"micro": 1, "global": 2, "sequence_length": 4096},
        "optimizations": optimizations,
    }
    return simulate(scenario_from_document(document, Path()))


def held(*blocks: Block) -> set[str]:
    """Returns the tensors that were allocated and not freed by a layer's forward and backward pass."""
    alive: set[str] = set()
    for block in blocks:
        for request in block.requests:
            (alive.add if request.allocates else alive.discard)(request.tensor)
    return alive


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
@pytest.mark.parametrize("recompute", list(Recompute))
@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("wide", [frozenset[str](), frozenset({"attention"}), frozenset({"feed_forward", "experts"})])
@pytest.mark.parametrize("parallel", [Parallelism(), Parallelism(tensor=4), Parallelism(data=4, expert=4)])
def test_the_backward_pass_frees_what_a_quantised_layer_kept(
    model: ModelSpec, recompute: Recompute, attention: bool, wide: frozenset[str], parallel: Parallelism
) -> None:
    fusions = Fusions(attention=attention, add_norm=True, narrow=NarrowProducts(DType.INT8, wide))
    low = Lowering(model, parallel, fusions, recompute, 4, np.array([2048, 512]))
    assert held(layer_forward(low, 0), layer_backward(low, 0)) == {f"x{NEXT}", "g"}
    assert held(loss_forward(low), loss_backward(low)) == {f"g{NEXT}"}


def test_mixed_precision_is_the_same_job_in_two_bytes() -> None:
    full = {**SMALL, "dtype": "fp32"}
    mixed, narrow = run({**FUSED, "precision.mixed": {"dtype": "bf16"}}, full), run(FUSED)
    assert np.array_equal(mixed.step_ns, narrow.step_ns)
    assert mixed.memory[0].persistent_bytes == narrow.memory[0].persistent_bytes
    assert mixed.step_ns[-1] < 0.7 * run(FUSED, full).step_ns[-1]
    assert mixed.scenario.model.dtype is DType.FP32, "the result tells of the job that was asked for"


def test_an_fp32_job_has_no_second_copy_of_its_weights() -> None:
    """4 bytes of weight, 4 of gradient and 8 of moments, against 2, 4 and 12."""
    full, narrow = run(FUSED, {**SMALL, "dtype": "fp32"}), run(FUSED)
    assert full.memory[0].persistent_bytes / narrow.memory[0].persistent_bytes == pytest.approx(16 / 18, rel=1e-6)


def test_eight_bit_products_pay_where_they_are_large() -> None:
    quantized = {**FUSED, "precision.quantized_training": {}}
    assert run(quantized, WIDE).step_ns[-1] < 0.95 * run(FUSED, WIDE).step_ns[-1]
    assert run(quantized, SMALL).step_ns[-1] > run(FUSED, SMALL).step_ns[-1], "quantising costs more than it gives"


def test_quantised_inputs_are_what_is_kept() -> None:
    quantized, plain = run({**FUSED, "precision.quantized_training": {}}, WIDE), run(FUSED, WIDE)
    kept = [item.memory[0].peak_allocated_bytes[-1] - item.memory[0].persistent_bytes for item in (quantized, plain)]
    assert kept[0] < kept[1]
    assert quantized.memory[0].persistent_bytes == plain.memory[0].persistent_bytes


def test_layers_that_are_named_stay_wide() -> None:
    everything = "attention,feed_forward,head,embedding,norm,router"
    same = run({**FUSED, "precision.quantized_training": {"bits": 8, "keep": everything}}, WIDE)
    assert same.step_ns[-1] == run(FUSED, WIDE).step_ns[-1]


@pytest.mark.parametrize(
    ("optimizations", "device", "message"),
    [
        ({"precision.mixed": {"dtype": "int8"}}, "910b2", "bf16"),
        ({"precision.mixed": {"dtype": "bf16"}}, "910a", 'use "fp16"'),
        ({"precision.quantized_training": {"bits": 4}}, "910b2", "8 bits"),
        ({"precision.quantized_training": {"keep": "heads"}}, "910b2", "did you mean head"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(optimizations: dict[str, Any], device: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        run(optimizations, {**SMALL, "dtype": "fp32"}, device)


def test_addition_and_norm_in_one_kernel_save_a_pass_over_the_residual_stream() -> None:
    low = Lowering(LLAMA, Parallelism(), Fusions(rms_norm=True), Recompute.NONE, 4, np.array([2048]))
    fused = Lowering(LLAMA, Parallelism(), Fusions(rms_norm=True, add_norm=True), Recompute.NONE, 4, np.array([2048]))
    names = [item.name for item in layer_forward(fused, 0).operators]
    assert names.count("AddRmsNorm") == 1
    assert len(names) == len(layer_forward(low, 0).operators) - 1
    assert run({**FUSED, "fusion.add_norm": {}}).step_ns[-1] < run(FUSED).step_ns[-1]


def test_fp16_pays_for_its_scaled_loss() -> None:
    names = []
    for dtype in (DType.BF16, DType.FP16):
        low = Lowering(replace(LLAMA, dtype=dtype), Parallelism(), Fusions(), Recompute.NONE, 1, np.array([128]))
        block = optimizer_block(low, (WeightTensor("head", 1 << 20), WeightTensor("norm", 1 << 10)))
        names.append([item.name for item in block.operators])
    assert names[1] == ["ForeachNonFiniteCheckAndUnscale"] * 2 + names[0]


def test_a_quantised_product_follows_its_gathering_at_once() -> None:
    fusions = Fusions(attention=True, rms_norm=True, swiglu=True, narrow=NarrowProducts(DType.INT8))
    low = Lowering(LLAMA, Parallelism(tensor=4), fusions, Recompute.NONE, 4, np.array([2048]))
    names = [item.name for item in layer_forward(low, 0).operators]
    after = [names[at + 1] for at, name in enumerate(names) if name == "hcom_allGather_"]
    assert after == ["QuantBatchMatmulV3"] * 2
