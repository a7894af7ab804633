"""Published gains of single features: how they are read, and how a prediction is judged."""

import csv
from pathlib import Path

import pytest
from rich.console import Console

from engine.report.fidelity import fidelity_document, fidelity_text
from engine.workloads.fidelity.ablation import ABLATION_FILE, published_range, verdict_of
from engine.workloads.fidelity.ablation_cases import ABLATION_CASES, NOT_EXPRESSIBLE, Quantity
from engine.workloads.fidelity.scores import Scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityRow, RowVerdict


@pytest.mark.parametrize(
    ("metric", "value", "quantity", "expected"),
    [
        ("throughput %", "34", Quantity.THROUGHPUT, (0.34, 0.34)),
        ("memory %", "-16.6", Quantity.PEAK_MEMORY, (-0.166, -0.166)),
        ("TFLOPs/NPU", "110 vs 100", Quantity.THROUGHPUT, (0.1, 0.1)),
        ("memory % / throughput %", "-30..-40 / -15..-25", Quantity.PEAK_MEMORY, (-0.4, -0.3)),
        ("memory % / throughput %", "-30..-40 / -15..-25", Quantity.THROUGHPUT, (-0.25, -0.15)),
        ("memory saved GB", "8.05", Quantity.SAVED_GIB, (8.05, 8.05)),
        ("memory saved", "2 bytes/param (/DP)", Quantity.SAVED_BYTES_PER_PARAMETER, (2.0, 2.0)),
    ],
)
def test_a_published_value_is_read_as_a_range(
    metric: str, value: str, quantity: Quantity, expected: tuple[float, float]
) -> None:
    assert published_range(metric, value, quantity) == pytest.approx(expected)


def test_a_row_says_nothing_of_other_quantities() -> None:
    assert published_range("throughput %", "34", Quantity.PEAK_MEMORY) is None
    assert published_range("ms/iter base", "2280/1780", Quantity.THROUGHPUT) is None
    assert published_range("throughput %", "about", Quantity.THROUGHPUT) is None


@pytest.mark.parametrize(
    ("predicted", "published", "verdict"),
    [
        ((0.30, 0.40), (0.34, 0.34), RowVerdict.WITHIN),
        ((0.10, 0.10), (0.14, 0.14), RowVerdict.WITHIN),
        ((0.02, 0.02), (0.05, 0.05), RowVerdict.RIGHT_SIGN),
        ((-0.01, -0.01), (0.05, 0.05), RowVerdict.WRONG_SIGN),
        ((-0.33, -0.33), (-0.4, -0.3), RowVerdict.WITHIN),
        ((-0.05, -0.05), (-0.166, -0.166), RowVerdict.RIGHT_SIGN),
        ((0.05, 0.05), (-0.4, -0.3), RowVerdict.WRONG_SIGN),
        ((0.0, 0.0), (0.05, 0.05), RowVerdict.WRONG_SIGN),
    ],
)
def test_a_prediction_is_judged_by_sign_and_size(
    predicted: tuple[float, float], published: tuple[float, float], verdict: RowVerdict
) -> None:
    assert verdict_of(predicted, published) is verdict


def test_every_row_of_the_table_is_run_or_says_why_not(validation: Path) -> None:
    with (validation / ABLATION_FILE).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    run = {(case.feature, case.config) for case in ABLATION_CASES}
    assert run <= {(line["feature"], line["config"]) for line in lines}
    for line in lines:
        named = any(line["feature"].startswith(begin) for begin in NOT_EXPRESSIBLE)
        assert named or (line["feature"], line["config"]) in run, line
    for case in ABLATION_CASES:
        known = [
            published_range(line["metric"], line["value"], case.quantity)
            for line in lines
            if (line["feature"], line["config"]) == (case.feature, case.config)
        ]
        assert any(item is not None for item in known), case


def _result(verdict: RowVerdict) -> FidelityResult:
    rows = (
        FidelityRow("fused thing (small)", "throughput", (0.05, 0.07), (0.06, 0.06), verdict, "as it is"),
        FidelityRow("other thing", "req/s", None, None, RowVerdict.NOT_EXPRESSIBLE, "serving"),
    )
    return FidelityResult("ablation", "gains", Scores(1, 0.1, 0.1, 0.1, 0.0, None), rows=rows)


def test_rows_are_printed_one_by_one_with_their_explanation() -> None:
    console = Console(width=200, record=True, file=None)
    with console.capture() as captured:
        console.print(fidelity_text([_result(RowVerdict.WITHIN)], {}, parts=False))
    for words in ("+5.0% … +7.0%", "+6.0%", "within", "as it is", "not run", "serving"):
        assert words in captured.get()
    (table,) = fidelity_document([_result(RowVerdict.WITHIN)], {})["tables"]
    assert [row["verdict"] for row in table["single_rows"]] == ["within", "not run"]


def test_a_wrong_sign_fails_the_table() -> None:
    assert _result(RowVerdict.RIGHT_SIGN).holds
    assert not _result(RowVerdict.WRONG_SIGN).holds
