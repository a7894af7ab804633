"""How busy the pipelines of the cores were, from the PMU columns a capture keeps with its kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.trace.trace import Trace

_MAX_SAMPLES = 16
"""Arguments are read from the source one by one; the longest kernels say what limits a stretch."""


@dataclass(frozen=True, slots=True)
class PipeUse:
    """Time-weighted shares of the sampled kernels in which each pipeline worked, 0…1.

    Attributes:
        cube: Matrix unit.
        vector: Vector unit.
        memory: The busier of the transfers from and to memory.
    """

    cube: float
    vector: float
    memory: float

    @property
    def bound(self) -> str:
        """``"cube"``, ``"vector"`` or ``"memory"``: the busiest pipeline."""
        busiest = max(self.cube, self.vector, self.memory)
        return "cube" if busiest == self.cube else "vector" if busiest == self.vector else "memory"


def pipe_use(trace: Trace, events: Sequence[int]) -> PipeUse | None:
    """Returns the use of the pipelines in the longest of ``events``, None where the capture has no PMU columns."""
    rows = np.asarray(events, dtype=np.int64)
    longest = rows[np.argsort(-trace.events.duration_ns[rows], kind="stable")[:_MAX_SAMPLES]].tolist()
    cube = vector = memory = weight = 0.0
    for event in longest:
        columns = trace.arguments(event)
        duration = float(trace.events.duration_ns[event])
        shares = [
            _largest(columns, ("aic_mac_ratio", "mac_ratio")),
            _largest(columns, ("aiv_vec_ratio", "vec_ratio")),
            _largest(columns, ("aiv_mte2_ratio", "aiv_mte3_ratio", "aic_mte2_ratio", "mte2_ratio", "mte3_ratio")),
        ]
        if all(share is None for share in shares):
            continue
        weight += duration
        cube += duration * (shares[0] or 0.0)
        vector += duration * (shares[1] or 0.0)
        memory += duration * (shares[2] or 0.0)
    return PipeUse(cube / weight, vector / weight, memory / weight) if weight > 0 else None


def _largest(columns: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    values = []
    for name in names:
        try:
            values.append(float(columns[name]))
        except (KeyError, TypeError, ValueError):  # the column is absent or says N/A
            continue
    return max(values) if values else None
