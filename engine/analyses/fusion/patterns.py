"""The catalogue: what is worth fusing, as sentences over the words of ``kernel_words``, and the real calls that do it.

A sentence is a regular expression whose identifiers are words. ``word=`` marks members that work on one tensor size
(checked where shapes are recorded); ``word!`` marks the members where the rest is only context. Helpers of framework
calls (format changes, zeroing) may stand between any two words.
"""

from dataclasses import dataclass
from enum import StrEnum


class Estimate(StrEnum):
    """How a pattern's saving is estimated; see ``fusion_saving``."""

    STREAM = "stream"
    """One kernel reads the inputs and writes the outputs; intermediates stay on the chip."""
    ATTENTION = "attention"
    """The matrix products stay, the work between them overlaps with them."""
    BATCH = "batch"
    """One launch for many tensors; every byte still moves."""
    EPILOGUE = "epilogue"
    """The work becomes the tail of the matrix product before it."""
    REDUNDANT = "redundant"
    """The same values computed again."""


@dataclass(frozen=True, slots=True)
class FusionPattern:
    """One fusion people really do.

    Attributes:
        id: Stable.
        title: What people call it.
        npu_call: The real replacement on Ascend (op-plugin, MindSpeed), "" where there is none.
        gpu_call: The real replacement for captures of GPUs, "" where there is none.
        sentences: Alternatives; see the module's docstring.
        estimate: How its saving is estimated.
        input_passes: How often the fused kernel reads its main input (a normalisation needs the statistics first).
        call_words: Count calls of these words inside a run instead of runs; () counts occurrences.
        lone_call: A sentence for single calls of the same kind outside runs: counted with the runs, they win nothing.
        caveat: What to check before using the replacement.
        inference_only: The replacement has no derivative: in a training capture nothing replaces the chain today.
    """

    id: str
    title: str
    npu_call: str
    gpu_call: str
    sentences: tuple[str, ...]
    estimate: Estimate = Estimate.STREAM
    input_passes: int = 1
    call_words: tuple[str, ...] = ()
    lone_call: str = ""
    caveat: str = ""
    inference_only: bool = False


_FILL = "(cast|copy|compare|index|mul|sub|add|fill|log|sum|mean|scatter|div|neg|cat|mask|slice|transpose)"
_AFTER_SOFTMAX = "(cast|copy|dropout_mask|dropout|mul|mask|transpose|fill)"
_BETWEEN_MATMULS = "(mul|div|add|mask|cast|copy|transpose|fill)"
_DERIVATIVES = "(bmm(transpose|copy){0,2}bmm|bmm|matmul)"
"""A product has two derivatives."""

