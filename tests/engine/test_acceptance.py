"""What the release promises, read off the documents scripts get, against the captures' own files and the references."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.analyses.summary import summarize
from engine.report.analysis_document import analysis_document
from tests.support.captures import expected_directory
from tests.support.opened import opened_job

CNN = [f"910b-cnn-ddp2-text/level{level}/rank{rank}_ascend_pt" for level in range(3) for rank in range(2)]
QWEN = "910b-qwen3-0.6b-pp2dp2"
TEXT_RANKS = [*CNN, *(f"{QWEN}/rank_{rank}_ascend_pt" for rank in (0, 2))]
STEP_COLUMNS = {
    "computing_us": "Computing",
    "communication_not_overlapped_us": "Communication(Not Overlapped)",
    "overlapped_us": "Overlapped",
    "communication_us": "Communication",
    "free_us": "Free",
    "stage_us": "Stage",
    "bubble_us": "Bubble",
    "preparing_us": "Preparing",
}
DEVICE_COLUMNS = {
    "span_us": "span_us",
    "busy_us": "busy_us",
    "idle_us": "idle_us",
    "compute_us": "compute_union_us",
    "communication_us": "comm_union_us",
    "memory_us": "mem_union_us",
    "overlap_us": "comm_comp_overlap_us",
    "exposed_communication_us": "exposed_comm_us",
}


@cache
def analysed(path: Path) -> dict[str, Any]:
    job = opened_job(path)
    text = json.dumps(analysis_document(job, summarize(job)), allow_nan=False)
    return json.loads(text)  # type: ignore[no-any-return]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def reference_rows() -> list[dict[str, str]]:
    directory = expected_directory()
    return rows_of(directory / "pytorch-device-unions.csv") if directory else []


@pytest.mark.parametrize("name", TEXT_RANKS)
def test_steps_equal_the_captures_own_table_within_a_microsecond(name: str, captures: Path) -> None:
    (rank,) = analysed(captures / "ascend" / name)["ranks"]
    theirs = rows_of(captures / "ascend" / name / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv")
    assert [str(step["step"]) for step in rank["steps"]] == [row["Step"] for row in theirs]
    for step, row in zip(rank["steps"], theirs, strict=True):
        assert step["from_file"] == (["preparing_us"] if name.startswith(QWEN) else [])
        for key, title in STEP_COLUMNS.items():
            if row[title] not in ("", "N/A"):
                assert step[key] == pytest.approx(float(row[title]), abs=1), key


@pytest.mark.parametrize("name", [*CNN[2:], *TEXT_RANKS[6:]])
def test_operators_equal_op_statistic_within_a_tenth_of_a_microsecond(name: str, captures: Path) -> None:
    (rank,) = analysed(captures / "ascend" / name)["ranks"]
    theirs = rows_of(captures / "ascend" / name / "ASCEND_PROFILER_OUTPUT" / "op_statistic.csv")
    ours = {(item["type"], item["core_type"]): item for item in rank["operators"]}
    assert ours.keys() == {(row["OP Type"], row["Core Type"]) for row in theirs}
    for row in theirs:
        item = ours[row["OP Type"], row["Core Type"]]
        assert item["count"] == int(row["Count"])
        assert item["total_us"] == pytest.approx(float(row["Total Time(us)"]), abs=0.1)


@pytest.mark.parametrize("row", reference_rows(), ids=lambda row: f"{Path(row['file']).name}-{row['rank']}")
def test_device_unions_equal_the_reference_within_ten_nanoseconds(row: dict[str, str], captures: Path) -> None:
    ranks = analysed(captures.parent / row["file"])["ranks"]
    device = next(rank for rank in ranks if len(ranks) == 1 or rank["rank"] == int(row["rank"]))["device"]
    for key, title in DEVICE_COLUMNS.items():
        assert device[key] == pytest.approx(float(row[title]), abs=0.01), key
    ratio = float(row["overlap_ratio"]) if row["overlap_ratio"] else None
    assert device["overlap_ratio"] == (None if ratio is None else pytest.approx(ratio, abs=1e-6))


def test_the_qwen3_job_says_what_it_waits_for(captures: Path) -> None:
    rank = analysed(captures / "ascend" / QWEN)["ranks"][0]
    assert rank["headline"] == (
        "Step 810 ms: rank 0 waits 39 % for the second stage, computes 29 %, is idle 20 %, transfers 13 %, overlaps 0 %"
    )
    assert rank["memory_headline"] == "Memory: 10,282.75 MiB allocated of 10,372 MiB reserved"
    (alone,) = analysed(captures / "ascend" / QWEN / "rank_0_ascend_pt")["ranks"]
    assert "52 % communication, unsplit" in alone["headline"]
