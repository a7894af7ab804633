"""HTA's published idle breakdown, reproduced from our traces by its rules."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.engine.analyses.test_hta_agreement import opened, reference
from tests.support.hta_idle import hta_idle


def published() -> dict[tuple[str, int], dict[int, dict[str, int]]]:
    """Returns file and rank → stream → category → µs."""
    tables: dict[tuple[str, int], dict[int, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in reference("pytorch-hta-idle.csv"):
        place = tables[row["file"], int(row["rank"])][int(float(row["stream"]))]
        place[row["idle_category"]] = round(float(row["idle_time"]))
    return tables


@pytest.mark.parametrize(("place", "streams"), published().items(), ids=lambda value: str(value)[-40:-1])
def test_the_idle_breakdown_follows_from_htas_rules(place, streams, captures):
    file, rank = place
    trace, names, base_ns = opened(captures.parent / file, rank)
    found = hta_idle(trace, names, base_ns)
    for stream, parts in streams.items():
        ours = found[stream]
        told = {"host_wait": ours.host_wait, "kernel_wait": ours.kernel_wait, "other": ours.other}
        assert {name: told[name] or 0 for name in parts} == parts


def test_a_kernel_without_a_launch_row_takes_the_files_first_event_for_it(captures):
    """What the rule changes: without it these gaps are waits between kernels."""
    path = captures / "pytorch" / "h100-qwen1.5-0.5b.json.gz"
    trace, names, base_ns = opened(Path(path), 0)
    with_rule = hta_idle(trace, names, base_ns)[7]
    without = hta_idle(trace, names, base_ns, joins_first_event=False)[7]
    assert (with_rule.host_wait or 0) - (without.host_wait or 0) == 18
    assert (without.kernel_wait or 0) - (with_rule.kernel_wait or 0) == 18
