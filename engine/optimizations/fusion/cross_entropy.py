"""The loss over the vocabulary in one kernel, forward and backward."""

import re

from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check
from engine.optimizations.interface import Group, Optimization, Switch
from engine.workloads.scenario import Scenario

ID = "fusion.cross_entropy"


def _replaced(scenario: Scenario) -> str:
    return (
        f"losses per step and replica: {scenario.micro_batch_count:,}; each walks over fp32 logits of "
        f"{scenario.model.vocab:,} words in eight operators"
    )


_CAPTURE = PatternFusion(
    id=ID,
    targets=(Target("cross_entropy", "CrossEntropyLoss"),),
    chain="losses over the vocabulary in single operators",
    fused=re.compile(r"cross_?entropy", re.I),
)

CROSS_ENTROPY = Optimization(
    id=ID,
    title="Fused cross-entropy",
    group=Group.FUSION,
    summary="Log-softmax and negative log-likelihood over the vocabulary become one kernel; so does their derivative.",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "Atlas A2, A3, 950",
            "torch_npu.npu_cross_entropy_loss(input, target)",
            "op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_cross_entropy_loss.md",
            "returns loss, log_prob, zloss and lse_for_zloss; not made for a vocabulary that tensor parallelism splits",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(ID, _replaced),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="other rounding of the loss",
    undo="call torch.nn.functional.cross_entropy",
    verify="time of the kernels over the vocabulary on the last stage, after 5 warm steps",
    provenance="from tokens and vocabulary, by the cost model's constants fitted to measured kernels",
)
