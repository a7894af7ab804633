"""The attention super-operator: scores, mask, softmax, dropout and values in one kernel."""

import re

from engine.graph.task_graph import TaskKind
from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes
from engine.optimizations.interface import Group, Optimization, Switch
from engine.workloads.scenario import Scenario

ID = "fusion.attention"


def _replaced(scenario: Scenario) -> str:
    rows = int(scenario.batch.lengths.mean)
    return (
        f"attention cores per step and replica: {layer_passes(scenario):,}; each writes score matrices of {rows:,} "
        "rows, which one kernel never does"
    )


_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("attention", "FlashAttentionScore", TaskKind.MIX),),
    chain="attention cores in single operators",
    assumption="masked scores are those of causal attention",
    fused=re.compile(
        r"flash_?att|FusedInferAttention|IncreFlashAttention|PromptFlashAttention|fmha|efficient_att", re.I
    ),
)

ATTENTION = Optimization(
    id=ID,
    title="Fused attention",
    group=Group.FUSION,
    summary=(
        "QKᵀ, scale, mask, softmax, dropout and the product with V become one kernel that keeps scores on the chip, "
        "forward and backward."
    ),
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "Atlas A2 or newer",
            "torch_npu.npu_fusion_attention(query, key, value, head_num, input_layout)",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "layouts BSH, SBH, BSND, BNSD, TND; fp16, bf16, fp32; padding_mask is not supported; sequences of "
            "different lengths need actual_seq_*",
        ),
        Switch("MindSpeed", "", "--use-flash-attn", "MindSpeed docs/zh/features/flash-attention.md"),
        Switch("MindSpeed", "", "--use-fusion-attn-v2", "MindSpeed docs/zh/features/fusion-attn-v2.md"),
        Switch(
            "PyTorch",
            "2.0 or newer",
            "torch.nn.functional.scaled_dot_product_attention",
            "PyTorch documentation",
            "the same on GPUs",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(ID, _replaced),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="other rounding of the softmax; dropout draws other random numbers",
    undo="drop --use-flash-attn, or call the single operators again",
    verify="time of FlashAttentionScore and FlashAttentionScoreGrad against the chains', after 5 warm steps",
    provenance=(
        "from the shapes of the products, by the cost model's constants fitted to measured kernels; taken as causal "
        "where scores are masked"
    ),
)
