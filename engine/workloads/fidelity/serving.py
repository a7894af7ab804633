"""The serving engine against a recorded vLLM run, and against published concurrency and throughput."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from engine.analyses.serving.latency import serving_analysis
from engine.analyses.serving.tables import ServedRequests
from engine.core.arrays import Float64Array
from engine.core.progress import Progress
from engine.core.units import NS_PER_MS, NS_PER_S
from engine.devices.catalogue import load_device, topology_of
from engine.devices.spec import DeviceSpec
from engine.runtime.collectives import network_of
from engine.workloads.fidelity.scores import Scores, scores
from engine.workloads.fidelity.tables import (
    FidelityResult,
    FidelityRow,
    FidelityTable,
    RowVerdict,
    Target,
    ValidationDataError,
)
from engine.workloads.models.catalogue import load_model
from engine.workloads.models.spec import ModelSpec
from engine.workloads.serving.calibration import fitted_serving
from engine.workloads.serving.engine_costs import EngineCosts, engine_costs
from engine.workloads.serving.forward import Shard
from engine.workloads.serving.pricing import iteration_prices, kv_block_count
from engine.workloads.serving.recorded_requests import recorded_requests
from engine.workloads.serving.request_stream import RequestStream, drawn_requests
from engine.workloads.serving.serve import serve
from engine.workloads.serving.settings import Arrival, RequestSettings, ServingSettings, TokenLengths, WeightFormat

REQUESTS_FILE = "llmservingsim/RTXPRO6000_Llama-3.1-8B_requests.csv"
CONCURRENCY_FILE = "infer_vllm_ascend_a2_qwen3_32b_concurrency.csv"
BASELINES_FILE = "infer_vllm_ascend_ci_baselines.csv"
FITTED_REQUESTS = 100
"""The first requests of the recorded run; all others are predicted."""
_RECORDED = ServingSettings(max_batch=128, max_batched_tokens=8192, graph_mode=True)
"""128 is the largest number of requests that ran at once in the recording; 8,192 tokens are vLLM's default on a card of
this size."""


@dataclass(frozen=True, slots=True, eq=False)
class _Recording:
    """The recorded run, by arrival; times in ns, float64."""

    stream: RequestStream
    ttft_ns: Float64Array
    tpot_ns: Float64Array
    received_ns: Float64Array


def _recording(directory: Path) -> _Recording:
    path = directory / REQUESTS_FILE
    with path.open(encoding="utf-8", newline="") as opened:
        rows = sorted(csv.DictReader(opened), key=lambda row: float(row["arrival_s"]))
    columns = {name: np.array([float(row[name]) for row in rows]) * NS_PER_S for name in rows[0] if name.endswith("_s")}
    output = np.array([float(row["output_toks"]) for row in rows])
    first_ns = columns["first_token_s"]
    return _Recording(
        stream=recorded_requests(path),
        ttft_ns=first_ns - columns["arrival_s"],
        tpot_ns=(columns["last_token_s"] - first_ns) / np.maximum(output - 1, 1),
        received_ns=columns["queued_s"] - columns["arrival_s"],
    )


def _served(
    stream: RequestStream, shard: Shard, settings: ServingSettings, device: DeviceSpec, costs: EngineCosts
) -> ServedRequests:
    network = network_of(topology_of(device), None)
    prices = iteration_prices(shard, device, network, settings, costs)
    return serve(stream, settings, prices, kv_block_count(shard, device, settings)).requests


def evaluate_requests(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the recorded vLLM run served again: arrivals and lengths in, times out."""
    recording = _recording(directory)
    device = load_device("rtx-pro-6000")
    shard = Shard(load_model("llama3-8b"))
    part = slice(0, FITTED_REQUESTS)
    received_ns = float(recording.received_ns[part].mean())
    run = partial(_served, recording.stream, shard, _RECORDED)
    fit = fitted_serving(
        device, engine_costs(device), run, recording.ttft_ns[part] - received_ns, recording.tpot_ns[part], progress
    )
    served = run(fit.device, fit.costs)
    ttft_ns = (served.first_token_ns - served.arrival_ns).astype(np.float64) + received_ns
    tpot_ns = (served.last_token_ns - served.first_token_ns) / np.maximum(served.output_tokens - 1, 1)
    rows, pairs = [], []
    for title, chosen in (
        ("all requests", slice(None)),
        ("requests the fit did not see", slice(FITTED_REQUESTS, None)),
    ):
        for quantity, predicted, measured in (
            ("time to first token", ttft_ns, recording.ttft_ns),
            ("time per token", tpot_ns, recording.tpot_ns),
        ):
            for word, limit, reduce in (("mean", 0.10, _mean), ("p90", 0.15, _p90)):
                ours, theirs = reduce(predicted[chosen]), reduce(measured[chosen])
                rows.append(_row(title, f"{word} {quantity}, ms", ours / NS_PER_MS, theirs / NS_PER_MS, limit))
                pairs.append((ours, theirs))
    ratio = fit.device.value("hbm_stream_ratio")
    note = (
        f"fitted to the first {FITTED_REQUESTS} of {len(recording.stream)} requests: memory reaches {ratio:.1%} of its "
        f"rate, an iteration costs the engine {fit.costs.iteration_ns / NS_PER_MS:.2f} ms; "
        f"{received_ns / NS_PER_MS:.1f} ms between arrival and queue are the mean of the same requests"
    )
    return FidelityResult(
        table="serving-requests",
        title="a vLLM run of Llama-3.1-8B on an RTX PRO 6000, request by request",
        scores=_pairs(pairs),
        target=Target("p90_ratio", 0.10),
        notes=(note,),
        rows=tuple(rows),
    )


