"""Stretches of computing as progress: which task has ended when a given share of a pass is through."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.modules.host_context import FORWARD, PHASES
from engine.analyses.modules.kernel_phases import phases_of_kernels
from engine.core.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.unlisted import followed_ranks, stands_for_computing
from engine.optimizations.kernel_types import kernel_type
from engine.runtime.scheduler import Schedule

BACKWARD_SHARE = 2 / 3
"""A product has one forward and two backward products of the same size: where no kernel tells its phase, the last two
thirds of a pass are taken for its backward half."""


_GRADIENT = "Grad"
"""Part of the type of a gradient kernel: ``RmsNormGrad`` beside ``RmsNorm``."""
_PASS_RATIO = 0.1
"""A forward pass alone is a third of one with its backward pass; clearing gradients, or scaling them, is far less."""


@dataclass(frozen=True, slots=True, eq=False)
class RankComputing:
    """The computing tasks of one rank by start.

    Attributes:
        task: int32, shape (n,).
        start_ns: int64, shape (n,).
        end_ns: int64, shape (n,).
        forward: bool, shape (n,): belongs to a forward pass.
        tells_phase: Whether anything is known of phases.
    """

    task: Int32Array
    start_ns: Int64Array
    end_ns: Int64Array
    forward: BoolArray
    tells_phase: bool


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A stretch of computing of one rank, cut by share.

    Attributes:
        task: int32, shape (n,): by start.
        done_ratio: float64, shape (n,): share of the stretch that is through when each task has ended.
        total_ns: Computing in it.
    """

    task: Int32Array
    done_ratio: Float64Array
    total_ns: int

    def task_at_end(self, ratio: Float64Array) -> Int32Array:
        """Returns the task with whose end a share of the stretch is through, int32."""
        rows = np.searchsorted(self.done_ratio, np.asarray(ratio) - 1e-9)
        return self.task[np.minimum(rows, len(self.task) - 1)]

    def task_at_start(self, ratio: Float64Array) -> Int32Array:
        """Returns the task that begins when a share of the stretch is through, int32."""
        rows = np.searchsorted(self.done_ratio, np.asarray(ratio) + 1e-9)
        return self.task[np.minimum(rows, len(self.task) - 1)]


def rank_computing(graph: TaskGraph, times: Schedule) -> dict[int, RankComputing]:
    """Returns the computing of every rank; phases come from the graph, else from kernels' names.

    A rank that lists no kernels has the computing of the rank it follows.
    """
    rows = np.flatnonzero(stands_for_computing(graph) & (times.end_ns >= 0))
    rows = rows[np.lexsort((rows, times.start_ns[rows], graph.rank[rows]))].astype(np.int32)
    ranks = graph.rank[rows]
    found = {}
    for rank in np.unique(ranks).tolist():
        own = rows[ranks == rank]
        forward, known = _forward(graph, own)
        found[rank] = RankComputing(own, times.start_ns[own], times.end_ns[own], forward, known)
    return found | {rank: found[leader] for rank, leader in followed_ranks(graph).items() if leader in found}


def _forward(graph: TaskGraph, task: Int32Array) -> tuple[BoolArray, bool]:
    """Returns which computing tasks are forward, by start, and whether anything is known of phases."""
    names, inverse = np.unique(graph.name[task], return_inverse=True)
    types = [kernel_type(graph.strings.text(int(name))) for name in names]
    told = graph.phase[task] == graph.strings.id_of(FORWARD)
    if np.any(graph.phase[task] >= 0) and not _contradicts(types, inverse, told):
        return told, True
    phases = phases_of_kernels(types, inverse.astype(np.int64))
    forward = phases == PHASES.index(FORWARD)
    # Without a single gradient kernel everything comes out as forward: nothing is known then.
    return forward, not bool(forward.all())


def _contradicts(types: list[str], type_index: AnyArray, forward: BoolArray) -> bool:
    """Returns whether most kernels that have a gradient kernel of their own beside them are not called forward.

    A stack of micro-batches may have been taken for layers of one phase; kernels' own names are better then.
    """
    gradients = {name[: name.index(_GRADIENT)] for name in types if _GRADIENT in name}
    own = np.array([name in gradients for name in types], dtype=np.bool_)[type_index]
    return bool(2 * np.count_nonzero(own & ~forward) > np.count_nonzero(own))


