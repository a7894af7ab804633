"""Ranks whose captures list collectives but no kernels: they are run as replicas of ranks that list them.

What such a rank computes between its collectives is one opaque stretch of time, so a fusion that makes its replica
faster would leave it as slow as it was, and the faster one would wait for it. Data parallelism has both do the same
work, so the rank is taken to come to each collective when its replica comes to its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.graph.streams import stream_chains
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.graph_edits import edges_of, with_edges
from engine.runtime.scheduler.interference import COMPUTING
from engine.trace.job import Job
from engine.trace.strings import ABSENT

_DATA_PARALLEL = "dp"
_OWN_TIME = (TaskKind.HOST, TaskKind.GAP, TaskKind.SYNCHRONIZE)


@dataclass(frozen=True, slots=True, eq=False)
class Mirror:
    """Which ranks are run as replicas of which.

    Attributes:
        replica_of: Rank without kernels → rank of its data-parallel group that lists them.
    """

    replica_of: Mapping[int, int]

    @property
    def note(self) -> str | None:
        """Says so, None where every rank lists its kernels or has no replica that does."""
        if not self.replica_of:
            return None
        ranks = ", ".join(map(str, sorted(self.replica_of)))
        others = ", ".join(str(self.replica_of[rank]) for rank in sorted(self.replica_of))
        return f"ranks {ranks} list no kernels: they are taken to compute what their replicas {others} compute"

    def graph(self, graph: TaskGraph) -> TaskGraph:
        """Returns the tasks with the mirrored ranks' collectives called when their replicas call theirs.

        A rank whose collectives cannot be told apart as its replica's stays as it is.
        """
        for rank, other in self.replica_of.items():
            own, theirs = (np.flatnonzero(_collectives(graph, number)) for number in (rank, other))
            pairs = _paired(graph, own, theirs)
            if pairs is not None:
                graph = _called_with(graph, rank, *pairs)
        return graph


def mirror_of(job: Job, graph: TaskGraph) -> Mirror:
    """Returns which ranks of a recorded job list no kernels although a replica does."""
    listing = set(np.unique(graph.rank[np.isin(graph.kind, COMPUTING)]).tolist())
    found: dict[int, int] = {}
    for entry in job.ranks:
        groups = [
            group.ranks
            for group in entry.trace.metadata.parallel_groups
            if group.name.startswith(_DATA_PARALLEL) and entry.rank in group.ranks
        ]
        replicas = sorted({rank for ranks in groups for rank in ranks if rank in listing})
        if entry.rank not in listing and replicas:
            found[entry.rank] = replicas[0]
    return Mirror(found)


def _collectives(graph: TaskGraph, rank: int) -> AnyArray:
    chosen: AnyArray = (graph.rank == rank) & (graph.kind == TaskKind.COLLECTIVE)
    return chosen


def _paired(graph: TaskGraph, own: Int64Array, theirs: Int64Array) -> tuple[Int64Array, Int64Array] | None:
    """Returns calls of two replicas that stand for each other: of one meeting, or the same in order of the rest."""
    _, mine, others = np.intersect1d(
        np.where(graph.rendezvous[own] >= 0, graph.rendezvous[own], ABSENT - 1 - own),
        np.where(graph.rendezvous[theirs] >= 0, graph.rendezvous[theirs], ABSENT - 1 - theirs),
        return_indices=True,
    )
    rest_mine, rest_theirs = np.delete(own, mine), np.delete(theirs, others)
    if len(rest_mine) != len(rest_theirs) or np.any(_kinds(graph, rest_mine) != _kinds(graph, rest_theirs)):
        return None
    return np.concatenate((own[mine], rest_mine)), np.concatenate((theirs[others], rest_theirs))


def _kinds(graph: TaskGraph, tasks: Int64Array) -> Int64Array:
    """Returns what collectives do, by the word in their name before its number; a turn per distinct name."""
    names, inverse = np.unique(graph.name[tasks], return_inverse=True)
    words: dict[str, int] = {}
    numbers = [words.setdefault(text.split("__")[0], len(words)) for text in graph.strings.texts(names)]
    return np.array(numbers, dtype=np.int64)[inverse]


def _called_with(graph: TaskGraph, rank: int, own: Int64Array, theirs: Int64Array) -> TaskGraph:
    """Returns the graph with calls of a rank waiting for what its replica's wait for, and no time of its own."""
    before, after = edges_of(graph)
    kept = graph.rank[after] != rank
    counts = np.diff(graph.predecessor_offsets)[theirs]
    starts = graph.predecessor_offsets[theirs]
    row = np.repeat(np.arange(len(theirs)), counts)
    place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts) + starts[row]
    previous = _previous(graph)[theirs]
    queued = previous >= 0
    times_ns = np.where((graph.rank == rank) & np.isin(graph.kind, _OWN_TIME), 0, graph.duration_ns)
    return with_edges(
        replace(graph, duration_ns=times_ns),
        np.concatenate((before[kept], graph.predecessors[place], previous[queued])),
        np.concatenate((after[kept], own[row], own[queued])),
    )


def _previous(graph: TaskGraph) -> Int32Array:
    """Returns the task before each one in its queue, int32, −1 for the first; the host's own order counts for none."""
    chains = stream_chains(graph)
    previous = np.full(len(graph), ABSENT, dtype=np.int32)
    followed = np.flatnonzero((chains.next_task >= 0) & (graph.stream != Stream.HOST))
    previous[chains.next_task[followed]] = followed
    return previous