def _mean(values: Float64Array) -> float:
    return float(values.mean())


def _p90(values: Float64Array) -> float:
    return float(np.percentile(values, 90))


def _row(name: str, quantity: str, predicted: float, published: float, limit: float, note: str = "") -> FidelityRow:
    within = abs(predicted / published - 1.0) <= limit
    verdict = RowVerdict.WITHIN if within else RowVerdict.RIGHT_SIGN
    return FidelityRow(name, quantity, (predicted, predicted), (published, published), verdict, note)


def _pairs(pairs: list[tuple[float, float]]) -> Scores:
    predicted, measured = np.array(pairs, dtype=np.float64).T
    return scores(predicted, measured)


def evaluate_concurrency(directory: Path, progress: Progress) -> FidelityResult:
    """Returns Qwen3-32B on four 910B at several concurrencies."""
    with (directory / CONCURRENCY_FILE).open(encoding="utf-8", newline="") as opened:
        published = list(csv.DictReader(opened))
    device, model = load_device("910b2"), load_model("qwen3-32b")
    rows, pairs = [], []
    parts: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(published):
        progress(number / len(published), f"{row['dataset']} at {row['concurrency']}")
        per_token_ms, tokens_per_s = _closed_loop(row, device, model)
        fitted = row["dataset"] == "ARC"
        name = f"{row['dataset']}, concurrency {row['concurrency']}{' (fitted)' if fitted else ''}"
        rows.append(_row(name, "time per token, ms", per_token_ms, float(row["base_tpot_ms"]), 0.10))
        rows.append(_row(name, "tokens per second", tokens_per_s, float(row["base_tps"]), 0.10))
        pairs.append((per_token_ms, float(row["base_tpot_ms"])))
        parts.setdefault("fitted" if fitted else "not seen", []).append(pairs[-1])
    return FidelityResult(
        table="serving-concurrency",
        title="time per token of Qwen3-32B on four 910B2 by number of users",
        scores=_pairs(pairs),
        parts={name: _pairs(values) for name, values in parts.items()},
        target=Target("p90_ratio", 0.10),
        notes=(
            "the costs of eager dispatch and of a sequence were read off the ARC rows; the others are predictions",
            "only mean lengths are published, so all requests are alike; tokens per second depend on how runs end",
        ),
        rows=tuple(rows),
    )


def _closed_loop(row: Mapping[str, str], device: DeviceSpec, model: ModelSpec) -> tuple[float, float]:
    users = int(row["concurrency"])
    asked = RequestSettings(
        arrival=Arrival.CLOSED_LOOP,
        users=users,
        count=int(row["requests"]),
        prompt=TokenLengths(float(row["avg_in"])),
        output=TokenLengths(float(row["avg_out"])),
    )
    settings = ServingSettings(requests=asked, max_batch=max(users, 2), max_batched_tokens=40_960)
    return _tpot_and_rate(settings, Shard(model, int(row["tp"])), device)


