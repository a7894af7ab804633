"""Simulated jobs as recordings: what a prediction on a capture is checked against, because here the truth is known."""

from dataclasses import dataclass, replace
from pathlib import Path

from engine.formats import open_job
from engine.formats.ascend_writer import write_ascend_text
from engine.formats.readers import built_in_readers
from engine.trace.job import Job
from engine.workloads.recording import record_run
from engine.workloads.results import RunResult
from engine.workloads.scenario import RunSettings, Scenario
from engine.workloads.simulate import simulate

LEVEL = 1
STEPS = RunSettings(steps=3, profile_steps=(2,))
"""The third step is profiled: the first ones warm the allocator up."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedRecording:
    """A simulated job and what a profiler saw of its profiled steps.

    Attributes:
        result: The run.
        job: Its traces.
    """

    result: RunResult
    job: Job

    @property
    def step_ns(self) -> float:
        """Mean time of the profiled steps as simulated."""
        profiled = list(self.result.scenario.run.profile_steps)
        return float(self.result.step_ns[profiled].mean())


def recorded(scenario: Scenario, run: RunSettings = STEPS, level: int = LEVEL) -> SimulatedRecording:
    """Simulates a scenario and returns it with the traces of its profiled steps, in memory."""
    result = simulate(replace(scenario, run=run))
    return SimulatedRecording(result, record_run(result.profiled, result.histories, level))


def written_and_read(
    scenario: Scenario, folder: Path, run: RunSettings = STEPS, level: int = LEVEL
) -> SimulatedRecording:
    """Does the same by way of profiler directories below ``folder``: what a user would open."""
    recording = recorded(scenario, run, level)
    paths = [write_ascend_text(entry.trace, folder) for entry in recording.job.ranks]
    return SimulatedRecording(recording.result, open_job(paths, built_in_readers()))
