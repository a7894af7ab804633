"""Scale, mask and softmax in one kernel, where attention stays in single operators."""

import re

from engine.optimizations.answers import no_effect, switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, shipped_on_cuda
from engine.optimizations.interface import Applicability, Group, Optimization, Switch
from engine.workloads.scenario import Scenario

ID = "fusion.softmax_dropout"


def _inside_attention(scenario: Scenario) -> Applicability | None:
    if scenario.enabled("fusion.attention") and scenario.model.gated:
        return no_effect("fusion.attention is on: softmax runs inside its kernel")
    return None


_CAPTURE = PatternFusion(
    id=ID,
    targets=(
        Target("scaled_masked_softmax", "ScaledMaskedSoftmax"),
        Target("scaled_masked_softmax_grad", "ScaledMaskedSoftmaxGradV2"),
    ),
    chain="scaled and masked softmaxes in single operators",
    fused=re.compile(r"scaled_?(upper_triang_)?masked_?softmax|flash_?att", re.I),
)

SOFTMAX_DROPOUT = Optimization(
    id=ID,
    title="Fused scaled masked softmax",
    group=Group.FUSION,
    summary=(
        "Scale, mask and softmax become one kernel in the scores' own type, forward and backward; in simulated jobs of "
        "the GPT family also dropout and the residual addition. The fused attention contains it and wins more."
    ),
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu_scaled_masked_softmax(x, mask, scale, fixed_triu_mask)",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "last two dimensions 32 to 4096 and divisible by 32",
        ),
        Switch(
            "torch_npu",
            "Atlas A2 or newer",
            "torch_npu.npu_fusion_attention(query, key, value, head_num, input_layout)",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "softmax together with dropout is fused only as a part of it",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"softmaxes per step and replica: {layer_passes(scenario):,}, of five operators in fp32 each",
        shipped_on_cuda("scale, mask and softmax in one"),
        _inside_attention,
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="softmax of bf16 scores instead of fp32 copies: other rounding",
    undo="call the single operators again",
    verify="time of ScaledMaskedSoftmax against the chains', after 5 warm steps",
    provenance="from the rows of scores, by the cost model's constants fitted to measured kernels, else from traffic",
)