PATTERNS: tuple[FusionPattern, ...] = (
    FusionPattern(
        "cross_entropy",
        "Cross-entropy over the vocabulary",
        "torch_npu.npu_cross_entropy_loss",
        "torch.compile of torch.nn.functional.cross_entropy",
        (
            # Vocabulary-parallel (Megatron): maximum, subtract, pick the target, exponentials, sum, logarithm, divide.
            f"cast=?max={_FILL}{{0,8}}?sub={_FILL}{{0,16}}?index{_FILL}{{0,12}}?exp={_FILL}{{0,6}}?sum={_FILL}{{0,16}}?div=",
            f"cast=?max={_FILL}{{0,8}}?sub={_FILL}{{0,16}}?exp={_FILL}{{0,6}}?sum={_FILL}{{0,8}}?log{_FILL}{{0,8}}?div=",
            # Its backward: subtract 1 at the target, scale, cast down.
            f"scatter={_FILL}{{0,2}}?mul=cast=?",
            f"(cast!|copy!)?log_softmax!{_FILL}{{0,4}}?nll!",
            f"nll_grad!{_FILL}{{0,2}}?log_softmax_grad!(cast!|copy!)?",
            # A softmax over the logits written out right after the product that makes them, and its backward.
            "matmul cast!max!sub!exp!sum!div!(mul!cast!)?",
        ),
        input_passes=2,
        caveat="Atlas A2 or newer; with tensor parallelism the vocabulary is split and needs the parallel variant",
    ),
    FusionPattern(
        "attention",
        "Attention core",
        "torch_npu.npu_fusion_attention",
        "torch.nn.functional.scaled_dot_product_attention",
        (
            f"(bmm|matmul){_BETWEEN_MATMULS}{{0,7}}softmax{_AFTER_SOFTMAX}{{0,7}}(bmm|matmul)",
            f"{_DERIVATIVES}(cast|copy|dropout|mul|mask){{0,6}}softmax_grad{_BETWEEN_MATMULS}{{0,6}}{_DERIVATIVES}",
        ),
        estimate=Estimate.ATTENTION,
        caveat="Atlas A2 or newer; layouts BSH, SBH, BSND, BNSD, TND",
    ),
    # Before RMSNorm, whose chain it contains.
    FusionPattern(
        "layer_norm",
        "Layer or batch normalisation written out",
        "torch.nn.functional.layer_norm (batch_norm where the batch is averaged)",
        "torch.nn.functional.layer_norm (batch_norm where the batch is averaged)",
        (
            "mean sub=pow=mean add(rsqrt mul=|sqrt div=)(cast|copy)?(mul=add=?)?",
            "(var(mean|sum div)?|(mean|sum div)var)(sub|add){1,2}(rsqrt|sqrt)sub?(mul|div)mul?add?",
        ),
        input_passes=2,
    ),
    FusionPattern(
        "rms_norm",
        "RMSNorm",
        "torch_npu.npu_rms_norm",
        "torch.nn.functional.rms_norm",
        (
            "(cast|copy)?pow=mean add?(rsqrt|sqrt div|sqrt)mul=(cast|copy)?mul=",
            "(cast|copy)?pow=mean add?rsqrt mul=(cast|copy)?",
            "(cast|copy)?mul=mean add rsqrt mul=(cast|copy)?mul=",
        ),
        input_passes=2,
    ),
    FusionPattern(
        "rms_norm_grad",
        "Backward of RMSNorm",
        "torch_npu.npu_rms_norm",
        "torch.nn.functional.rms_norm",
        ("mul=(mul sum)?cast=?mul=sum(pow|mul|div|neg|fill){0,6}(addcmul=|mul=add=)cast=?",),
        input_passes=2,
    ),
    FusionPattern(
        "geglu",
        "GeGLU",
        "torch_npu.npu_geglu",
        "torch.compile",
        ("slice{0,2}gelu=matmul{0,1}mul=",),
        caveat="recommended by the vendor's advisor; op-plugin has no page about it",
    ),
    FusionPattern(
        "swiglu",
        "SwiGLU",
        "torch_npu.npu_swiglu",
        "torch.compile",
        # The second projection may stand between activation and product; it is not part of what is fused.
        ("slice{0,2}silu=slice{0,1}matmul{0,1}mul=", "slice{0,2}sigmoid=mul=matmul{0,1}mul="),
    ),
    FusionPattern(
        "swiglu_grad",
        "Backward of SwiGLU",
        "torch_npu.npu_swiglu",
        "torch.compile",
        ("mul=mul=matmul{0,2}silu_grad=cat?",),
    ),
    FusionPattern(
        "group_norm_silu",
        "GroupNorm and SiLU",
        "torch_npu.npu_group_norm_silu",
        "",
        ("group_norm=silu=",),
    ),
    FusionPattern(
        "gelu",
        "GELU written out",
        "torch.nn.functional.gelu",
        "torch.nn.functional.gelu",
        (
            "mul?pow=(mul|add){2,3}tanh=add=mul=mul?",
            "(mul|div)=erf=add=mul=mul?",
        ),
    ),
    FusionPattern(
        "rope",
        "Rotary position embedding",
        "torch_npu.npu_rotary_mul",
        "torch.compile",
        ("mul=slice{0,2}neg slice{0,1}cat=mul=add=", "slice{0,2}neg slice{0,1}cat=mul=mul=add="),
    ),
    FusionPattern(
        "rope_grad",
        "Backward of the rotary position embedding",
        "torch_npu.npu_rotary_mul",
        "torch.compile",
        ("mul=mul=slice{0,2}neg slice{0,2}cat=add=",),
    ),
    FusionPattern(
        "softmax",
        "Softmax written out",
        "torch.softmax",
        "torch.softmax",
        ("max=sub=exp=sum=div=",),
        input_passes=2,
    ),
    FusionPattern(
        "scaled_masked_softmax",
        "Scale, mask and softmax",
        "torch_npu.npu_scaled_masked_softmax",
        "torch.compile",
        ("(cast|copy)?(mul|div)=(mask|add)=(cast|copy)?softmax=(cast|copy)?", "(mask|add)=(cast|copy)?softmax="),
        caveat="last two dimensions 32…4096 and divisible by 32",
    ),
    FusionPattern(
        "scaled_masked_softmax_grad",
        "Backward of scale, mask and softmax",
        "torch_npu.npu_scaled_masked_softmax",
        "torch.compile",
        ("(cast|copy)?softmax_grad=(cast|copy)?mask=(mul|div)=", "(cast|copy)?softmax_grad=(cast|copy)?mask="),
        caveat="last two dimensions 32…4096 and divisible by 32",
    ),
    FusionPattern(
        "softmax_dropout",
        "Softmax and dropout",
        "torch_npu.npu_fusion_attention",
        "torch.nn.functional.scaled_dot_product_attention",
        ("softmax=(cast|copy)?dropout_mask{0,1}dropout=",),
        caveat="only as a part of the fused attention",
    ),
    FusionPattern(
        "optimizer",
        "Optimizer update, tensor by tensor",
        "torch_npu.optim.NpuFusedAdamW",
        "torch.optim.AdamW(fused=True)",
        (
            "(adamw(sub|add|fill)?){7,}adamw",
            "((mul|add){0,1}(addcmul|mul add)mul addcmul sqrt div{0,1}add addcmul){6,}",
        ),
        estimate=Estimate.BATCH,
        call_words=("adamw", "sqrt"),
        caveat="the fused optimizer merges parameters into one block of memory",
    ),
    FusionPattern(
        "adagrad",
        "Adagrad update, tensor by tensor",
        "torch.optim.Adagrad(foreach=True)",
        "torch.optim.Adagrad(foreach=True)",
        ("(addcmul sqrt add addcmul){6,}",),
        estimate=Estimate.BATCH,
        call_words=("sqrt",),
    ),
    FusionPattern(
        "sgd",
        "SGD update, tensor by tensor",
        "torch_npu.optim.NpuFusedSGD",
        "torch.optim.SGD(fused=True)",
        ("(add{0,1}mul add{1,2}){8,}",),
        estimate=Estimate.BATCH,
        call_words=("mul",),
        caveat="the fused optimizer merges parameters into one block of memory",
    ),
    FusionPattern(
        "gradient_norm",
        "Norm of gradients, tensor by tensor",
        "clip_grad_norm_fused_ of torch_npu.optim's fused optimizers, or torch._foreach_norm",
        "torch.nn.utils.clip_grad_norm_(foreach=True)",
        ("(norm(pow|add|mul|copy|cast|max|fill){0,3}){8,}",),
        estimate=Estimate.BATCH,
        call_words=("norm",),
        lone_call="norm",
    ),
    FusionPattern(
        "gradient_accumulation",
        "FP32 += BF16 gradient addition after the matrix product",
        "MindSpeed npu_matmul_add (remove --no-gradient-accumulation-fusion)",
        "",
        ("accumulate!",),
        estimate=Estimate.EPILOGUE,
        caveat="weight gradients of matrix products only; conflicts with --quant-grads",
    ),
    FusionPattern(
        "repeated_cos_sin",
        "Cosine and sine of the same angles, layer after layer",
        "compute both once per step and pass them to torch_npu.npu_rotary_mul",
        "compute both once per step",
        ("cos=(mul|cast|copy){0,3}sin=(mul|cast|copy){0,2}",),
        estimate=Estimate.REDUNDANT,
        caveat="only where positions do not change between layers",
    ),
    FusionPattern(
        "add_norm",
        "Residual addition and RMSNorm",
        "torch_npu.npu_add_rms_norm",
        "",
        ("add=rms_norm=",),
        # torch_npu tests that its backward raises "derivative … is not implemented".
        inference_only=True,
    ),
    FusionPattern(
        "add_layer_norm",
        "Residual addition and LayerNorm",
        "torch_npu.npu_add_layer_norm",
        "",
        ("add=layer_norm=",),
    ),
    FusionPattern(
        "matmul_add",
        "Addition to the result of a matrix product",
        "torch.addmm",
        "torch.addmm",
        ("matmul add!",),
        estimate=Estimate.EPILOGUE,
    ),
    FusionPattern(
        "foreach_scale",
        "Scaling, tensor by tensor",
        "torch._foreach_mul_",
        "torch._foreach_mul_",
        ("(mul copy{0,1}){7,}mul copy{0,1}",),
        estimate=Estimate.BATCH,
        call_words=("mul",),
    ),
    FusionPattern(
        "foreach_zero",
        "Zeroing, tensor by tensor",
        "optimizer.zero_grad(set_to_none=True) or torch._foreach_zero_",
        "optimizer.zero_grad(set_to_none=True) or torch._foreach_zero_",
        ("fill{8,}",),
        estimate=Estimate.BATCH,
        call_words=("fill",),
    ),
    FusionPattern(
        "foreach_add",
        "Addition, tensor by tensor",
        "torch._foreach_add_",
        "torch._foreach_add_",
        ("add{16,}",),
        estimate=Estimate.BATCH,
        call_words=("add",),
    ),
)
