"""The table of published gains of single features: right sign, and how near."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.core.errors import SourcePosition, TraceReadError
from engine.core.progress import Progress
from engine.core.units import GIB
from engine.workloads.fidelity.ablation_cases import ABLATION_CASES, NOT_EXPRESSIBLE, AblationCase, Quantity
from engine.workloads.fidelity.ablation_jobs import Pair
from engine.workloads.fidelity.scores import scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityRow, FidelityTable, RowVerdict
from engine.workloads.fidelity.training_rows import MODELLINK_FILE, lines_of
from engine.workloads.parameters import shard_count, stage_weights
from engine.workloads.simulate import simulate

ABLATION_FILE = "ascend_feature_ablation.csv"
_METRICS = {
    "throughput %": (Quantity.THROUGHPUT,),
    "TFLOPs/NPU": (Quantity.THROUGHPUT,),
    "memory %": (Quantity.PEAK_MEMORY,),
    "memory % / throughput %": (Quantity.PEAK_MEMORY, Quantity.THROUGHPUT),
    "memory saved GB": (Quantity.SAVED_GIB,),
    "memory saved": (Quantity.SAVED_BYTES_PER_PARAMETER,),
}
"""Metric column → the quantities a value gives, in its order, separated by a slash."""
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_NEAR = 1.5
"""A gain within this factor of the published one is called within: tables round, and state few conditions."""


def published_range(metric: str, value: str, quantity: Quantity) -> tuple[float, float] | None:
    """Returns what a row says of a quantity, lowest and highest; None where it says nothing of it.

    Gains are shares (0.34 for 34 %); ``165.90 vs 145.93`` is the gain of the first over the second.
    """
    quantities = _METRICS.get(metric, ())
    if quantity not in quantities:
        return None
    part = value.split("/")[quantities.index(quantity)] if len(quantities) > 1 else value
    numbers = [float(number) for number in re.findall(_NUMBER, part.replace("..", " "))]
    if not numbers:
        return None
    if "vs" in part:
        gain = numbers[0] / numbers[1] - 1.0
        return gain, gain
    if quantity in (Quantity.SAVED_GIB, Quantity.SAVED_BYTES_PER_PARAMETER):
        return numbers[0], numbers[0]
    return min(numbers) / 100.0, max(numbers) / 100.0


def predicted_value(quantity: Quantity, pair: Pair) -> float:
    """Returns what the runtime says of a pair."""
    without, with_it = (simulate(scenario) for scenario in pair)
    first, second = without.memory[0], with_it.memory[0]
    if quantity is Quantity.THROUGHPUT:
        return with_it.tokens_per_s / without.tokens_per_s - 1.0
    if quantity is Quantity.SAVED_BYTES_PER_PARAMETER:
        parallel = pair[0].parallel
        state = sum(shard_count(tensor, parallel) for tensor in stage_weights(pair[0].model, parallel, 0))
        return (first.persistent_bytes - second.persistent_bytes) / state
    peaks = (int(first.peak_allocated_bytes[-1]), int(second.peak_allocated_bytes[-1]))
    return peaks[1] / peaks[0] - 1.0 if quantity is Quantity.PEAK_MEMORY else (peaks[0] - peaks[1]) / GIB


def verdict_of(predicted: tuple[float, float], published: tuple[float, float]) -> RowVerdict:
    """Returns how near a predicted range is to a published one."""
    sign = 1.0 if published[0] + published[1] > 0 else -1.0
    low, high = sorted(value * sign for value in predicted)
    least, most = sorted(value * sign for value in published)
    if high <= 0:
        return RowVerdict.WRONG_SIGN
    near = high >= least / _NEAR and low <= most * _NEAR
    return RowVerdict.WITHIN if near else RowVerdict.RIGHT_SIGN


def _run_row(case: AblationCase, published: tuple[float, float], directory: Path) -> FidelityRow:
    values = [predicted_value(case.quantity, pair) for pair in case.pairs(directory)]
    predicted = (min(values), max(values))
    name = f"{case.feature} ({case.config})"
    return FidelityRow(name, case.quantity.value, predicted, published, verdict_of(predicted, published), case.note)


def _other_rows(lines: Sequence[dict[str, str]]) -> list[FidelityRow]:
    """Returns the rows nothing runs, with why."""
    run = {(case.feature, case.config) for case in ABLATION_CASES}
    rows = []
    for line in lines:
        if (line["feature"], line["config"]) in run:
            continue
        reasons = [why for begin, why in NOT_EXPRESSIBLE.items() if line["feature"].startswith(begin)]
        why = reasons[0] if reasons else "no scenario has been written for it"
        name = f"{line['feature']} ({line['config']})"
        rows.append(FidelityRow(name, line["metric"], None, None, RowVerdict.NOT_EXPRESSIBLE, why))
    return rows


def _evaluate(directory: Path, progress: Progress) -> FidelityResult:
    path = directory / ABLATION_FILE
    lines = lines_of(path)
    rows = []
    for done, case in enumerate(ABLATION_CASES):
        progress(done / len(ABLATION_CASES), f"{case.feature}, {case.config}")
        ranges = [
            published_range(line["metric"], line["value"], case.quantity)
            for line in lines
            if (line["feature"], line["config"]) == (case.feature, case.config)
        ]
        known = [item for item in ranges if item is not None]
        if not known:
            raise TraceReadError(f"no {case.quantity.value} of {case.feature}, {case.config}", SourcePosition(path))
        rows.append(_run_row(case, known[0], directory))
    gains = [row for row in rows if row.predicted and row.published]
    predicted, published = (
        np.array([_factor(row.quantity, getattr(row, name)) for row in gains]) for name in ("predicted", "published")
    )
    return FidelityResult(
        table="ablation",
        title="published gains of single features on Ascend",
        scores=scores(predicted, published),
        notes=(
            "Errors are of the factor a feature changes speed or memory by, middles of ranges; nothing was fitted.",
            "Published gains state little of their configuration: the sign must be right, the size explained.",
        ),
        rows=(*rows, *_other_rows(lines)),
    )


def _factor(quantity: str, values: tuple[float, float]) -> float:
    middle = (values[0] + values[1]) / 2.0
    return 1.0 + middle if quantity in (Quantity.THROUGHPUT, Quantity.PEAK_MEMORY) else middle


ABLATION_TABLES = (FidelityTable("ablation", "gains of single features", (ABLATION_FILE, MODELLINK_FILE), _evaluate),)
