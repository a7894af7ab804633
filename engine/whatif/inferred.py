"""How much of a gain rests on dependencies that were inferred from coincident times.

An inferred wait says: this task began when it did *because* that one had ended. The other explanation of the same
recording is that the task would have begun then anyway, so long after what is recorded of its causes (its stream, its
launch). Both reproduce the recording; under the second one a gain does not travel through the wait.
"""

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.graph_edits import edges_of, with_names, with_tasks
from engine.runtime.scheduler import Schedule

_WORD = "time of its own"
_NO_EVENT = np.int64(1) << 40
_CALL_BITS = 18


def kept_edges(graph: TaskGraph) -> BoolArray:
    """Returns which waits hold without inference, bool, shape (edges,): of a task with an inferred one its launch only.

    The graph says which tasks have an inferred wait, not which of their waits it is.
    """
    before, after = edges_of(graph)
    launch = (graph.stream[before] == Stream.HOST) & (graph.rank[before] == graph.rank[after])
    kept: BoolArray = launch | (graph.inferred[after] == 0)
    return kept


def own_lag_ns(graph: TaskGraph, schedule: Schedule) -> Int64Array:
    """Returns how long after its recorded causes each task with an inferred wait began, int64, shape (tasks,), else 0.

    Args:
        graph: The tasks.
        schedule: When they ran.
    """
    previous = np.full(len(graph), -1, dtype=np.int64)
    chained = np.flatnonzero(schedule.chains.next_task >= 0)
    previous[schedule.chains.next_task[chained]] = chained
    ready_ns = np.where(previous >= 0, schedule.end_ns[previous], 0)
    before, after = edges_of(graph)
    kept = kept_edges(graph)
    np.maximum.at(ready_ns, after[kept], schedule.end_ns[before[kept]])
    lag_ns: Int64Array = np.where(graph.inferred > 0, np.maximum(schedule.start_ns - ready_ns, 0), 0)
    return lag_ns


def with_own_lags(graph: TaskGraph, baseline: TaskGraph, lag_ns: Int64Array) -> TaskGraph:
    """Returns a graph whose inferred waits are replaced by the time they lasted in the baseline.

    Args:
        graph: The baseline's tasks, or what optimizations made of them.
        baseline: The tasks as recorded.
        lag_ns: ``own_lag_ns`` of the baseline. A task the baseline does not have waits for nothing inferred.
    """
    own_ns = carried(graph, baseline, lag_ns)
    held = np.flatnonzero((graph.inferred > 0) & (own_ns > 0))
    before, after = edges_of(graph)
    kept = kept_edges(graph)
    before, after = before[kept], after[kept]
    number = np.full(len(graph), -1, dtype=np.int64)
    number[held] = len(graph) + np.arange(len(held))
    again = np.flatnonzero(number[after] >= 0)
    graph, word = with_names(graph, [_WORD])
    columns: dict[str, AnyArray | int | float] = {
        "name": int(word[0]),
        "kind": int(TaskKind.GAP),
        "rank": graph.rank[held],
        "stream": graph.stream[held],
        "duration_ns": own_ns[held],
        "step": graph.step[held],
    }
    result, _ = with_tasks(
        graph,
        columns,
        held,
        np.concatenate((before, before[again])),
        np.concatenate((after, number[after[again]])),
    )
    return result


def carried(graph: TaskGraph, baseline: TaskGraph, values: Int64Array) -> Int64Array:
    """Returns positive values of the baseline's tasks, by task of another graph made from it; 0 for tasks it lacks."""
    known = np.flatnonzero(values > 0)
    keys = _keys(baseline)[known]
    order = np.argsort(keys, kind="stable")
    keys, sorted_values = keys[order], values[known][order]
    wanted = _keys(graph)
    if len(keys) == 0:
        return np.zeros(len(graph), dtype=np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: Int64Array = np.where(keys[place] == wanted, sorted_values[place], 0)
    return found


def _keys(graph: TaskGraph) -> Int64Array:
    """Returns what names a task across rewriting, int64, shape (tasks,): its rank and event.

    A task without an event is named by its operator and which of the rank's calls of it it is, a gap by the task it
    stands before.
    """
    is_gap = graph.kind == TaskKind.GAP
    event = graph.origin_event.astype(np.int64)
    nameless = np.flatnonzero((event < 0) & ~is_gap)
    event[nameless] = _NO_EVENT + (graph.name[nameless].astype(np.int64) << _CALL_BITS) + _call(graph, nameless)
    gaps = np.flatnonzero(is_gap)
    gaps = gaps[gaps + 1 < len(graph)]
    event[gaps] = event[gaps + 1]
    where = (graph.rank.astype(np.int64) * 2 + (graph.stream == Stream.HOST)) * 2 + is_gap
    keys: Int64Array = where * (2 * _NO_EVENT) + event + 1
    return keys


def _call(graph: TaskGraph, tasks: Int64Array) -> Int64Array:
    """Returns which of its rank's calls of its operator each task is, int64, from 0; at most what fits its field."""
    order = np.lexsort((tasks, graph.name[tasks], graph.rank[tasks]))
    rank, name = graph.rank[tasks[order]], graph.name[tasks[order]]
    is_first = np.ones(len(tasks), dtype=np.bool_)
    is_first[1:] = (rank[1:] != rank[:-1]) | (name[1:] != name[:-1])
    place = np.arange(len(tasks))
    call = np.empty(len(tasks), dtype=np.int64)
    call[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return np.minimum(call, (1 << _CALL_BITS) - 1)
