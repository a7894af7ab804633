"""SwiGLU in one kernel, forward and backward."""

import re

from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, only_gated
from engine.optimizations.interface import Group, Optimization, Switch

ID = "fusion.swiglu"

_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("swiglu", "SwiGlu"), Target("swiglu_grad", "SwiGluGrad")),
    chain="SwiGLUs in single operators",
    fused=re.compile(r"swi_?glu", re.I),
)

SWIGLU = Optimization(
    id=ID,
    title="Fused SwiGLU",
    group=Group.FUSION,
    summary="Cutting the projection in two, SiLU and the product become one kernel; so do those of the derivative.",
    parameters=(),
    switches=(
        Switch("torch_npu", "beta", "torch_npu.npu_swiglu(x, dim=-1)", "op-plugin docs/zh/custom_APIs/torch_npu"),
        Switch(
            "MindSpeed", "", "--use-fused-swiglu --swiglu", "MindSpeed docs/zh/features/swiglu.md", "needs --swiglu"
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"activations per step and replica: {layer_passes(scenario):,}, of four operators each",
        only_gated("has a GELU without a gate, which is one kernel already"),
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="none known beyond rounding; gate and projection must lie in one tensor",
    undo="drop --use-fused-swiglu",
    verify="time of SwiGlu and SwiGluGrad against the chains', after 5 warm steps",
    provenance="from rows and columns of the gate, by the cost model's constants fitted to measured kernels",
)
