"""One optimizer call for all tensors, with the norm that clips gradients."""

import re

from engine.optimizations.answers import switched_on
from engine.optimizations.fusion.pattern_fusion import PatternFusion, Target
from engine.optimizations.fusion.scenario_answers import fusion_check, shipped_on_cuda
from engine.optimizations.interface import Group, Optimization, Switch

ID = "fusion.optimizer"
_DOCUMENT = "Ascend/pytorch docs/zh/custom_APIs/torch_npu-optim"

_CAPTURE = PatternFusion(
    id=ID,
    targets=(
        Target("optimizer", "ApplyAdamWV2", keeps_results=True),
        Target("sgd", "ForeachAddListInplace", keeps_results=True),
        Target("gradient_norm", "LpNormV2", keeps_results=True),
        Target("foreach_scale", "Mul", keeps_results=True),
    ),
    chain="runs of optimizer and norm kernels",
    fused=re.compile(r"multi_tensor_apply|_fused_adam|Foreach|ApplyFusedAdam", re.I),
    counts_calls=True,
)

OPTIMIZER = Optimization(
    id=ID,
    title="Fused optimizer",
    group=Group.FUSION,
    summary="The update of every tensor, and the norm of every gradient, become one call over merged blocks of memory.",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "",
            "torch_npu.optim.NpuFusedAdamW(params), and its clip_grad_norm_fused_(max_norm)",
            _DOCUMENT,
            "merges parameters and gradients into blocks of memory; also NpuFusedSGD, NpuFusedAdam and others",
        ),
        Switch(
            "MindSpeed",
            "",
            "--optimizer-selection fused_adamw",
            "MindSpeed docs/zh/features/swap-optimizer.md",
        ),
        Switch("PyTorch", "2.0 or newer", "torch.optim.AdamW(params, fused=True)", "PyTorch documentation", "on GPUs"),
    ),
    on_scenario=switched_on(ID),
    check_scenario=fusion_check(
        ID,
        lambda scenario: f"every weight of {scenario.model.layers:,} layers has its own norm, scaling and update",
        shipped_on_cuda("update all tensors in one"),
    ),
    on_capture=_CAPTURE.apply,
    check_capture=_CAPTURE.check,
    risk="a copy of parameters while they are merged; hooks on single gradients see merged memory",
    undo="use torch.optim.AdamW",
    verify="number of optimizer kernels and time of the optimizer, after 5 warm steps",
    provenance="every byte still moves: only launches and fixed costs of kernels vanish, both from the capture itself",
)