def _tpot_and_rate(settings: ServingSettings, shard: Shard, device: DeviceSpec) -> tuple[float, float]:
    network = network_of(topology_of(device), None)
    prices = iteration_prices(shard, device, network, settings, engine_costs(device))
    run = serve(drawn_requests(settings.requests, 0), settings, prices, kv_block_count(shard, device, settings))
    analysis = serving_analysis(run)
    return (analysis.tpot.mean_ns / NS_PER_MS if analysis.tpot else 0.0), analysis.output_tokens_per_s


_QWQ = ModelSpec("qwq-32b", 64, 5120, 27648, 40, 8, 128, 152064, qkv_bias=True, source="Qwen/QwQ-32B config.json")
_BASELINE_MODELS = {"Qwen/QwQ-32B": _QWQ, "vllm-ascend/Qwen3-32B-W8A8-QuaRot": None}
"""Models of the table whose architecture the engine has, by the table's name; None where no row of it can be run."""


def evaluate_baselines(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the nightly baselines of vllm-ascend: what can be modelled, and why the rest cannot."""
    with (directory / BASELINES_FILE).open(encoding="utf-8", newline="") as opened:
        published = list(csv.DictReader(opened))
    rows, pairs = [], []
    for number, row in enumerate(published):
        progress(number / len(published), row["case"])
        measured = float(row["baseline_output_tok_s"])
        missing = _not_modelled(row)
        if missing:
            value = (measured, measured)
            rows.append(FidelityRow(row["case"], "tokens/s", None, value, RowVerdict.NOT_EXPRESSIBLE, missing))
            continue
        predicted = _baseline_rate(row)
        note = "an A3 die of 24 cores; all prompts and answers of the stated lengths"
        rows.append(_row(row["case"], "tokens/s", predicted, measured, 0.15, note))
        pairs.append((predicted, measured))
    return FidelityResult(
        table="serving-baselines",
        title="nightly throughput baselines of vllm-ascend",
        scores=_pairs(pairs),
        target=Target("mape_ratio", 0.15),
        notes=(f"{len(published) - len(pairs)} of {len(published)} rows are not modelled: see each row",),
        rows=tuple(rows),
    )


def _not_modelled(row: Mapping[str, str]) -> str:
    """Returns why a row cannot be predicted, "" where it can."""
    if row["model"] not in _BASELINE_MODELS:
        if "w8a8sc" in row["model"]:
            return "sparsely compressed weights: their size is not published"
        return "architecture not in the model catalogue"
    if row["spec"] or _BASELINE_MODELS[row["model"]] is None:
        return "speculative decoding without a published acceptance rate"
    return ""


def _baseline_rate(row: Mapping[str, str]) -> float:
    users = int(row["concurrency"])
    settings = ServingSettings(
        requests=RequestSettings(
            arrival=Arrival.CLOSED_LOOP,
            users=users,
            count=int(row["num_prompts"]),
            prompt=TokenLengths(float(row["in_len"])),
            output=TokenLengths(float(row["out_len"])),
        ),
        max_batch=max(users, 2),
        max_batched_tokens=int(float(row["max_num_batched_tokens"] or 8192)),
        memory_ratio=float(row["gpu_mem_util"] or 0.9),
        graph_mode="FULL" in row["graph"],
    )
    model = _BASELINE_MODELS[row["model"]]
    if model is None:
        raise ValidationDataError(f"{row['model']} cannot be run")
    shard = Shard(model, int(float(row["tp"])), 1, WeightFormat.BF16)
    return _tpot_and_rate(settings, shard, load_device("910c-die"))[1]


SERVING_TABLES = (
    FidelityTable("serving-requests", "a recorded vLLM run", (REQUESTS_FILE,), evaluate_requests),
    FidelityTable("serving-concurrency", "Qwen3-32B by number of users", (CONCURRENCY_FILE,), evaluate_concurrency),
    FidelityTable("serving-baselines", "nightly throughput of vllm-ascend", (BASELINES_FILE,), evaluate_baselines),
)
"""Tables of the serving engine."""
