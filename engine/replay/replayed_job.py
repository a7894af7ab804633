"""A replay as traces of all ranks, for timelines and analyses."""

from dataclasses import replace

from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.slicing import take_tasks
from engine.graph.streams import stream_chains
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.replay.capture_graph import CaptureGraph
from engine.runtime.recorder import RecorderSettings, record_job
from engine.runtime.scheduler import Schedule, find_meetings
from engine.trace.job import Job


def replayed_job(
    capture: CaptureGraph,
    graph: TaskGraph,
    result: Schedule,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Job:
    """Returns what a profiler would have written of a run of a capture's tasks, rank by rank.

    Gaps are idle time and leave no rows. Every trace is ``Origin.SIMULATED`` and on the run's own clock.

    Args:
        capture: The recorded job.
        graph: The tasks that ran.
        result: When each did.
        progress: Told the share of ranks done.
        cancel: Looked at between ranks.

    Raises:
        OperationCancelled: Cancelled.
    """
    shown, tasks = take_tasks(graph, graph.kind != TaskKind.GAP)
    times = Schedule(
        start_ns=result.start_ns[tasks],
        transfer_ns=result.transfer_ns[tasks],
        end_ns=result.end_ns[tasks],
        meetings=find_meetings(shown),
        chains=stream_chains(shown),
    )
    job = record_job(shown, times, _settings(capture), progress=progress, cancel=cancel)
    return replace(job, path=capture.job.path)


def _settings(capture: CaptureGraph) -> RecorderSettings:
    metadata = capture.job.ranks[0].trace.metadata
    sizes = [entry.trace.metadata.world_size for entry in capture.job.ranks]
    return RecorderSettings(
        level=1,
        host=metadata.host or "replayed",
        device=metadata.device or "",
        world_size=max((size for size in sizes if size is not None), default=None),
        device_memory_bytes=metadata.device_memory_bytes,
        parallel_sizes=metadata.parallel_sizes,
        environment=metadata.environment,
        details={"replay_of": capture.job.path},
    )
