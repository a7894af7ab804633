"""Published gains of features as pairs of scenarios: the same job without and with it.

Where a row's configuration column says little more than a model's name, the published job of that model in the
throughput table is taken. What is chosen beyond the columns stands in ``note``. Several pairs of one row span a range:
they differ in what the row leaves open.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from engine.workloads.fidelity.training_rows import MODELLINK_FILE, lines_of, modellink_scenario, published_scenario
from engine.workloads.scenario import Scenario

Pair: TypeAlias = tuple[Scenario, Scenario]
"""Without and with the feature."""


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


_FLASH = "fusion.attention"
_FUSIONS: dict[str, dict[str, Any]] = {name: {} for name in (_FLASH, "fusion.rms_norm", "fusion.swiglu", "fusion.rope")}
_LLAMA_NOTE = "the published Llama-2-7B job (8 NPUs, PP2, 4K) without it"


def _switched(scenario: Scenario, on: dict[str, dict[str, Any]], off: tuple[str, ...] = ()) -> Scenario:
    kept = {name: values for name, values in scenario.optimizations.items() if name not in off}
    return replace(scenario, optimizations={**kept, **on})


def _llama_7b(directory: Path) -> Scenario:
    """Returns the published job of Llama-2-7B."""
    rows = lines_of(directory / MODELLINK_FILE)
    return modellink_scenario(next(row for row in rows if (row["model"], row["params"]) == ("LLaMA2", "7B")))


def _without(*features: str) -> Callable[[Path], tuple[Pair, ...]]:
    def pairs(directory: Path) -> tuple[Pair, ...]:
        whole = _llama_7b(directory)
        return ((_switched(whole, {}, features), whole),)

    return pairs


def _flash_attention(directory: Path) -> tuple[Pair, ...]:
    whole = _llama_7b(directory)
    plain = _switched(whole, {}, (_FLASH,))
    return ((_switched(plain, {"fusion.softmax_dropout": {}}), whole), (plain, whole))


def _job(
    model: dict[str, Any],
    count: int,
    parallel: dict[str, Any],
    batch: dict[str, Any],
    *,
    recompute: str = "none",
    on: dict[str, dict[str, Any]] | None = None,
) -> Scenario:
    chosen = {**_FUSIONS, **(on or {})}
    device = {"preset": "910b2", "count": count}
    return published_scenario(model, device, parallel, batch, recompute, chosen)


def _toggled(
    job: Callable[[], tuple[Scenario, ...]], *choices: dict[str, dict[str, Any]]
) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns every job with every choice switched on, against itself."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        return tuple((base, _switched(base, choice)) for base in job() for choice in choices)

    return pairs


def _relieved(job: Callable[[str], Scenario]) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns the job with full recomputation against the one without any."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        return ((job("full"), job("none")),)

    return pairs


_LLAMA_70B = {"preset": "llama2-70b"}
_GPT_CUT = {"layers": 8, "hidden": 12288, "ffn": 49152, "heads": 96, "vocab": 51200, "gated": False}
_BLOOM_7B = {"layers": 30, "hidden": 4096, "ffn": 16384, "heads": 32, "vocab": 250880, "gated": False}
_BLOOM_176B = {"layers": 70, "hidden": 14336, "ffn": 57344, "heads": 112, "vocab": 250880, "gated": False}
_COC_CHOICES = tuple({"communication.chunking": {"chunks": chunks}} for chunks in (2, 4))
_COC_NOTE = "in 2 and 4 pieces"
_BOUND = "full against none is the most there is; the feature computes again or swaps as much as memory asks for"


def _matmul_add() -> tuple[Scenario, ...]:
    parallel = {"tensor": 2, "pipeline": 2, "data": 2}
    return tuple(
        _job(_LLAMA_70B, 8, parallel, {"micro": micro, "global": 64, "sequence_length": 4096}) for micro in (1, 4)
    )


def _parameter_gather() -> tuple[Scenario, ...]:
    parallel = {"tensor": 8, "pipeline": 4, "data": 2}
    on: dict[str, dict[str, Any]] = {"communication.overlap_gradients": {}}
    return tuple(
        _job(_LLAMA_70B, 64, parallel, {"micro": 1, "global": size, "sequence_length": 4096}, on=on)
        for size in (32, 128)
    )


def _coc(
    model: dict[str, Any], stages: int, micro: int, length: int, sequences: int
) -> Callable[[], tuple[Scenario, ...]]:
    def job() -> tuple[Scenario, ...]:
        batch = {"micro": micro, "global": sequences, "sequence_length": length}
        return (_job(model, 8 * stages, {"tensor": 8, "pipeline": stages}, batch),)

    return job


def _llama_7b_recompute(directory: Path) -> tuple[Pair, ...]:
    whole = _llama_7b(directory)
    full = _switched(whole, {"memory.recompute": {"granularity": "full"}})
    return ((full, whole),)


def _to_full(directory: Path) -> tuple[Pair, ...]:
    return tuple((without, full) for full, without in _llama_7b_recompute(directory))


def _llama_13b(recompute: str) -> Scenario:
    batch = {"micro": 4, "global": 64, "sequence_length": 4096}
    return _job({"preset": "llama2-13b"}, 8, {"tensor": 8}, batch, recompute=recompute)


def _gpt_cut(parallel: dict[str, int], micro: int, sequences: int) -> Callable[[str], Scenario]:
    def job(recompute: str) -> Scenario:
        batch = {"micro": micro, "global": sequences, "sequence_length": 8192}
        return _job(_GPT_CUT, 8, parallel, batch, recompute=recompute)

    return job


def _activation_function(length: int, micro: int, tensor: int) -> AblationCase:
    names = {(8096, 2, 4): "seq8096 mbs2 TP4", (16384, 2, 4): "seq16384 mbs2 TP4", (12288, 1, 4): "seq12288 mbs1 TP4"}
    names |= {(12288, 2, 8): "seq12288 mbs2 TP8 DP1", (12288, 2, 4): "7B seq12288 mbs2 TP4 DP2 8p"}

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        batch = {"micro": micro, "global": micro * 8 // tensor, "sequence_length": length}
        job = _job({"preset": "llama2-7b"}, 8, {"tensor": tensor}, batch)
        base = _switched(job, {}, ("fusion.swiglu",))
        return ((base, _switched(base, {"memory.recompute": {"granularity": "activation"}})),)

    note = "Llama-2-7B with SwiGLU in single operators, whose factor and result both stay; GB read as GiB"
    return AblationCase("activation-function recompute", names[length, micro, tensor], Quantity.SAVED_GIB, pairs, note)


def _reuse(directory: Path) -> tuple[Pair, ...]:
    whole = _llama_7b(directory)
    return ((whole, _switched(whole, {"memory.reuse_fp32_parameters": {}})),)


_ACTIVATION_SHAPES = ((12288, 2, 4), (8096, 2, 4), (16384, 2, 4), (12288, 1, 4), (12288, 2, 8))
"""Sequence length, micro-batch, tensor group."""
_RATE, _PEAK = Quantity.THROUGHPUT, Quantity.PEAK_MEMORY
_SELECTIVE, _MEMORY = "adaptive selective recompute vs full recompute", "adaptive memory vs full recompute"
_OFFLOAD = {"memory.offload": {"prefetch_distance": 4}}


def _smart_swap_no_recompute(directory: Path) -> tuple[Pair, ...]:
    del directory
    model = {"preset": "llama2-13b"}
    batch = {"micro": 1, "global": 16, "sequence_length": 16384}
    full = _job(model, 8, {"tensor": 8}, batch, recompute="full")
    return ((full, _job(model, 8, {"tensor": 8}, batch, on=_OFFLOAD)), (full, _job(model, 8, {"tensor": 8}, batch)))


def _smart_swap_layout(directory: Path) -> tuple[Pair, ...]:
    del directory
    model, batch = {"preset": "llama2-7b"}, {"micro": 1, "global": 64, "sequence_length": 8192}
    wide = _job(model, 8, {"tensor": 8}, batch)
    return ((wide, _job(model, 8, {"tensor": 1}, batch, on=_OFFLOAD)), (wide, _job(model, 8, {"tensor": 1}, batch)))


ABLATION_CASES: tuple[AblationCase, ...] = (
    AblationCase(
        "FlashAttention",
        "Llama-2-7B",
        _RATE,
        _flash_attention,
        f"{_LLAMA_NOTE}: with one kernel for scale, mask and softmax (Megatron-LM's usual), and in single operators",
    ),
    AblationCase("RMSNorm fused", "Llama-2-7B", _RATE, _without("fusion.rms_norm"), _LLAMA_NOTE),
    AblationCase("RMSNorm fused", "Llama-2-7B", _PEAK, _without("fusion.rms_norm"), f"{_LLAMA_NOTE}; first stage"),
    AblationCase(
        "SwiGLU fused",
        "Llama-2-7B",
        _RATE,
        _without("fusion.swiglu"),
        f"{_LLAMA_NOTE}; each single operator is priced as finding what the one before wrote in the 192 MiB cache",
    ),
    AblationCase(
        "SwiGLU fused",
        "Llama-2-7B",
        _PEAK,
        _without("fusion.swiglu"),
        f"{_LLAMA_NOTE}; first stage. One tensor more is kept, as the rows of activation-function recompute confirm; "
        "the published figure would take three",
    ),
    AblationCase(
        "RoPE fused", "Llama-2-7B", _RATE, _without("fusion.rope"), f"{_LLAMA_NOTE}; published without a decimal"
    ),
    AblationCase(
        "matmul_add fused (gradient accumulation)",
        "llama2-70B 4k TP2 PP2 DP2",
        _RATE,
        _toggled(_matmul_add, {"fusion.gradient_accumulation": {}}),
        "all 80 layers, micro-batches of one and of four sequences: an addition per micro-batch is saved",
    ),
    AblationCase(
        "async DDP param gather",
        "LLaMA2-70B",
        _RATE,
        _toggled(_parameter_gather, {"communication.overlap_parameters": {}}),
        "64 NPUs (TP8 PP4 DP2), 16 and 64 micro-batches; one gathering a step is won, so fewer micro-batches gain more",
    ),
    AblationCase(
        "CoC compute/comm fusion",
        "BLOOM-7B",
        _RATE,
        _toggled(_coc(_BLOOM_7B, 1, 4, 2048, 16), *_COC_CHOICES),
        f"TP8, micro-batches of 4, {_COC_NOTE}; bare transfers are 40 % of this step, and a fifth of them is hidden",
    ),
    AblationCase(
        "CoC",
        "BLOOM-176B",
        _RATE,
        _toggled(_coc(_BLOOM_176B, 10, 2, 2048, 128), *_COC_CHOICES),
        f"TP8 PP10, {_COC_NOTE}",
    ),
    AblationCase(
        "CoC",
        "LLaMA2-70B",
        _RATE,
        _toggled(_coc(_LLAMA_70B, 4, 1, 4096, 64), *_COC_CHOICES),
        f"TP8 PP4, micro-batches of 1, {_COC_NOTE}",
    ),
    AblationCase(_SELECTIVE, "Llama2-7B", _RATE, _llama_7b_recompute, _BOUND),
    AblationCase(_SELECTIVE, "Llama2-13B", _RATE, _relieved(_llama_13b), f"TP8, micro-batches of 4; {_BOUND}"),
    AblationCase(
        _MEMORY,
        "gpt-175B cut NL8 h12288 seq8192 TP8 mbs10 gbs40",
        _RATE,
        _relieved(_gpt_cut({"tensor": 8}, 10, 40)),
        f"eight layers on both sides; {_BOUND}",
    ),
    AblationCase(
        _MEMORY,
        "NL8 h12288 seq8192 TP2 PP4 mbs3 gbs9",
        _RATE,
        _relieved(_gpt_cut({"tensor": 2, "pipeline": 4}, 3, 9)),
        _BOUND,
    ),
    AblationCase(
        _MEMORY,
        "NL8 h12288 seq8192 TP2 PP4 VPP2 mbs2 gbs8",
        _RATE,
        _relieved(_gpt_cut({"tensor": 2, "pipeline": 4, "virtual_pipeline": 2}, 2, 8)),
        _BOUND,
    ),
    AblationCase(
        "smart swap allows TP8->TP1",
        "llama2 8p seq8k L32",
        _RATE,
        _smart_swap_layout,
        "Llama-2-7B, 64 sequences a step; every layer swapped, and no layer: it swaps what has to go",
    ),
    AblationCase(
        "smart swap allows full-recompute off",
        "llama2 8p seq16k L40",
        _RATE,
        _smart_swap_no_recompute,
        "Llama-2-13B, TP8; every layer swapped, and no layer: it swaps what has to go",
    ),
    AblationCase("full recompute (FSDP2 guide)", "generic", _RATE, _to_full, "on the published Llama-2-7B job"),
    AblationCase("full recompute (FSDP2 guide)", "generic", _PEAK, _to_full, "on the published Llama-2-7B job"),
    *(
        _activation_function(*shape)
        for shape in ((12288, 2, 4), (8096, 2, 4), (16384, 2, 4), (12288, 1, 4), (12288, 2, 8))
    ),
    AblationCase(
        "reuse fp32 param", "any", Quantity.SAVED_BYTES_PER_PARAMETER, _reuse, "on the published Llama-2-7B job"
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
