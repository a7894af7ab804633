"""The jobs behind the published gains of features: each as pairs of scenarios, without and with the feature."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from engine.workloads.fidelity.training_rows import MODELLINK_FILE, lines_of, modellink_scenario, published_scenario
from engine.workloads.scenario import Scenario

Pair: TypeAlias = tuple[Scenario, Scenario]
"""Without and with the feature."""
_FLASH = "fusion.attention"
_OFFLOAD = {"memory.offload": {"prefetch_distance": 4}}
_FUSIONS: dict[str, dict[str, Any]] = {name: {} for name in (_FLASH, "fusion.rms_norm", "fusion.swiglu", "fusion.rope")}


def _switched(scenario: Scenario, on: dict[str, dict[str, Any]], off: tuple[str, ...] = ()) -> Scenario:
    kept = {name: values for name, values in scenario.optimizations.items() if name not in off}
    return replace(scenario, optimizations={**kept, **on})


def _llama_7b(directory: Path) -> Scenario:
    """Returns the published job of Llama-2-7B."""
    rows = lines_of(directory / MODELLINK_FILE)
    return modellink_scenario(next(row for row in rows if (row["model"], row["params"]) == ("LLaMA2", "7B")))


def without(*features: str) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns the published job of Llama-2-7B without the features, against itself."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        whole = _llama_7b(directory)
        return ((_switched(whole, {}, features), whole),)

    return pairs


def flash_attention(directory: Path) -> tuple[Pair, ...]:
    """Returns the published job of Llama-2-7B against itself with its attention core in single operators."""
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


def toggled(
    job: Callable[[], tuple[Scenario, ...]], *choices: dict[str, dict[str, Any]]
) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns every job with every choice switched on, against itself."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        return tuple((base, _switched(base, choice)) for base in job() for choice in choices)

    return pairs


def relieved(job: Callable[[str], Scenario]) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns the job with full recomputation against the one without any."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        return ((job("full"), job("none")),)

    return pairs


LLAMA_70B = {"preset": "llama2-70b"}
_GPT_CUT = {"layers": 8, "hidden": 12288, "ffn": 49152, "heads": 96, "vocab": 51200, "gated": False}
BLOOM_7B = {"layers": 30, "hidden": 4096, "ffn": 16384, "heads": 32, "vocab": 250880, "gated": False}
BLOOM_176B = {"layers": 70, "hidden": 14336, "ffn": 57344, "heads": 112, "vocab": 250880, "gated": False}
COC_CHOICES = tuple({"communication.chunking": {"chunks": chunks}} for chunks in (2, 4))


def matmul_add() -> tuple[Scenario, ...]:
    """Returns Llama-2-70B on eight devices, with micro-batches of one and of four sequences."""
    parallel = {"tensor": 2, "pipeline": 2, "data": 2}
    return tuple(
        _job(LLAMA_70B, 8, parallel, {"micro": micro, "global": 64, "sequence_length": 4096}) for micro in (1, 4)
    )


def parameter_gather() -> tuple[Scenario, ...]:
    """Returns Llama-2-70B on 64 devices, with 16 and 64 micro-batches a step."""
    parallel = {"tensor": 8, "pipeline": 4, "data": 2}
    on: dict[str, dict[str, Any]] = {"communication.overlap_gradients": {}}
    return tuple(
        _job(LLAMA_70B, 64, parallel, {"micro": 1, "global": size, "sequence_length": 4096}, on=on)
        for size in (32, 128)
    )


def coc(
    model: dict[str, Any], stages: int, micro: int, length: int, sequences: int
) -> Callable[[], tuple[Scenario, ...]]:
    """Returns a model whose layers eight devices share, in stages, with nothing of its transfers hidden."""

    def job() -> tuple[Scenario, ...]:
        batch = {"micro": micro, "global": sequences, "sequence_length": length}
        return (_job(model, 8 * stages, {"tensor": 8, "pipeline": stages}, batch),)

    return job


def llama_7b_recompute(directory: Path) -> tuple[Pair, ...]:
    """Returns the published job of Llama-2-7B with everything computed again, against itself."""
    whole = _llama_7b(directory)
    full = _switched(whole, {"memory.recompute": {"granularity": "full"}})
    return ((full, whole),)


def to_full(directory: Path) -> tuple[Pair, ...]:
    """Returns the same the other way round."""
    return tuple((plain, full) for full, plain in llama_7b_recompute(directory))


def llama_13b(recompute: str) -> Scenario:
    """Returns Llama-2-13B on eight devices that share every layer."""
    batch = {"micro": 4, "global": 64, "sequence_length": 4096}
    return _job({"preset": "llama2-13b"}, 8, {"tensor": 8}, batch, recompute=recompute)


def gpt_cut(parallel: dict[str, int], micro: int, sequences: int) -> Callable[[str], Scenario]:
    """Returns eight layers of the width of GPT-3 on eight devices, by what is computed again."""

    def job(recompute: str) -> Scenario:
        batch = {"micro": micro, "global": sequences, "sequence_length": 8192}
        return _job(_GPT_CUT, 8, parallel, batch, recompute=recompute)

    return job


def activation_function(length: int, micro: int, tensor: int) -> Callable[[Path], tuple[Pair, ...]]:
    """Returns Llama-2-7B with SwiGLU in single operators against the same with its activation function recomputed."""

    def pairs(directory: Path) -> tuple[Pair, ...]:
        del directory
        batch = {"micro": micro, "global": micro * 8 // tensor, "sequence_length": length}
        job = _job({"preset": "llama2-7b"}, 8, {"tensor": tensor}, batch)
        base = _switched(job, {}, ("fusion.swiglu",))
        return ((base, _switched(base, {"memory.recompute": {"granularity": "activation"}})),)

    return pairs


def reuse(directory: Path) -> tuple[Pair, ...]:
    """Returns the published job of Llama-2-7B against itself with its fp32 parameters reused."""
    whole = _llama_7b(directory)
    return ((whole, _switched(whole, {"memory.reuse_fp32_parameters": {}})),)


def smart_swap_no_recompute(directory: Path) -> tuple[Pair, ...]:
    """Returns Llama-2-13B with everything computed again, against every layer swapped and against none."""
    del directory
    model = {"preset": "llama2-13b"}
    batch = {"micro": 1, "global": 16, "sequence_length": 16384}
    full = _job(model, 8, {"tensor": 8}, batch, recompute="full")
    return ((full, _job(model, 8, {"tensor": 8}, batch, on=_OFFLOAD)), (full, _job(model, 8, {"tensor": 8}, batch)))


def smart_swap_layout(directory: Path) -> tuple[Pair, ...]:
    """Returns Llama-2-7B shared by eight devices, against eight replicas with every layer swapped and with none."""
    del directory
    model, batch = {"preset": "llama2-7b"}, {"micro": 1, "global": 64, "sequence_length": 8192}
    wide = _job(model, 8, {"tensor": 8}, batch)
    return ((wide, _job(model, 8, {"tensor": 1}, batch, on=_OFFLOAD)), (wide, _job(model, 8, {"tensor": 1}, batch)))
