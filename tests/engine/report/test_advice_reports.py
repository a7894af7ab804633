"""Reports on an advice: the document of CLI.md, one page that needs nothing else, and files by their names."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from engine.core.errors import ExportError
from engine.report.advice_document import advice_document
from engine.report.advice_export import check_advice_path, write_advice
from engine.report.advice_html import advice_html
from engine.report.advice_text import advice_text
from engine.report.svg import nice_ticks
from tests.support.advices import UNKNOWN_GAIN, advice_of, gain_ms, recommendation

KEYS = {
    "id", "title", "category", "severity", "problem", "evidence", "root_cause", "optimization", "gain", "how_to_apply",
    "conflicts", "risk", "undo", "verify",
}  # fmt: skip


def test_the_document_has_the_keys_of_the_contract() -> None:
    document = advice_document(advice_of(recommendation(gain=gain_ms(1, 2, 3))))
    assert document["schema"] == "cannscope.advice/1"
    (item,) = document["recommendations"]
    assert set(item) >= KEYS
    assert item["gain"]["time_us"] == {"low": 1000.0, "expected": 2000.0, "high": 3000.0}
    assert item["gain"]["method"] == "rerun"
    assert set(item["how_to_apply"][0]) >= {"framework", "versions", "switch", "documented_in"}
    assert document["checked_and_fine"] == ["rule.fine"]
    json.dumps(document, allow_nan=False)


def test_what_is_not_quantifiable_is_null_and_never_zero() -> None:
    (item,) = advice_document(advice_of(recommendation(gain=UNKNOWN_GAIN)))["recommendations"]
    assert item["gain"]["time_us"] == {"low": None, "expected": None, "high": None}
    assert item["gain"]["method"] == "not quantifiable"


def test_evidence_is_told_in_microseconds_with_its_place() -> None:
    (item,) = advice_document(advice_of(recommendation()))["recommendations"]
    (evidence,) = item["evidence"]
    assert (evidence["value"], evidence["unit"], evidence["rank"]) == (1500.0, "us", 0)
    assert evidence["range_us"] == {"start": 0.0, "end": 5.0}
    assert evidence["events"] == [1, 2]


def test_the_page_needs_nothing_from_outside() -> None:
    page = advice_html(advice_of(recommendation("a", gain_ms(1, 2, 3)), recommendation("b", UNKNOWN_GAIN)))
    assert page.count("<svg") == 2
    for word in ("<script", "http://", "<link", "@import", "url("):
        assert word not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_the_text_is_ranked_and_ends_with_what_is_fine() -> None:
    console = Console(width=120, record=True, file=None)
    with console.capture() as capture:
        console.print(advice_text(advice_of(*(recommendation(f"r{n}", gain_ms(1, 2, 3)) for n in range(12)))))
    shown = capture.get()
    assert "1. plain" in shown
    assert "and 6 smaller ones" in shown
    assert shown.index("1. plain") < shown.index("Checked and fine: rule.fine")


@pytest.mark.parametrize("suffix", ["html", "md", "json", "csv", "xlsx"])
def test_the_name_of_the_file_says_the_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"advice.{suffix}"
    write_advice(advice_of(recommendation(gain=gain_ms(1, 2, 3))), path)
    assert path.stat().st_size > 100


def test_an_unknown_format_and_a_missing_directory_are_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"\.pdf"):
        check_advice_path(tmp_path / "advice.pdf")
    with pytest.raises(ExportError, match="no such directory"):
        check_advice_path(tmp_path / "missing" / "advice.md")


@pytest.mark.parametrize(("highest", "step"), [(810.0, 200.0), (9.6, 2.0), (0.4, 0.1), (0.0, None), (1e6, 2e5)])
def test_ticks_are_round_numbers(highest: float, step: float | None) -> None:
    ticks = nice_ticks(highest)
    assert ticks[0] == 0
    assert ticks[-1] <= highest * (1 + 1e-9)
    if step is not None:
        assert ticks[1] == pytest.approx(step)
