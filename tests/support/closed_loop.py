"""Simulated jobs as recordings: what a prediction on a capture is checked against, because here the truth is known."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from engine.formats import open_job
from engine.formats.ascend_writer import write_ascend_text
from engine.formats.readers import built_in_readers
from engine.trace.job import Job
from engine.trace.tables import EventTable, FlowTable
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind
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


def without_host_rows(job: Job) -> Job:
    """Returns a job as ranks with kernel tables and memory logs only: no host, no launches, no arrows."""
    return replace(job, ranks=tuple(replace(entry, trace=_device_only(entry.trace)) for entry in job.ranks))


def _device_only(trace: Trace) -> Trace:
    kept = np.zeros(len(trace.events), dtype=np.bool_)
    kept[trace.events_of(TrackKind.DEVICE_STREAM, TrackKind.COMMUNICATION_GROUP)] = True
    position = np.full(len(kept) + 1, -1, dtype=np.int32)  # the last entry answers for −1
    position[np.flatnonzero(kept)] = np.arange(int(kept.sum()), dtype=np.int32)
    columns = {item.name: getattr(trace.events, item.name)[kept] for item in fields(EventTable)}
    nowhere = np.full(int(kept.sum()), -1)
    blocks = trace.memory.allocations
    return replace(
        trace,
        events=EventTable(**columns | {"parent": nowhere.astype(np.int32), "correlation": nowhere.astype(np.int64)}),
        kernels=replace(trace.kernels, event=position[trace.kernels.event]),
        collectives=replace(trace.collectives, event=position[trace.collectives.event]),
        flows=FlowTable(*(np.empty(0, dtype=np.int32),) * 3),
        memory=replace(trace.memory, allocations=replace(blocks, event=np.full(len(blocks), -1, dtype=np.int32))),
    )
