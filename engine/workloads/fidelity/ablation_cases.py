"""Published gains of features as pairs of scenarios: the same job without and with it.

Where a row's configuration column says little more than a model's name, the published job of that model in the
throughput table is taken. What is chosen beyond the columns stands in ``note``. Several pairs of one row span a range:
they differ in what the row leaves open.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.workloads.fidelity.ablation_jobs import (
    BLOOM_7B,
    BLOOM_176B,
    COC_CHOICES,
    LLAMA_70B,
    Pair,
    activation_function,
    coc,
    flash_attention,
    gpt_cut,
    llama_7b_recompute,
    llama_13b,
    matmul_add,
    parameter_gather,
    relieved,
    reuse,
    smart_swap_layout,
    smart_swap_no_recompute,
    to_full,
    toggled,
    without,
)


class Quantity(StrEnum):
    """What a row is about."""

    THROUGHPUT = "throughput"
    PEAK_MEMORY = "peak memory"
    SAVED_GIB = "GiB saved"
    SAVED_BYTES_PER_PARAMETER = "bytes saved per parameter of a rank's state"


@dataclass(frozen=True, slots=True)
class AblationCase:
    """A row that can be run.

    Attributes:
        feature: As in the table.
        config: As in the table.
        quantity: What is compared; the metric column of the row must belong to it.
        pairs: From the directory of the tables.
        note: Configuration chosen, and what explains a difference.
    """

    feature: str
    config: str
    quantity: Quantity
    pairs: Callable[[Path], tuple[Pair, ...]]
    note: str


_LLAMA_NOTE = "the published Llama-2-7B job (8 NPUs, PP2, 4K) without it"
_COC_NOTE = "in 2 and 4 pieces"
_BOUND = "full against none is the most there is; the feature computes again or swaps as much as memory asks for"
_RATE, _PEAK = Quantity.THROUGHPUT, Quantity.PEAK_MEMORY
_SELECTIVE, _MEMORY = "adaptive selective recompute vs full recompute", "adaptive memory vs full recompute"
_ACTIVATION_ROWS = {
    "7B seq12288 mbs2 TP4 DP2 8p": (12288, 2, 4),
    "seq8096 mbs2 TP4": (8096, 2, 4),
    "seq16384 mbs2 TP4": (16384, 2, 4),
    "seq12288 mbs1 TP4": (12288, 1, 4),
    "seq12288 mbs2 TP8 DP1": (12288, 2, 8),
}
"""Configuration → sequence length, micro-batch, tensor group."""
_ACTIVATION_NOTE = "Llama-2-7B with SwiGLU in single operators, whose factor and result both stay; GB read as GiB"

ABLATION_CASES: tuple[AblationCase, ...] = (
    AblationCase(
        "FlashAttention",
        "Llama-2-7B",
        _RATE,
        flash_attention,
        f"{_LLAMA_NOTE}: with one kernel for scale, mask and softmax (Megatron-LM's usual), and in single operators",
    ),
    AblationCase("RMSNorm fused", "Llama-2-7B", _RATE, without("fusion.rms_norm"), _LLAMA_NOTE),
    AblationCase("RMSNorm fused", "Llama-2-7B", _PEAK, without("fusion.rms_norm"), f"{_LLAMA_NOTE}; first stage"),
    AblationCase(
        "SwiGLU fused",
        "Llama-2-7B",
        _RATE,
        without("fusion.swiglu"),
        f"{_LLAMA_NOTE}; each single operator is priced as finding what the one before wrote in the 192 MiB cache",
    ),
    AblationCase(
        "SwiGLU fused",
        "Llama-2-7B",
        _PEAK,
        without("fusion.swiglu"),
        f"{_LLAMA_NOTE}; first stage. One tensor more is kept, as the rows of activation-function recompute confirm; "
        "the published figure would take three",
    ),
    AblationCase(
        "RoPE fused", "Llama-2-7B", _RATE, without("fusion.rope"), f"{_LLAMA_NOTE}; published without a decimal"
    ),
    AblationCase(
        "matmul_add fused (gradient accumulation)",
        "llama2-70B 4k TP2 PP2 DP2",
        _RATE,
        toggled(matmul_add, {"fusion.gradient_accumulation": {}}),
        "all 80 layers, micro-batches of one and of four sequences: an addition per micro-batch is saved",
    ),
    AblationCase(
        "async DDP param gather",
        "LLaMA2-70B",
        _RATE,
        toggled(parameter_gather, {"communication.overlap_parameters": {}}),
        "64 NPUs (TP8 PP4 DP2), 16 and 64 micro-batches; one gathering a step is won, so fewer micro-batches gain more",
    ),
    AblationCase(
        "CoC compute/comm fusion",
        "BLOOM-7B",
        _RATE,
        toggled(coc(BLOOM_7B, 1, 4, 2048, 16), *COC_CHOICES),
        f"TP8, micro-batches of 4, {_COC_NOTE}; bare transfers are 40 % of this step, and a fifth of them is hidden",
    ),
    AblationCase(
        "CoC",
        "BLOOM-176B",
        _RATE,
        toggled(coc(BLOOM_176B, 10, 2, 2048, 128), *COC_CHOICES),
        f"TP8 PP10, {_COC_NOTE}",
    ),
    AblationCase(
        "CoC",
        "LLaMA2-70B",
        _RATE,
        toggled(coc(LLAMA_70B, 4, 1, 4096, 64), *COC_CHOICES),
        f"TP8 PP4, micro-batches of 1, {_COC_NOTE}",
    ),
    AblationCase(_SELECTIVE, "Llama2-7B", _RATE, llama_7b_recompute, _BOUND),
    AblationCase(_SELECTIVE, "Llama2-13B", _RATE, relieved(llama_13b), f"TP8, micro-batches of 4; {_BOUND}"),
    AblationCase(
        _MEMORY,
        "gpt-175B cut NL8 h12288 seq8192 TP8 mbs10 gbs40",
        _RATE,
        relieved(gpt_cut({"tensor": 8}, 10, 40)),
        f"eight layers on both sides; {_BOUND}",
    ),
    AblationCase(
        _MEMORY,
        "NL8 h12288 seq8192 TP2 PP4 mbs3 gbs9",
        _RATE,
        relieved(gpt_cut({"tensor": 2, "pipeline": 4}, 3, 9)),
        _BOUND,
    ),
    AblationCase(
        _MEMORY,
        "NL8 h12288 seq8192 TP2 PP4 VPP2 mbs2 gbs8",
        _RATE,
        relieved(gpt_cut({"tensor": 2, "pipeline": 4, "virtual_pipeline": 2}, 2, 8)),
        _BOUND,
    ),
    AblationCase(
        "smart swap allows TP8->TP1",
        "llama2 8p seq8k L32",
        _RATE,
        smart_swap_layout,
        "Llama-2-7B, 64 sequences a step; every layer swapped, and no layer: it swaps what has to go",
    ),
    AblationCase(
        "smart swap allows full-recompute off",
        "llama2 8p seq16k L40",
        _RATE,
        smart_swap_no_recompute,
        "Llama-2-13B, TP8; every layer swapped, and no layer: it swaps what has to go",
    ),
    AblationCase("full recompute (FSDP2 guide)", "generic", _RATE, to_full, "on the published Llama-2-7B job"),
    AblationCase("full recompute (FSDP2 guide)", "generic", _PEAK, to_full, "on the published Llama-2-7B job"),
    *(
        AblationCase(
            "activation-function recompute", config, Quantity.SAVED_GIB, activation_function(*shape), _ACTIVATION_NOTE
        )
        for config, shape in _ACTIVATION_ROWS.items()
    ),
    AblationCase(
        "reuse fp32 param", "any", Quantity.SAVED_BYTES_PER_PARAMETER, reuse, "on the published Llama-2-7B job"
    ),
)
"""Every row the runtime can express."""

NOT_EXPRESSIBLE = {
    "automated pipeline": "stages of unequal numbers of layers are not lowered",
    "GMM": "experts are always computed by one grouped product here, never one after another",
    "ampipe": "its chunking of attention with the exchange of tokens is not lowered",
    "pipe-experts": "transfers of tokens are not cut in pieces beside the experts' products",
    "nanopipe": "weights' gradients are not separated from inputs' gradients in the schedule",
    "MoE allgather dispatcher opt": "tokens are dispatched by exchange, never by gathering",
    "MoE alltoall overlap": "the exchange of tokens is not moved beside shared experts or attention",
    "2D tensor parallel": "one tensor group per rank",
    "CCLoRA": "no low-rank adapters",
    "fused_mlp": "no fine-tuning jobs of padded samples",
    "CP algorithm": "one way of context parallelism (gathered keys and values)",
    "prefix cache": "serving, not training",
}
"""Beginning of a row's feature → why it cannot be run."""
