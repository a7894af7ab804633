"""What the critical path of a replayed capture is made of: where time would have to go for the step to be shorter."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.number_format import format_duration_ns, format_ratio
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.optimizations.communication.calls import calls_of
from engine.replay.critical_path import CriticalPath, critical_path
from engine.whatif.subject import CaptureSubject, Subject

_LEAST_TOLD_RATIO = 0.0005
"""Parts below it would read as 0.0 %."""
_TRANSFER, _UNSPLIT = "transfer", "communication (unsplit)"
_NAMES = {
    TaskKind.HOST: "host",
    TaskKind.SYNCHRONIZE: "host",
    TaskKind.CUBE: "computing",
    TaskKind.VECTOR: "computing",
    TaskKind.MIX: "computing",
    TaskKind.AI_CPU: "AI CPU",
    TaskKind.COLLECTIVE: _TRANSFER,
    TaskKind.COPY: "copies",
    TaskKind.GAP: "unexplained gaps",
}
"""Waiting for an open rank is never on the path: it is on the path of whom is waited for."""


@dataclass(frozen=True, slots=True)
class PathShares:
    """The critical path of a replay.

    Attributes:
        length_ns: From its first task to its last.
        parts: What it is made of → ns, the largest first.
        ranks: Rank → ns it spends there, the largest first.
    """

    length_ns: int
    parts: Mapping[str, int]
    ranks: Mapping[int, int]

    @property
    def sentence(self) -> str:
        """For people."""
        ratios = {name: ns / self.length_ns for name, ns in self.parts.items()}
        told = (f"{name} {format_ratio(ratio)}" for name, ratio in ratios.items() if ratio >= _LEAST_TOLD_RATIO)
        made = ", ".join(told)
        where = ", ".join(f"rank {rank} {format_ratio(ns / self.length_ns)}" for rank, ns in self.ranks.items())
        place = f"; on {where}" if len(self.ranks) > 1 else ""
        return f"Critical path of the replay ({format_duration_ns(self.length_ns)}): {made}{place}"


def path_shares(subject: Subject | None) -> PathShares | None:
    """Returns the shares of a capture's critical path; None for a simulated job or one that cannot be replayed."""
    if not isinstance(subject, CaptureSubject):
        return None
    replayed = subject.baseline_run().replayed
    path = critical_path(replayed.graph, replayed.schedule)
    if not len(path) or not path.length_ns:
        return None
    parts: dict[str, int] = {}
    for kind, ns in path.by_kind(replayed.graph).items():
        parts[_NAMES[kind]] = parts.get(_NAMES[kind], 0) + ns
    unsplit_ns = _unsplit_ns(replayed.graph, path)
    if unsplit_ns:
        parts[_TRANSFER] -= unsplit_ns
        parts[_UNSPLIT] = unsplit_ns
    ordered = dict(sorted(((name, ns) for name, ns in parts.items() if ns), key=lambda item: -item[1]))
    return PathShares(path.length_ns, ordered, path.by_rank(replayed.graph))


def _unsplit_ns(graph: TaskGraph, path: CriticalPath) -> int:
    """Returns the time of collectives on the path whose members are not all open: it may be waiting for others."""
    calls = calls_of(graph)
    unsplit = np.isin(path.task, calls.task[~calls.split])
    return int((path.end_ns - path.start_ns)[unsplit].sum())
