"""HTA's published figures, reproduced from our traces by its rules, and what those rules alone change."""

import csv
import gzip
import re
from pathlib import Path

import pytest

from engine.analyses.device import device_totals
from engine.core.units import us_text_to_ns
from engine.trace import Trace
from tests.support.captures import expected_directory
from tests.support.hta_reference import (
    HtaRules,
    HtaTemporal,
    hta_overlap_percent,
    hta_rows,
    hta_temporal,
    step_names,
)
from tests.support.opened import opened_job


def reference(name: str) -> list[dict[str, str]]:
    directory = expected_directory()
    if directory is None:
        return []
    with (directory / name).open(newline="") as file:
        return list(csv.DictReader(file))


def case_id(row: dict[str, str]) -> str:
    return f"{Path(row['file']).name}-{row['rank']}"


def opened(path: Path, rank: int) -> tuple[Trace, set[str], int | None]:
    """Returns the rank's trace, the step names of its job, and the base of float times (None for whole µs)."""
    job = opened_job(path)
    entry = job.rank_trace(rank) if len(job.ranks) > 1 else job.ranks[0]
    names = set().union(*(step_names(item.trace) for item in job.ranks))
    return entry.trace, names, _base_ns(path)


def _base_ns(path: Path) -> int | None:
    if path.is_dir():
        return None
    text = gzip.decompress(path.read_bytes())
    if re.search(rb'"(?:ts|dur)"\s*:\s*\d+\.', text) is None:
        return None
    base = re.search(rb'"baseTimeNanoseconds"\s*:\s*(\d+)', text)
    return int(base[1]) if base else 0


@pytest.mark.parametrize("row", reference("pytorch-hta-temporal.csv"), ids=case_id)
def test_the_temporal_breakdown_follows_from_htas_rules(row, captures):
    trace, names, base_ns = opened(captures.parent / row["file"], int(row["rank"]))
    temporal = hta_temporal(hta_rows(trace, names, base_ns))
    assert temporal == HtaTemporal(
        idle_ns=us_text_to_ns(row["idle_time(us)"]),
        compute_ns=us_text_to_ns(row["compute_time(us)"]),
        non_compute_ns=us_text_to_ns(row["non_compute_time(us)"]),
        kernel_ns=us_text_to_ns(row["kernel_time(us)"]),
    )


@pytest.mark.parametrize("row", reference("pytorch-hta-overlap.csv"), ids=case_id)
def test_the_overlap_follows_from_htas_rules(row, captures):
    trace, names, base_ns = opened(captures.parent / row["file"], int(row["rank"]))
    expected = float(row["comp_comm_overlap_pctg"]) if row["comp_comm_overlap_pctg"] else None
    assert hta_overlap_percent(hta_rows(trace, names, base_ns)) == expected


@pytest.mark.parametrize("row", reference("pytorch-device-unions.csv"), ids=case_id)
def test_without_its_three_rules_htas_figures_are_ours(row, captures):
    trace, names, base_ns = opened(captures.parent / row["file"], int(row["rank"]))
    rules = HtaRules(drops_last_step=False, counts_synchronization=False, rounds=False)
    rows = hta_rows(trace, names, base_ns, rules)
    totals = device_totals(trace)
    assert hta_temporal(rows) == HtaTemporal(
        totals.idle_ns, totals.compute_ns, totals.busy_ns - totals.compute_ns, totals.span_ns
    )
    percent = None if totals.overlap_ratio is None else round(100 * totals.overlap_ratio, 2)
    assert hta_overlap_percent(rows) == percent


def test_rounding_makes_htas_non_compute_time_negative_on_the_h100(captures):
    """HTA asserts that it is not negative and fails on this file."""
    trace, names, base_ns = opened(captures / "pytorch" / "h100-qwen1.5-0.5b.json.gz", 0)
    assert hta_temporal(hta_rows(trace, names, base_ns)).non_compute_ns == -17_000
    totals = device_totals(trace)
    assert totals.busy_ns - totals.compute_ns == 214_602
