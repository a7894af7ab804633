"""A recorded job as tasks: what a replay runs and optimizations rewrite."""

from dataclasses import dataclass
from enum import StrEnum

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph
from engine.trace.diagnostics import Diagnostic
from engine.trace.job import Job


class HostSource(StrEnum):
    """Where a rank's dispatch times come from."""

    LAUNCHES = "launches"
    """Host calls of the capture, each tied to the device task it launched."""
    ALLOCATIONS = "allocations"
    """Times of the memory log: an allocation is made just before the operator that needs it is dispatched."""
    GAPS = "gaps"
    """Only starved gaps of the device: between two of them the host is known to have been ahead, not by how much."""


class Gaps(StrEnum):
    """What becomes of the time in which a stream stands still for no reason the graph knows."""

    KEPT = "kept"
    """It stays as GAP tasks: the unchanged replay is the recording."""
    WITHHELD = "withheld"
    """It is left out but for the constant time between two queued tasks: what the model explains by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSteps:
    """Steps as the capture has them; one row per rank and step, by rank, then step. Columns of shape (rows,).

    A capture without steps has one row per rank, step −1: from its first device task to the end of its last.

    Attributes:
        rank: int32.
        step: int32 number of the profiler's step, −1 for the device span.
        start_ns: int64 job time.
        end_ns: int64 job time.
    """

    rank: Int32Array
    step: Int32Array
    start_ns: Int64Array
    end_ns: Int64Array

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, slots=True, eq=False)
class CaptureGraph:
    """A capture's tasks. Device tasks carry no recorded start times, only what they wait for.

    The graph keeps the conventions of ``TaskGraph`` and these:

    * ``rank`` is the job's rank number. Stream 0 (``Stream.HOST``) is the rank's dispatch: host time between two
      launches as HOST tasks, host waits as SYNCHRONIZE tasks. ``Stream.COMPUTE`` is the device stream that computes
      most, collectives are on ``Stream.COMMUNICATION`` or further numbers, other device streams have further numbers.
    * A device task's first predecessor is the host task that launched it (where any is known).
    * A COLLECTIVE whose group is complete and matched has a rendezvous, and its duration is the transfer; without one
      its duration is the elapsed time, unsplit: nothing may scale it by bytes.
    * ``step`` holds the profiler's step number; ``origin_event`` the event of the rank's trace (−1 for what was added);
      ``inferred`` is 1 where a dependency of the task was inferred from coincident times rather than recorded.
    * A GAP task stands right before the task of its stream that it belongs to and waits for the same tasks: whoever
      removes a task removes its gap, whoever changes a task's waits changes the gap's.
    * ``flops`` and ``bytes`` are known where the capture has shapes, else 0; ``shape`` is the capture's text.

    Attributes:
        job: The recorded ranks.
        graph: The tasks.
        steps: Recorded steps, to compare replayed ones with.
        host_source: By rank.
        latency_ns: By rank: from a launch to the start of its task on an idle stream.
        diagnostics: What had to be assumed or left out.
    """

    job: Job
    graph: TaskGraph
    steps: RecordedSteps
    host_source: dict[int, HostSource]
    latency_ns: dict[int, int]
    diagnostics: tuple[Diagnostic, ...] = ()
