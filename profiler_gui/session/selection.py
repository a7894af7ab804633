"""What is selected: exactly one of these, for every pane of the window."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Nothing:
    """No selection."""


@dataclass(frozen=True, slots=True)
class EventSelection:
    """One event row of a rank's trace."""

    rank: int
    event: int


@dataclass(frozen=True, slots=True)
class RangeSelection:
    """A half-open stretch of a rank's trace time."""

    rank: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """The length."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class TrackSelection:
    """One track of a rank's trace."""

    rank: int
    track: int


@dataclass(frozen=True, slots=True)
class StepSelection:
    """One step: index into the ``steps`` of the rank's summary."""

    rank: int
    index: int


@dataclass(frozen=True, slots=True)
class AllocationSelection:
    """One block: row of the rank's AllocationTable."""

    rank: int
    row: int


@dataclass(frozen=True, slots=True)
class OperatorSelection:
    """All device tasks of one operator type."""

    rank: int
    type: str


@dataclass(frozen=True, slots=True)
class CandidateSelection:
    """A fusion candidate; ``occurrence`` is an index into its occurrences, or None for all of them."""

    rank: int
    pattern: str
    occurrence: int | None = None


@dataclass(frozen=True, slots=True)
class CollectiveSelection:
    """One collective: index into the rank's collectives of the summary."""

    rank: int
    index: int


@dataclass(frozen=True, slots=True)
class IdleSelection:
    """One device gap: index into the ``idle`` of the rank's summary."""

    rank: int
    index: int


Selection: TypeAlias = (
    Nothing
    | EventSelection
    | RangeSelection
    | TrackSelection
    | StepSelection
    | AllocationSelection
    | OperatorSelection
    | CandidateSelection
    | CollectiveSelection
    | IdleSelection
)
NOTHING = Nothing()