def backward_before(computing: RankComputing, start_ns: int, end_ns: int, passes_ns: Int64Array) -> Stretch | None:
    """Returns the last backward pass before a moment: what completes the gradients that are exchanged at it.

    Args:
        computing: Of the rank.
        start_ns: Beginning of the step.
        end_ns: The moment.
        passes_ns: Moments at which the rank got or gave something from or to another pipeline stage: passes begin and
            end there.
    """
    first_ns = _last_pass(computing, start_ns, end_ns, passes_ns)
    rows = np.flatnonzero((computing.start_ns >= first_ns) & (computing.end_ns <= end_ns))
    if len(rows) == 0:
        return None
    if computing.tells_phase:
        ahead = np.flatnonzero(computing.forward[rows])
        return _cut(computing, rows[ahead[-1] + 1 :] if len(ahead) else rows)
    done_ns = np.cumsum(computing.end_ns[rows] - computing.start_ns[rows])
    return _cut(computing, rows[done_ns > (1 - BACKWARD_SHARE) * done_ns[-1]])


def forward_after(computing: RankComputing, start_ns: int, end_ns: int, passes_ns: Int64Array) -> Stretch | None:
    """Returns the first forward pass after a moment: what needs the weights that are gathered at it.

    Args:
        computing: Of the rank.
        start_ns: The moment.
        end_ns: End of the step.
        passes_ns: See ``backward_before``.
    """
    first_ns, last_ns = _first_pass(computing, start_ns, end_ns, passes_ns)
    rows = np.flatnonzero((computing.start_ns >= first_ns) & (computing.end_ns <= last_ns))
    if len(rows) == 0:
        return None
    if not computing.tells_phase:
        done_ns = np.cumsum(computing.end_ns[rows] - computing.start_ns[rows])
        return _cut(computing, rows[done_ns <= (1 - BACKWARD_SHARE) * done_ns[-1]])
    begin = np.flatnonzero(computing.forward[rows])
    if len(begin) == 0:
        return None
    behind = np.flatnonzero(~computing.forward[rows])
    stop = behind[behind > begin[0]]
    return _cut(computing, rows[begin[0] : stop[0] if len(stop) else len(rows)])


def _pieces(
    computing: RankComputing, start_ns: int, end_ns: int, passes_ns: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Returns where the pieces between borders begin, and which of them hold a pass.

    A piece with far less than the usual computing holds none: it is what stands before the first receive, or behind
    the send of the last result.
    """
    borders = np.unique(np.append(passes_ns[(passes_ns > start_ns) & (passes_ns <= end_ns)], start_ns))
    inside = (computing.start_ns >= start_ns) & (computing.end_ns <= end_ns)
    begin, length = computing.start_ns[inside], (computing.end_ns - computing.start_ns)[inside]
    piece = np.searchsorted(borders, begin, side="right") - 1
    computed = np.bincount(piece, weights=length, minlength=len(borders))
    if not np.any(computed > 0):
        return borders, np.zeros(1, dtype=np.int64)
    return borders, np.flatnonzero(computed >= _PASS_RATIO * np.median(computed[computed > 0]))


def _first_pass(computing: RankComputing, start_ns: int, end_ns: int, passes_ns: Int64Array) -> tuple[int, int]:
    """Returns from when to when the first pass after ``start_ns`` lasts."""
    borders, whole = _pieces(computing, start_ns, end_ns, passes_ns)
    first = int(whole[0])
    return int(borders[first]), int(borders[first + 1]) if first + 1 < len(borders) else end_ns


def _last_pass(computing: RankComputing, start_ns: int, end_ns: int, passes_ns: Int64Array) -> int:
    """Returns when the last pass before ``end_ns`` began."""
    borders, whole = _pieces(computing, start_ns, end_ns, passes_ns)
    return int(borders[whole[-1]])


def _cut(computing: RankComputing, rows: Int64Array) -> Stretch | None:
    if len(rows) == 0:
        return None
    length = (computing.end_ns - computing.start_ns)[rows]
    done = np.cumsum(length, dtype=np.float64)
    if done[-1] <= 0:
        return None
    return Stretch(computing.task[rows], done / done[-1], int(length.sum()))
