"""RMSNorm in one kernel, forward and backward."""

import re

from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, only_gated
from engine.optimizations.interface import Group, Optimization, Switch

ID = "fusion.rms_norm"

_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("rms_norm", "RmsNorm"), Target("rms_norm_grad", "RmsNormGrad")),
    chain="RMSNorms in single operators",
    fused=re.compile(r"rms_?norm", re.I),
    shields=("layer_norm",),
)

RMS_NORM = Optimization(
    id=ID,
    title="Fused RMSNorm",
    group=Group.FUSION,
    summary="The seven operators of an RMSNorm, and the six of its derivative, become one kernel each.",
    parameters=(),
    switches=(
        Switch("torch_npu", "beta", "torch_npu.npu_rms_norm(x, gamma)", "op-plugin docs/zh/custom_APIs/torch_npu"),
        Switch(
            "MindSpeed",
            "",
            "--use-fused-rmsnorm --normalization RMSNorm",
            "MindSpeed docs/zh/features/rms_norm.md",
            "needs --normalization RMSNorm",
        ),
        Switch("PyTorch", "2.4 or newer", "torch.nn.functional.rms_norm", "PyTorch documentation", "the same on GPUs"),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"norms per step and replica: {2 * layer_passes(scenario):,}, of seven operators each",
        only_gated("has LayerNorm, which is one kernel already"),
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="statistics are rounded otherwise; the difference is that of bf16",
    undo="drop --use-fused-rmsnorm",
    verify="time of RmsNorm and RmsNormGrad against the chains', after 5 warm steps",
    provenance="from rows and columns of the mean, by the cost model's constants fitted to measured kernels",
)
