"""What a simulated run came to."""

from dataclasses import dataclass, field
from enum import StrEnum

from engine.analyses.step_history import StepHistory
from engine.core.arrays import Int64Array
from engine.runtime.deadlock import Deadlock
from engine.workloads.recording import ProfiledRun
from engine.workloads.scenario import Scenario


class RunStatus(StrEnum):
    """How a run ended."""

    DONE = "done"
    OUT_OF_MEMORY = "oom"
    DEADLOCK = "deadlock"


@dataclass(frozen=True, slots=True, eq=False)
class ClassMemory:
    """Memory of one class of ranks. Arrays are int64, shape (steps run,).

    Attributes:
        ranks: The ranks it stands for.
        persistent_bytes: Weights, gradients and optimizer state.
        peak_allocated_bytes: Per step.
        peak_reserved_bytes: Per step.
        end_allocated_bytes: After each step: what outlives it.
        end_reserved_bytes: After each step.
        stranded_bytes: At the worst miss of each step, −1 where there was none.
        retries: Per step.
        driver_calls: Per step.
        caught: Out-of-memory errors caught, per step.
        stall_ns: Host time of all that, per step.
        migrated_bytes: Moved between HBM and DDR, both ways, per step.
        compacted_bytes: Of live blocks moved inside HBM, per step: only a simulator can do that.
        failed_bytes: Size of the request that ended the run, 0 where none did.
        limit_bytes: What could be reserved.
    """

    ranks: tuple[int, ...]
    persistent_bytes: int
    peak_allocated_bytes: Int64Array
    peak_reserved_bytes: Int64Array
    end_allocated_bytes: Int64Array
    end_reserved_bytes: Int64Array
    stranded_bytes: Int64Array
    retries: Int64Array
    driver_calls: Int64Array
    caught: Int64Array
    stall_ns: Int64Array
    migrated_bytes: Int64Array
    compacted_bytes: Int64Array
    failed_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """A run.

    Attributes:
        scenario: What was run.
        status: How it ended.
        step_ns: int64, shape (steps run,): from the first dispatch of a step to its last synchronisation.
        tokens: int64, shape (steps run,): real tokens of all replicas, padding not counted.
        memory: One entry per class of ranks.
        communication_share_ratio: Share of the step in which a rank's device transfers and does not compute, mean over
            ranks, of the last step that was scheduled.
        bubble_ratio: Share in which a rank's device waits for another stage, likewise.
        profiled: The steps whose kernel rows can be recorded.
        deadlock: Who waits for whom, None unless the run ended so.
    """

    scenario: Scenario
    status: RunStatus
    step_ns: Int64Array
    tokens: Int64Array
    memory: tuple[ClassMemory, ...]
    communication_share_ratio: float
    bubble_ratio: float
    profiled: ProfiledRun
    deadlock: Deadlock | None = field(default=None)

    @property
    def histories(self) -> tuple[StepHistory, ...]:
        """What happened in every step, by class of ranks."""
        count = len(self.step_ns)
        return tuple(
            StepHistory(
                step_ns=self.step_ns,
                tokens=self.tokens,
                peak_allocated_bytes=item.peak_allocated_bytes[:count],
                peak_reserved_bytes=item.peak_reserved_bytes[:count],
                end_allocated_bytes=item.end_allocated_bytes[:count],
                stranded_bytes=item.stranded_bytes[:count],
                retries=item.retries[:count],
                driver_calls=item.driver_calls[:count],
                caught=item.caught[:count],
                stall_ns=item.stall_ns[:count],
                limit_bytes=item.limit_bytes,
            )
            for item in self.memory
        )

    @property
    def tokens_per_s(self) -> float:
        """Real tokens per second after the first step, which warms the allocator up; of that one where no other ran."""
        first = 1 if len(self.step_ns) > 1 else 0
        total_ns = int(self.step_ns[first:].sum())
        return float(self.tokens[first:].sum()) * 1e9 / total_ns if total_ns else 0.0
