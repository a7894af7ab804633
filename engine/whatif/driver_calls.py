"""Driver calls of the allocator that a recording shows, and its tasks without them.

A recording shows what its own allocator's calls cost. Whether another one would have made them cannot be replayed: what
it would have held when the capture began is not recorded. But an allocator that gives nothing back keeps what it once
took, so in the middle of a run it asks for no more; that is what is expected of a policy whose replay frees nothing.
"""

from collections.abc import Mapping

import numpy as np

from engine.analyses.name_search import names_holding
from engine.core.arrays import BoolArray, Int64Array
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.graph_edits import edges_of, with_column, with_edges
from engine.optimizations.memory.outcomes import RankMemory
from engine.replay.replay_time import ReplayedTime
from engine.runtime.allocators.interface import DriverAction
from engine.trace.intervals import covered_ns, union
from engine.trace.job import RankTrace
from engine.whatif.inferred import carried

_CALLS = (
    "aclrtmalloc",
    "aclmallocmeminner",
    "aclrtfree",
    "aclrtmapmem",
    "aclrtunmapmem",
    "cudamalloc",
    "cudafree",
)
"""What profilers of CANN and CUDA call them, in lower case."""
_HOST_MEMORY = "host"
_GIVES_BACK = (DriverAction.SEGMENT_FREE, DriverAction.UNMAP, DriverAction.RETRY)

ASSUMPTION = (
    "an allocator that gives nothing back and needs no more spares the driver's calls inside steps: in the middle of a "
    "run it holds what it needs (the low bound: none is spared)"
)
NO_CALLS = "another allocator changes memory only: no driver call is recorded inside steps that it could spare"


def driver_call_ns(replayed: ReplayedTime) -> Int64Array:
    """Returns how much of each task is recorded time in the allocator's driver calls, int64, shape (tasks,).

    Args:
        replayed: The unchanged job.
    """
    graph, times = replayed.graph, replayed.schedule
    answer = np.zeros(len(graph), dtype=np.int64)
    steps = replayed.capture.steps
    for entry in replayed.capture.job.ranks:
        rows = _call_rows(entry)
        own = np.flatnonzero(steps.rank == entry.rank)
        if len(rows) == 0 or len(own) == 0:
            continue
        shift_ns = int(replayed.start_ns[own[0]] - steps.start_ns[own[0]]) + entry.offset_ns
        events = entry.trace.events
        calls = union(events.start_ns[rows] + shift_ns, events.start_ns[rows] + events.duration_ns[rows] + shift_ns)
        host = np.flatnonzero((graph.rank == entry.rank) & (graph.kind == TaskKind.HOST) & times.ended)
        answer[host] = covered_ns(calls, times.start_ns[host], times.end_ns[host])
    return answer


def _call_rows(entry: RankTrace) -> Int64Array:
    """Returns the events of a rank that are driver calls for device memory."""
    strings = entry.trace.strings
    names = names_holding(strings, _CALLS)
    wanted = np.setdiff1d(names, names_holding(strings, (_HOST_MEMORY,)))
    return np.flatnonzero(np.isin(entry.trace.events.name, wanted)).astype(np.int64)


def spares_calls(memory: Mapping[int, RankMemory], recorded: Mapping[int, RankMemory]) -> bool:
    """Returns whether an allocator is expected to make no driver calls in the middle of a run.

    Args:
        memory: What it does with the recorded log.
        recorded: What the recorded one does with it.
    """
    gives_back = any(bool(np.isin(item.driver.action, _GIVES_BACK).any()) for item in memory.values())
    return bool(memory) and not gives_back and _most_reserved(memory) <= _most_reserved(recorded)


def _most_reserved(memory: Mapping[int, RankMemory]) -> int:
    return max((item.outcome.peak_reserved_bytes for item in memory.values()), default=0)


def without_calls(graph: TaskGraph, baseline: TaskGraph, call_ns: Int64Array) -> TaskGraph:
    """Returns a graph without recorded driver calls, and without the waits for the device right before them.

    Args:
        graph: The baseline's tasks, or what optimizations made of them.
        baseline: The tasks as recorded.
        call_ns: ``driver_call_ns`` of the baseline.
    """
    spared_ns = carried(graph, baseline, call_ns)
    shortened = with_column(graph, "duration_ns", np.arange(len(graph)), np.maximum(graph.duration_ns - spared_ns, 0))
    before, after = edges_of(graph)
    kept = ~_waits_before(graph, spared_ns > 0)[after] | (graph.stream[before] == Stream.HOST)
    return with_edges(shortened, before[kept], after[kept])


def _waits_before(graph: TaskGraph, spared: BoolArray) -> BoolArray:
    """Returns which host tasks wait for the device right before a spared call, bool, shape (tasks,)."""
    host = np.flatnonzero(graph.stream == Stream.HOST)
    host = host[np.lexsort((host, graph.rank[host]))]
    waits = np.zeros(len(graph), dtype=np.bool_)
    same = graph.rank[host[:-1]] == graph.rank[host[1:]]
    is_wait = (graph.kind[host[:-1]] == TaskKind.SYNCHRONIZE) & same & spared[host[1:]]
    waits[host[:-1][is_wait]] = True
    return waits
