"""HTA's published critical paths, reproduced from our traces by its rules, beside the path of our replay."""

from pathlib import Path

import pytest

from engine.replay.critical_path import critical_path
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from tests.engine.analyses.test_hta_agreement import opened, reference
from tests.support.hta_critical_path import hta_graph
from tests.support.opened import opened_job

KINDS = ("operator", "dependency", "kernel_launch_delay", "kernel_kernel_delay", "sync_dependency")
ONE_LAUNCH_MORE = "cp_event_sync_multi_stream"
"""Our reading of HTA's rules gives one launch edge more there; the path is the same."""


def published() -> list[dict[str, str]]:
    return [row for row in reference("pytorch-hta-critical-path.csv") if row["version"].startswith("hta0.5.0")]


@pytest.mark.parametrize("row", published(), ids=lambda row: row["trace"])
def test_the_critical_path_follows_from_htas_rules(row, captures):
    trace, _, base_ns = opened(captures.parent / row["file"], 0)
    graph = hta_graph(trace, base_ns, row["annotation"], int(row["instance"] or 0))
    assert len(graph.time) == int(row["nodes"])
    assert graph.length == float(row["critical_len_us"])
    more = int(row["trace"] == ONE_LAUNCH_MORE)
    assert len(graph.edges) == int(row["edges"]) + more
    expected = {kind: int(row[f"n_{kind}"]) for kind in KINDS}
    expected["kernel_launch_delay"] += more
    assert {kind: graph.kinds.get(kind, 0) for kind in KINDS} == expected


@pytest.mark.parametrize("name", sorted({Path(row["file"]).name for row in published()}))
def test_our_path_is_as_long_as_the_replayed_run_and_has_no_gap(name, captures):
    capture = capture_graph(opened_job(captures / "pytorch" / name))
    replayed = replay_time(capture)
    path = critical_path(replayed.graph, replayed.schedule)
    assert path.length_ns == replayed.schedule.makespan_ns
    assert (path.start_ns[1:] == path.end_ns[:-1]).all()
