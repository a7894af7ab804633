"""What the search for fusions returns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range3:
    """A low, an expected and a high estimate of the same quantity."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place where a candidate stands.

    Attributes:
        events: Event rows in order, on one track.
        start_ns: First start.
        end_ns: Last end.
        busy_ns: Sum of the durations.
    """

    events: tuple[int, ...]
    start_ns: int
    end_ns: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class FusionCandidate:
    """One pattern with all its occurrences.

    Attributes:
        pattern: Stable id (``"cross_entropy"``, ``"sequence:Cast+Mul+Add"``).
        title: What people call it.
        replacement: The real call that replaces it (``"torch_npu.npu_swiglu"``); "" for frequent sequences nobody
            fuses today, and where the call that does has no derivative and the capture is of training.
        matched_by: ``"framework"`` or ``"kernels"``.
        count: Occurrences; for runs of one repeated call (optimizer, norms) the calls.
        total_ns: Device time of all of them.
        gap_ns: Time the whole device waited between their kernels.
        launches: Kernels that would become one per occurrence.
        bound: ``"host"``, ``"vector"``, ``"cube"`` or ``"memory"``: what limits the stretch.
        saving_ns: What fusing all occurrences would win; never more than total + gap.
        reason: How the saving was estimated, and what limits it.
        occurrences: By start.
    """

    pattern: str
    title: str
    replacement: str
    matched_by: str
    count: int
    total_ns: int
    gap_ns: int
    launches: int
    bound: str
    saving_ns: Range3
    reason: str
    occurrences: tuple[Occurrence, ...]
