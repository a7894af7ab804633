"""Whether the steps of a recorded job run the same operators with the same shapes."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int32Array
from engine.graph.task_graph import TaskGraph
from engine.runtime.scheduler.interference import COMPUTING


@dataclass(frozen=True, slots=True)
class StepChanges:
    """Steps compared with the usual one of their rank.

    Attributes:
        steps: Steps compared, of the rank with the most changes.
        different: Steps that run something else.
        example: What differs in the first of them.
    """

    steps: int
    different: int
    example: str

    @property
    def differ(self) -> bool:
        """Whether any step differs."""
        return self.different > 0


def changing_steps(graph: TaskGraph) -> StepChanges | None:
    """Returns how many steps differ in operators or shapes, None where no rank has two steps.

    The first and the last of more than three steps are not looked at: recordings cut them, and warm-up belongs to the
    first.
    """
    worst: StepChanges | None = None
    computing = np.flatnonzero(np.isin(graph.kind, COMPUTING) & (graph.step >= 0))
    # Loops over ranks and steps: recordings hold a handful of each.
    for rank in np.unique(graph.rank[computing]).tolist():
        own = computing[graph.rank[computing] == rank]
        steps = np.unique(graph.step[own]).tolist()
        compared = steps[1:-1] if len(steps) > 3 else steps
        if len(compared) < 2:
            continue
        found = _compare(graph, [own[graph.step[own] == step] for step in compared], compared)
        if worst is None or found.different > worst.different:
            worst = found
    return worst


def _compare(graph: TaskGraph, tasks: list[Int32Array], steps: list[int]) -> StepChanges:
    signatures = [np.stack((graph.name[own], graph.shape[own])).tobytes() for own in tasks]
    usual = max(set(signatures), key=lambda item: (signatures.count(item), -signatures.index(item)))
    different = [row for row, item in enumerate(signatures) if item != usual]
    if not different:
        return StepChanges(len(steps), 0, "")
    row, reference = different[0], signatures.index(usual)
    counts = len(tasks[row]), len(tasks[reference])
    what = f"{counts[0]:,} against {counts[1]:,} kernels" if counts[0] != counts[1] else "other shapes"
    return StepChanges(len(steps), len(different), f"step {steps[row]}: {what}")
