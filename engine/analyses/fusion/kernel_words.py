"""One word for what a kernel does, whatever its source calls it.

``"softmax"`` is SoftmaxV2, ``aten::_softmax`` or a ``softmax_warp_forward`` kernel. Fusion patterns are sentences of
these words.
"""

import re
from collections.abc import Mapping

HELPER = "helper"
"""Work a framework call does beside its own kernel (format changes, zeroing): patterns look through it."""
OTHER = "other"
"""Everything no pattern speaks of; it ends every sequence."""
FUSED = "fused"
"""Already a fused kernel: never proposed."""
MATRIX_WORDS = ("matmul", "bmm", "conv")
"""Matrix products, convolutions among them."""

_ASCEND_TYPES = {
    HELPER: "TransData TransDataRNN MemSet TransposeD FormatTransfer",
    FUSED: (
        "FlashAttentionScore FlashAttentionScoreGrad FusedInferAttentionScore IncreFlashAttention PromptFlashAttention "
        "RmsNormGrad AddRmsNorm AddRmsNormCast AddLayerNorm LayerNormGrad LayerNormGradV3 "
        " LayerNormXBackpropV2 LayerNormBetaGammaBackpropV2 DeepNorm GroupNormSilu GroupNormSwish "
        "SwiGlu SwiGluGrad GeGlu GeGluV2 GeGluGrad GeGluGradV2 RotaryPositionEmbedding RotaryPositionEmbeddingGrad "
        "RotaryMul RotaryMulGrad ApplyRotaryPosEmb ScaledMaskedSoftmax ScaledMaskedSoftmaxGradV2 CrossEntropyLoss "
        "CrossEntropyLossGrad FastGelu FastGeluGrad MaskedSoftmaxWithRelPosBias MoeTokenPermute MoeTokenUnpermute "
        "MatmulAllReduce AllGatherMatmul MatmulReduceScatter MoeDistributeDispatch MoeDistributeCombine "
        "BatchNorm BatchNormV3 BNTrainingUpdate BNTrainingUpdateGrad GroupNormGrad InstanceNorm "
        "GroupedMatmul MatmulAdd BatchMatMulReduceScatterAlltoAll AlltoAllAllGatherBatchMatMul"
    ),
    "rms_norm": "RmsNorm",
    "group_norm": "GroupNorm GroupNormV2",
    "layer_norm": "LayerNorm LayerNormV3 LayerNormV4",
    "adamw": "ApplyAdamW ApplyAdamWV2 ApplyAdam ApplyAdamD ApplyFusedEmaAdam",
    "norm": "LpNorm LpNormV2 LpNormReduce LpNormReduceV2 LpNormUpdate LpNormUpdateV2",
    "matmul": "MatMul MatMulV2 MatMulV3 Gemm GemmV2 QuantBatchMatmulV3",
    "bmm": "BatchMatMul BatchMatMulV2 BatchMatMulV3",
    "conv": (
        "Conv2D Conv3D Conv2DBackpropInput Conv2DBackpropFilter Conv3DBackpropInput Conv3DBackpropFilter "
        "Conv2DBackpropInputD Conv2DBackpropFilterD DepthwiseConv2D"
    ),
    "softmax": "SoftmaxV2 Softmax",
    "softmax_grad": "SoftmaxGrad SoftmaxGradV2",
    "log_softmax": "LogSoftmaxV2 LogSoftmax",
    "log_softmax_grad": "LogSoftmaxGrad",
    "nll": "NLLLoss",
    "nll_grad": "NLLLossGrad",
    "dropout_mask": "DSAGenBitMask DropOutGenMask DropOutGenMaskV4 StatelessDropOutGenMask StatelessDropOutGenMaskV2",
    "dropout": "DropOutDoMask DropOutDoMaskV3 DropOutDoMaskV3D DropOut",
    "mask": "MaskedFill Select SelectV2 Tril Triu MaskedScale MaskedScatter MaskedSelect",
    "cast": "Cast",
    "copy": "TensorMove Identity Contiguous ViewCopy AsStrided",
    "slice": "Slice SliceV2 StridedSlice StridedSliceD StridedSliceV3 SplitV SplitVD Split SplitD Unpack",
    "cat": "ConcatD ConcatV2D Concat ConcatV2 Pack",
    "transpose": "Transpose",
    "add": "Add AddV2 Adds Axpy AxpyV2 AddN InplaceAdd",
    "sub": "Sub Subs",
    "mul": "Mul Muls",
    "div": "RealDiv Div DivNoNan Reciprocal",
    "neg": "Neg",
    "exp": "Exp",
    "log": "Log Log1p",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "pow": "Pow Pows Square",
    "tanh": "Tanh",
    "erf": "Erf",
    "sigmoid": "Sigmoid",
    "silu": "Swish Silu",
    "silu_grad": "SwishGrad SiluGrad",
    "gelu": "Gelu GeluV2",
    "cos": "Cos",
    "sin": "Sin",
    "sum": "ReduceSum ReduceSumD",
    "mean": "ReduceMean ReduceMeanD ReduceMeanWithCount",
    "max": "ReduceMax ReduceMaxD ArgMaxWithValue ArgMaxV2",
    "var": "ReduceVar ReduceStdV2Update ReduceStdWithMean",
    "compare": (
        "Less LessEqual Greater GreaterEqual Equal NotEqual LogicalAnd LogicalOr LogicalNot Maximum Minimum "
        "BitwiseAnd BitwiseOr BitwiseNot"
    ),
    "index": "Index GatherV2 GatherV3 GatherElements GatherElementsV2 GatherNd",
    "scatter": "IndexPutV2 IndexPut ScatterElements ScatterElementsV2 ScatterNdUpdate ScatterUpdate InplaceIndexAdd",
    "fill": "ZerosLike OnesLike Fill Range BroadcastTo Zeros",
    "addcmul": "Addcmul Addcdiv Lerp",
}
_FRAMEWORK_CALLS = {
    FUSED: (
        "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_cudnn_attention "
        "_flash_attention_forward _flash_attention_backward _efficient_attention_forward _efficient_attention_backward "
        "_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward "
        "cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm miopen_batch_norm_backward native_batch_norm "
        "native_batch_norm_backward native_layer_norm_backward "
        "native_group_norm_backward _fused_adamw_ _fused_adam_ _fused_sgd_"
    ),
    "rms_norm": "rms_norm _fused_rms_norm",
    "layer_norm": "native_layer_norm layer_norm",
    "group_norm": "native_group_norm group_norm",
    "matmul": "mm addmm _addmm_activation linear",
    "bmm": "bmm baddbmm baddbmm_",
    "conv": (
        "cudnn_convolution miopen_convolution _convolution convolution convolution_backward mkldnn_convolution "
        "cudnn_convolution_backward_weight cudnn_convolution_backward_input"
    ),
    "softmax": "_softmax softmax",
    "softmax_grad": "_softmax_backward_data",
    "log_softmax": "_log_softmax log_softmax",
    "log_softmax_grad": "_log_softmax_backward_data",
    "nll": "nll_loss_forward nll_loss nll_loss2d_forward",
    "nll_grad": "nll_loss_backward nll_loss2d_backward",
    "dropout": "native_dropout native_dropout_backward _fused_dropout dropout bernoulli_",
    "mask": "masked_fill masked_fill_ where tril triu",
    "copy": "copy_ clone contiguous _to_copy to",
    "cat": "cat stack",
    "add": "add add_ add_out",
    "sub": "sub sub_ rsub",
    "mul": "mul mul_",
    "div": "div div_ reciprocal",
    "neg": "neg",
    "exp": "exp exp_",
    "log": "log",
    "sqrt": "sqrt sqrt_",
    "rsqrt": "rsqrt",
    "pow": "pow square",
    "tanh": "tanh tanh_",
    "erf": "erf",
    "sigmoid": "sigmoid",
    "silu": "silu silu_",
    "silu_grad": "silu_backward",
    "gelu": "gelu",
    "cos": "cos",
    "sin": "sin",
    "sum": "sum",
    "mean": "mean",
    "max": "max amax",
    "var": "var var_mean std",
    "norm": "linalg_vector_norm norm",
    "index": "index gather embedding index_select",
    "scatter": "scatter_ index_put_ _index_put_impl_ scatter",
    "compare": "lt le gt ge eq ne logical_and logical_or logical_not bitwise_or bitwise_and clamp clamp_min clamp_",
    "fill": "fill_ zero_ zeros ones arange ones_like zeros_like",
    "addcmul": "addcmul_ addcdiv_ addcmul addcdiv lerp_",
}
_KERNEL_NAMES: tuple[tuple[str, str], ...] = (
    (
        FUSED,
        r"flash_|fmha|attn_fwd|attn_bwd|attention|\bbn_[fb]w|batch_?norm|layer_?norm|rms_?norm|multi_tensor_apply|rotary|swiglu",
    ),
    ("conv", r"convolve|wgrad_|dgrad_|winograd|implicit_gemm|convolution|conv2d|cudnn::cnn|xdlops_conv"),
    ("matmul", r"gemm|cijk_|\bmm_kernel|epilogue::impl|gemv|splitkreduce"),
    ("log_softmax_grad", r"logsoftmaxbackward"),
    ("log_softmax", r"logsoftmaxforward"),
    ("softmax_grad", r"softmax_warp_backward|softmaxbackward"),
    ("softmax", r"softmax_warp_forward|softmaxforward|softmax"),
    ("nll_grad", r"nll_loss_backward"),
    ("nll", r"nll_loss"),
    ("dropout", r"dropout"),
    ("mask", r"masked_fill|where_kernel|triu_tril"),
    ("cat", r"catarraybatchedcopy"),
    ("copy", r"copy_kernel|copydevicetodevice|loadwithcast.*copy"),
    ("mean", r"meanops"),
    ("var", r"welfordops"),
    ("norm", r"normtwoops|normops"),
    ("max", r"reduce_kernel.*max"),
    ("sum", r"reduce_kernel.*sum|sum_functor"),
    ("pow", r"pow_tensor"),
    ("rsqrt", r"rsqrt_kernel"),
    ("sqrt", r"sqrt_kernel"),
    ("neg", r"neg_kernel"),
    ("silu", r"silu_kernel"),
    ("gelu", r"gelu"),
    ("sigmoid", r"sigmoid"),
    ("tanh", r"tanh"),
    ("cos", r"cos_kernel"),
    ("sin", r"sin_kernel"),
    ("exp", r"exp_kernel"),
    ("log", r"log_kernel"),
    ("div", r"divfunctor|div_true|reciprocal"),
    ("mul", r"mulfunctor|mul_functor|mulscalarfunctor"),
    ("add", r"functor(?:onself)?_add|addfunctor"),
    ("index", r"index_?select|indexing|gather|embedding"),
    ("scatter", r"scatter|index_put"),
    ("compare", r"clamp|compare|logical"),
    ("fill", r"fillfunctor|arange|zero"),
)
_WORD_OF_TYPE: Mapping[str, str] = {
    name.casefold(): word for word, names in _ASCEND_TYPES.items() for name in names.split()
}
_WORD_OF_CALL: Mapping[str, str] = {name: word for word, names in _FRAMEWORK_CALLS.items() for name in names.split()}
_KERNEL_PATTERN = re.compile("|".join(f"(?P<w{index}>{text})" for index, (_, text) in enumerate(_KERNEL_NAMES)))
_HELPER_INSIDE = frozenset(("cast", "copy", "fill", "transpose", "slice"))
"""Ascend: kernels of these words that a call of another name launches beside its own kernel."""
_CALL_OF_HELPER = re.compile(
    r"cast|copy|contiguous|clone|zero|one|fill|transpose|permute|slice|arange|split|copyto", re.I
)


