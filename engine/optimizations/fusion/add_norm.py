"""Residual addition and the norm after it in one kernel."""

import re

from engine.optimizations.answers import no_effect, switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes
from engine.optimizations.interface import Applicability, Group, Optimization, Switch
from engine.workloads.scenario import Scenario

ID = "fusion.add_norm"


def _fused_with_dropout(scenario: Scenario) -> Applicability | None:
    if not scenario.model.gated and scenario.enabled("fusion.softmax_dropout"):
        return no_effect("fusion.softmax_dropout is on: the addition runs inside the dropout's kernel")
    return None


_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("add_norm", "AddRmsNorm"), Target("add_layer_norm", "AddLayerNorm")),
    chain="additions with a norm after them",
    fused=re.compile(r"AddRmsNorm|AddLayerNorm|fused_add_rms", re.I),
)

ADD_NORM = Optimization(
    id=ID,
    title="Fused addition and norm",
    group=Group.FUSION,
    summary="The residual addition and the norm that reads it become one kernel: the sum is not read again.",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu_add_rms_norm(x1, x2, gamma)",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "inference: its derivative is not implemented",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: (
            f"additions per step and replica whose sum the norm reads again: {layer_passes(scenario):,}; a real "
            "training job needs a derivative, which npu_add_rms_norm has not"
        ),
        _fused_with_dropout,
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="none known beyond rounding; not usable in training",
    undo="call the addition and npu_rms_norm",
    verify="number of Add and RmsNorm kernels, after 5 warm steps",
    provenance="from the traffic of both kernels; where shapes are missing from their times",
)
