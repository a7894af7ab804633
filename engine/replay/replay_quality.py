"""How far a replay of a recorded job can be trusted: the unchanged run, the run without gaps, and what was inferred."""

from dataclasses import dataclass

import numpy as np

from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.capture_graph import CaptureGraph, Gaps, HostSource
from engine.replay.job_graph import graph_of, job_plans
from engine.replay.replay_time import ReplayedTime, replay_time
from engine.trace.job import Job


@dataclass(frozen=True, slots=True, eq=False)
class ReplayQuality:
    """The replay of an unchanged job.

    Attributes:
        unchanged: With every gap kept.
        withheld: With gaps the graph cannot explain left out.
        inferred_edge_share_ratio: Share of the waits between tasks that the capture does not record.
    """

    unchanged: ReplayedTime
    withheld: ReplayedTime
    inferred_edge_share_ratio: float

    @property
    def capture(self) -> CaptureGraph:
        """The recorded job's tasks."""
        return self.unchanged.capture


def replay_quality(job: Job, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> ReplayQuality:
    """Returns the replays of a job with gaps kept and withheld.

    Raises:
        MissingDataError: No rank shows a device task.
        OperationCancelled: Cancelled.
    """
    plans = job_plans(job, part_of(progress, 0.0, 0.6), cancel)
    progress(0.6, "replaying")
    kept = graph_of(plans, Gaps.KEPT, cancel)
    unchanged = replay_time(kept, cancel=cancel)
    progress(0.8, "replaying without gaps")
    withheld = replay_time(kept, graph_of(plans, Gaps.WITHHELD, cancel).graph, cancel=cancel)
    return ReplayQuality(unchanged, withheld, inferred_edge_share(kept))


def inferred_edge_share(capture: CaptureGraph) -> float:
    """Returns the share of waits that were inferred; 0 for a graph without waits.

    Waits are launches, waits of streams for each other, and waits of the host. A gap waits for what its task waits for
    and is not counted again. Launches of a rank without host rows are all inferred.
    """
    graph = capture.graph
    after = np.repeat(np.arange(len(graph)), np.diff(graph.predecessor_offsets))
    counted = graph.kind[after] != TaskKind.GAP
    after, before = after[counted], graph.predecessors[counted]
    launches = (graph.stream[before] == Stream.HOST) & (graph.rank[before] == graph.rank[after])
    unrecorded = [rank for rank, source in capture.host_source.items() if source is not HostSource.LAUNCHES]
    inferred = np.where(launches, np.isin(graph.rank[after], unrecorded), graph.inferred[after] > 0)
    return float(inferred.mean()) if len(after) else 0.0