def ascend_type_of(kernel_name: str) -> str:
    """Returns the operator type inside an Ascend kernel name (``"aclnnMul_MulAiCore_Mul"``, ``"trans_TransData_3"``).

    A name without parts is the type itself, sometimes with the number of the node behind it (``"Conv2D4"``).
    """
    parts = [part for part in kernel_name.split("_") if part and not part.isdecimal()]
    name = parts[-1] if parts else kernel_name
    return name if name.casefold() in _WORD_OF_TYPE else name.rstrip("0123456789")


def framework_call_of(kernel_name: str) -> str:
    """Returns the aclnn call inside an Ascend kernel name (``"aclnnMul"``), "" where there is none."""
    return kernel_name.partition("_")[0] if kernel_name.startswith("aclnn") else ""


def word_of_ascend(op_type: str, kernel_name: str) -> str:
    """Returns the word of an Ascend kernel from its operator type and name."""
    word = _WORD_OF_TYPE.get(op_type.casefold())
    if word is None:
        folded = op_type.casefold()
        return FUSED if folded.startswith("foreach") else OTHER
    call = framework_call_of(kernel_name)
    if word in _HELPER_INSIDE and call and not _CALL_OF_HELPER.search(call):
        # aclnnMatmul_TransData, aclnnMaxDim_Cast: not what the user called, so patterns look through it. A reduction's
        # or multiplication's own kernel keeps its word because its type names the call.
        return HELPER
    return word


def word_of_call(call: str) -> str | None:
    """Returns the word of a framework operator (``"aten::add_"``), None where it has none of its own."""
    namespace, separator, name = call.partition("::")
    return _WORD_OF_CALL.get(name) if separator and namespace in ("aten", "npu") else None


def word_of_gpu_kernel(kernel_name: str) -> str:
    """Returns the word of a GPU kernel from its name."""
    match = _KERNEL_PATTERN.search(kernel_name.casefold())
    return _KERNEL_NAMES[int(str(match.lastgroup)[1:])][0] if match is not None else OTHER
