"""Published training runs beside what the runtime says of them: throughput on Ascend, time and memory on A100.

Every row is run as a scenario that names what the row publishes. Sources: the throughput table of MindSpeed-LLM
(ModelLink, October 2024) and Korthikanti et al. 2022 (arXiv:2205.05198).
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Float64Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.core.units import GIB
from engine.workloads.run_state import prepared_run
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate
from engine.workloads.step_memory import serve_step

MODELLINK_FILE = "train_ascend_modellink_202410.csv"
MEGATRON_TIME_FILE = "train_megatron_seqsel_a100_time.csv"
MEGATRON_MEMORY_FILE = "mem_megatron_seqsel_a100.csv"
_UNLIMITED_BYTES = 1 << 50
_PEAK_910B2 = 353.9e12
_PEAK_A100 = 312e12
_OPTIMIZATIONS = {
    "flash": "fusion.attention",
    "fused_rms": "fusion.rms_norm",
    "fused_swiglu": "fusion.swiglu",
    "fused_rope": "fusion.rope",
    "mc2": "fusion.matmul_all_reduce",
    "overlap_grad": "communication.overlap_gradients",
    "overlap_param": "communication.overlap_parameters",
    "reuse_fp32": "memory.reuse_fp32_parameters",
}
"""Column of the table → what it switches on."""
_USUAL_VOCABULARY = 32000
_HEAD_DIM = {"Gemma2": 256}
"""Sizes of heads that are not hidden ÷ heads, from the model's own configuration."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Rows of a table. float64 columns, shape (n,).

    Attributes:
        names: What each row is.
        predicted: What the runtime says.
        measured: What was published.
        constant: The naive answer: the median share of peak FLOP/s of the same rows (NaN where there is none).
    """

    names: tuple[str, ...]
    predicted: Float64Array
    measured: Float64Array
    constant: Float64Array


def lines_of(path: Path) -> list[dict[str, str]]:
    """Returns the rows of a table. Raises TraceReadError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TraceReadError(f"cannot be read: {error}", SourcePosition(path)) from error


def modellink_scenario(row: Mapping[str, str]) -> Scenario:
    """Returns the scenario of a row of the throughput table."""
    hidden, heads = _number(row["hidden"]), _number(row["heads"])
    model: dict[str, Any] = {
        "layers": _number(row["layers"]),
        "hidden": hidden,
        "ffn": _number(row["ffn"], 4 * hidden),
        "heads": heads,
        "kv_heads": _number(row["kv_groups"], heads),
        "vocab": _number(row["vocab"], _USUAL_VOCABULARY),
    }
    if row["model"] in _HEAD_DIM or hidden % heads:
        model["head_dim"] = _HEAD_DIM.get(row["model"], 128)
    if _number(row["experts"]):
        model |= {"experts": _number(row["experts"]), "top_k": _number(row["topk"])}
    if row["model"] == "GPT4":
        model["gated"] = False
    parallel = {
        "tensor": _number(row["tp"], 1),
        "pipeline": _number(row["pp"], 1),
        "context": _number(row["cp"], 1),
        "expert": _number(row["ep"], 1),
        "virtual_pipeline": _number(row["vpp"], 1),
        "sequence_parallel": row["sp"] == "True",
        "distributed_optimizer": row["dist_opt"] == "True",
    }
    return published_scenario(
        model,
        {"preset": "910b2", "count": _number(row["npus"])},
        parallel,
        {"micro": _number(row["mbs"]), "global": _number(row["gbs"]), "sequence_length": _number(row["seq"])},
        "full" if row["recompute_gran"] == "full" else "none",
        {name: {} for column, name in _OPTIMIZATIONS.items() if row[column] == "True"},
    )


def read_modellink(directory: Path) -> TrainingRows:
    """Returns tokens per second and NPU of the throughput table."""
    rows = lines_of(directory / MODELLINK_FILE)
    predicted = []
    for row in rows:
        result = simulate(modellink_scenario(row))
        predicted.append(result.tokens_per_s / result.scenario.device_count)
    measured = np.array([float(row["tokens_per_s_per_npu"]) for row in rows])
    work = np.array([float(row["model_gflop_per_token"]) * 1e9 for row in rows])
    share = float(np.median(measured * work / _PEAK_910B2))
    names = tuple(f"{row['model']} {row['params']} {row['seq_readme']}" for row in rows)
    return TrainingRows(names, np.array(predicted), measured, share * _PEAK_910B2 / work)


