"""Ranks whose capture lists collectives but no kernels: their time between collectives stands for computing."""

from typing import Any

import numpy as np

from engine.core.arrays import BoolArray
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.optimizations.graph_edits import edges_of, with_column, with_tasks
from engine.runtime.scheduler.interference import COMPUTING

PIECES = 64
"""Into so many equal pieces a long gap is cut, so that something can wait for a part of it (to 1.6 % of it)."""
LONG_NS = 1_000_000
"""Shorter gaps are no pass of a model."""


def followed_ranks(graph: TaskGraph) -> dict[int, int]:
    """Returns rank → the rank it follows: of ranks that list no kernels but whose collectives wait for another's tasks.

    A replay lets such a rank call its collectives when a rank of the same stage does: that one's kernels stand for its
    own.
    """
    before, after = edges_of(graph)
    lists = _lists_kernels(graph)
    follows = ~lists[graph.rank[after]] & lists[graph.rank[before]]
    followers, leaders = graph.rank[after[follows]], graph.rank[before[follows]]
    return {rank: int(np.bincount(leaders[followers == rank]).argmax()) for rank in np.unique(followers).tolist()}


def stands_for_computing(graph: TaskGraph) -> BoolArray:
    """Returns which tasks are computing, or time between collectives of ranks that list none, bool, shape (tasks,)."""
    answer: BoolArray = np.isin(graph.kind, COMPUTING) | _opaque(graph)
    return answer


def _lists_kernels(graph: TaskGraph) -> BoolArray:
    lists = np.zeros(int(graph.rank.max(initial=-1)) + 1, dtype=np.bool_)
    lists[graph.rank[np.isin(graph.kind, COMPUTING)]] = True
    return lists


def _opaque(graph: TaskGraph) -> BoolArray:
    alone = ~_lists_kernels(graph)
    alone[list(followed_ranks(graph))] = False
    gap: BoolArray = np.isin(graph.kind, (TaskKind.GAP, TaskKind.HOST)) & alone[graph.rank]
    return gap


def with_fine_gaps(graph: TaskGraph) -> TaskGraph:
    """Returns the graph with the long gaps of ranks that list no kernels in pieces; itself where there are none."""
    gaps = np.flatnonzero(_opaque(graph) & (graph.duration_ns > LONG_NS))
    if len(gaps) == 0:
        return graph
    piece_ns = graph.duration_ns[gaps] // PIECES
    own = np.repeat(gaps, PIECES - 1)
    columns: dict[str, Any] = {
        name: getattr(graph, name)[own]
        for name in ("name", "kind", "rank", "stream", "step", "micro_batch", "layer", "phase", "inferred")
    }
    columns["duration_ns"] = np.repeat(piece_ns, PIECES - 1)
    shortened = with_column(graph, "duration_ns", gaps, graph.duration_ns[gaps] - piece_ns * (PIECES - 1))
    before, after = edges_of(graph)
    # The gap itself becomes the last piece; what it waited for holds the first one, the others follow in their queue.
    first = np.arange(len(graph), dtype=np.int32)
    first[gaps] = len(graph) + np.arange(len(gaps)) * (PIECES - 1)
    result, _ = with_tasks(shortened, columns, own, before, first[after])
    return result
