"""Rotary position embedding in one kernel per tensor, forward and backward."""

import re

from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, only_gated
from engine.optimizations.interface import Group, Optimization, Switch

ID = "fusion.rope"

_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("rope", "RotaryPositionEmbedding"), Target("rope_grad", "RotaryPositionEmbeddingGrad")),
    chain="rotary embeddings in single operators",
    fused=re.compile(r"rotary|apply_rope", re.I),
)

ROPE = Optimization(
    id=ID,
    title="Fused rotary embedding",
    group=Group.FUSION,
    summary="The five operators that rotate queries or keys become one kernel; so do those of the derivative.",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "",
            "torch_npu.npu_rotary_mul(x, cos, sin)",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "half and interleaved layouts; its page lists the shapes it takes",
        ),
        Switch(
            "MindSpeed",
            "",
            "--use-fused-rotary-pos-emb --position-embedding-type rope",
            "MindSpeed docs/zh/features/rotary-embedding.md",
            "needs rotary positions",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"rotations per step and replica: {2 * layer_passes(scenario):,}, of five operators each",
        only_gated("adds learned positions once, it rotates nothing"),
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="none known beyond rounding",
    undo="drop --use-fused-rotary-pos-emb",
    verify="time of RotaryPositionEmbedding against the chains', after 5 warm steps",
    provenance="from the heads' shape, by the cost model's constants fitted to measured kernels, else from traffic",
)