def megatron_scenario(row: Mapping[str, str], recompute: str, sequence_parallel: bool) -> Scenario:
    """Returns the scenario of a row of the A100 tables."""
    model = {
        "layers": int(row["layers"]),
        "hidden": int(row["hidden"]),
        "ffn": int(row["ffn"]),
        "heads": int(row["heads"]),
        "head_dim": int(row["hidden"]) // int(row["heads"]),
        "vocab": 51200,
        "gated": False,
        "tied_embeddings": True,
        "dtype": "fp16",
    }
    parallel = {
        "data": int(row["dp"]),
        "tensor": int(row["tp"]),
        "pipeline": int(row["pp"]),
        "virtual_pipeline": int(row["vpp"]),
        "sequence_parallel": sequence_parallel,
        "distributed_optimizer": False,
    }
    batch = {
        "micro": int(row["micro_batch"]),
        "global": int(row["global_batch"]),
        "sequence_length": int(row["seq"]),
    }
    device = {"preset": "a100-80g", "count": int(row["gpus"])}
    return published_scenario(model, device, parallel, batch, recompute, {})


def read_megatron_time(directory: Path) -> TrainingRows:
    """Returns seconds per iteration of the A100 table."""
    rows = lines_of(directory / MEGATRON_TIME_FILE)
    predicted, work = [], []
    for row in rows:
        recompute = {"full": "full", "attn_only": "selective"}[row["recompute"]]
        result = simulate(megatron_scenario(row, recompute, row["seq_par_ag_redo"] == "True"))
        predicted.append(float(result.step_ns[-1]) / 1e9)
        work.append(_gpt_flops(row) / int(row["gpus"]))
    measured = np.array([float(row["iteration_s"]) for row in rows])
    share = float(np.median(np.array(work) / measured / _PEAK_A100))
    names = tuple(f"{row['model']} {row['mode']}" for row in rows)
    return TrainingRows(names, np.array(predicted), measured, np.array(work) / (share * _PEAK_A100))


def _gpt_flops(row: Mapping[str, str]) -> float:
    """Returns the FLOPs of a step without recomputation: 72·b·s·l·h²·(1 + s/6h + V/12lh), Narayanan et al. 2021."""
    hidden, layers, length = int(row["hidden"]), int(row["layers"]), int(row["seq"])
    inner = 1 + length / (6 * hidden) + 51200 / (12 * layers * hidden)
    return 72.0 * int(row["global_batch"]) * length * layers * hidden**2 * inner


def read_megatron_memory(directory: Path) -> TrainingRows:
    """Returns GiB (weights with state, activations) and shares of activations, in %, of the A100 table."""
    shapes = {row["model"]: row for row in lines_of(directory / MEGATRON_TIME_FILE)}
    known: dict[tuple[str, str], tuple[float, float]] = {}
    names, predicted, measured = [], [], []
    for row in lines_of(directory / MEGATRON_MEMORY_FILE):
        model, mode = row["model"], row["mode"]
        if row["quantity"].endswith("relative") and mode == "none":
            continue
        persistent, activation = _memory_gib(known, shapes[model], "none" if mode == "-" else mode)
        if row["quantity"].startswith("par"):
            value = persistent
        elif row["quantity"].endswith("relative"):
            value = 100 * activation / _memory_gib(known, shapes[model], "none")[1]
        else:
            value = activation
        names.append(f"{model} {row['quantity']} {mode}")
        predicted.append(value)
        measured.append(float(row["value"]))
    return TrainingRows(tuple(names), np.array(predicted), np.array(measured), np.full(len(names), np.nan))


_MODES = {
    "none": ("none", False),
    "seq": ("none", True),
    "selective": ("selective", False),
    "seq+selective": ("selective", True),
    "full": ("full", False),
}


def _memory_gib(
    known: dict[tuple[str, str], tuple[float, float]], shape: Mapping[str, str], mode: str
) -> tuple[float, float]:
    """Returns GiB of what persists and of the activations at the peak, on the first stage."""
    key = (shape["model"], mode)
    if key not in known:
        recompute, sequence_parallel = _MODES[mode]
        state = prepared_run(megatron_scenario(shape, recompute, sequence_parallel))
        memory = state.memories[0]
        memory.load(state.persistent[0])
        serve_step(state, 0, 0)
        record = memory.record()
        held = record.end_allocated_bytes
        known[key] = (held / GIB, (record.peak_allocated_bytes - held) / GIB)
    return known[key]


def published_scenario(
    model: Mapping[str, Any],
    device: Mapping[str, Any],
    parallel: Mapping[str, Any],
    batch: Mapping[str, Any],
    recompute: str,
    optimizations: Mapping[str, Any],
) -> Scenario:
    """Returns a scenario of the tables of a scenario file, with memory to spare: two steps, none of them recorded."""
    document = {
        "model": model,
        "device": device,
        "parallel": parallel,
        "batch": batch,
        "memory": {"recompute": recompute, "limit_bytes": _UNLIMITED_BYTES},
        "run": {"steps": 2, "profile_steps": []},
        "optimizations": optimizations,
    }
    return scenario_from_document(document, Path())


def _number(text: str, default: int = 0) -> int:
    """Returns a whole number of a table, which writes it as ``8`` or ``8.0``; the default for an empty field."""
    return int(float(text)) if text.strip() else default
