from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import MissingDataError
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.graph.task_graph import TaskKind
from engine.replay.capture_graph import CaptureGraph
from engine.replay.job_graph import capture_graph
from engine.replay.replay_quality import replay_quality
from engine.replay.replay_time import replay_time
from engine.trace.job import Job
from tests.support.closed_loop import without_host_rows

UNCHANGED_RATIO = 0.03
WITHHELD_RATIO = 0.1
INFERRED_RATIO = 0.05
JOINED_CLOCKS_NS = 200_000
CAPTURES = (
    "ascend/910b-cnn-ddp2-text/level0",
    "ascend/910b-cnn-ddp2-text/level1",
    "ascend/910b-cnn-ddp2-text/level2",
    "ascend/910b-qwen3-0.6b-pp2dp2",
    "ascend/old-cann7-timeline/trace_view.json",
    "pytorch/alexnet.json.gz",
    "pytorch/df_index_resolver.json.gz",
    "pytorch/event-sync-multi-stream.json.gz",
    "pytorch/h100-qwen1.5-0.5b.json.gz",
    "pytorch/mi250-minitoy.json.gz",
    "pytorch/mi300-qwen1.5-0.5b.json.gz",
    "pytorch/nccl_data.json.gz",
    "pytorch/negative-queue-length-rank0.json.gz",
    "pytorch/ns-resolution.json.gz",
    "pytorch/resnet50-schema2021.json.gz",
    "pytorch/simple-add.json.gz",
    "pytorch/dlrm-v100-8ranks",
)


def opened(path: Path) -> Job:
    return open_job([path], built_in_readers())


@pytest.mark.parametrize("name", CAPTURES)
def test_the_replay_takes_as_long_as_the_recording_and_gaps_explain_little_of_it(captures: Path, name: str) -> None:
    quality = replay_quality(opened(captures / name))
    assert quality.unchanged.schedule.is_complete
    assert quality.unchanged.error_ratio == pytest.approx(0.0, abs=UNCHANGED_RATIO)
    assert quality.withheld.error_ratio == pytest.approx(0.0, abs=WITHHELD_RATIO)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_task_starts_when_it_did(captures: Path, name: str) -> None:
    capture = capture_graph(opened(captures / name))
    graph, times = capture.graph, replay_time(capture).schedule
    tasks = np.flatnonzero((graph.stream > 0) & (graph.origin_event >= 0))
    late_ns = times.start_ns[tasks]
    for entry in capture.job.ranks:
        own = graph.rank[tasks] == entry.rank
        late_ns[own] -= entry.trace.events.start_ns[graph.origin_event[tasks[own]]] + entry.offset_ns
    apart_ns = late_ns - int(np.median(late_ns))
    meets = bool(np.any(graph.rendezvous >= 0))
    # Ranks that meet are told by several clocks, which are joined with an error of some ten µs per meeting.
    assert np.abs(apart_ns).max() <= (JOINED_CLOCKS_NS if meets else 0)


@pytest.mark.parametrize("name", ["pytorch/rank_non_gpu.json.gz", "pytorch/rank_not_found.json.gz"])
def test_a_capture_without_device_tasks_has_nothing_to_replay(captures: Path, name: str) -> None:
    with pytest.raises(MissingDataError, match="device tasks"):
        capture_graph(opened(captures / name))


@pytest.mark.parametrize("name", ["ascend/910b-cnn-ddp2-text/level1", "pytorch/df_index_resolver.json.gz"])
def test_a_host_inferred_from_allocations_answers_like_the_recorded_one(captures: Path, name: str) -> None:
    job = opened(captures / name)
    for kinds in ((TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX), (TaskKind.HOST,)):
        told, inferred = (_halved(capture_graph(item), kinds) for item in (job, without_host_rows(job)))
        assert inferred == pytest.approx(told, rel=INFERRED_RATIO)


def _halved(capture: CaptureGraph, kinds: tuple[TaskKind, ...]) -> float:
    """Returns the time of the whole run with tasks of some kinds twice as fast, in terms of the recorded one."""
    graph = capture.graph
    duration_ns = np.where(np.isin(graph.kind, kinds), graph.duration_ns // 2, graph.duration_ns)
    faster = replay_time(capture, replace(graph, duration_ns=duration_ns)).schedule.makespan_ns
    return faster / replay_time(capture).schedule.makespan_ns
