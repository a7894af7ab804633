"""Adding a weight's gradient to its FP32 main gradient inside the product that makes it."""

import re

from engine.graph.task_graph import TaskKind
from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, shipped_on_cuda
from engine.optimizations.interface import Group, Optimization, Switch

ID = "fusion.gradient_accumulation"

_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("gradient_accumulation", "MatmulAdd", TaskKind.CUBE),),
    chain="FP32 += BF16 additions after the product of a weight gradient",
    fused=re.compile(r"matmul_?add|wgrad_gemm_accum", re.I),
)

GRADIENT_ACCUMULATION = Optimization(
    id=ID,
    title="Gradient accumulation inside the product",
    group=Group.FUSION,
    summary="The product of a weight's gradient adds to the FP32 main gradient itself: no BF16 copy, no addition.",
    parameters=(),
    switches=(
        Switch(
            "MindSpeed",
            "",
            "remove --no-gradient-accumulation-fusion",
            "MindSpeed docs/zh/features/low-precision-optimizer.md",
            "uses npu_matmul_add; not with --quant-grads",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"layer passes whose weight gradients are added one by one: {layer_passes(scenario):,}",
        shipped_on_cuda("accumulate inside the product"),
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="none known: the sum is more exact than adding rounded gradients",
    undo="set --no-gradient-accumulation-fusion",
    verify="number of Add kernels in the backward pass, after 5 warm steps",
    provenance=(
        "at best the addition hides behind the product; at worst only reading the narrow operand is saved; expected "
        "half way"
    ),
)
