"""The profiler of the simulated runtime: a schedule becomes one Trace per rank, as a real capture would show it."""

from engine.runtime.recorder.memory import RankMemory, memory_of_run
from engine.runtime.recorder.overhead import with_profiling
from engine.runtime.recorder.record import record_job, record_rank
from engine.runtime.recorder.settings import RecorderSettings

__all__ = ["RankMemory", "RecorderSettings", "memory_of_run", "record_job", "record_rank", "with_profiling"]
