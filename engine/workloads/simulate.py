"""Runs a scenario: step after step, memory in program order, then time on the device model."""

from collections.abc import Sequence

import numpy as np

from engine.core.number_format import format_duration_ns
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.graph.task_graph import TaskGraph
from engine.runtime.deadlock import Deadlock, find_deadlock
from engine.runtime.scheduler import Schedule, schedule
from engine.workloads.executed import Executed
from engine.workloads.job_memory import ServedStretch
from engine.workloads.layout import Place, rank_of
from engine.workloads.recording import ProfiledRun, ProfiledStep
from engine.workloads.results import ClassMemory, RunResult, RunStatus
from engine.workloads.run_state import RunState, prepared_run, restarted
from engine.workloads.scenario import Scenario
from engine.workloads.step_graph import StepGraphWriter
from engine.workloads.step_memory import serve_step
from engine.workloads.step_shares import StepShares, step_shares


def simulate(scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> RunResult:
    """Runs a training scenario and returns what it came to.

    Raises:
        ScenarioError: It asks for something a simulated training job cannot do.
        OperationCancelled: Cancelled.
    """
    state = prepared_run(scenario)
    clock = _Clock(state, cancel)
    classes = tuple((ranks, _ranks(state, number)) for number, ranks in enumerate(state.classes))
    profiled = ProfiledRun(state, classes)
    status = RunStatus.DONE
    fits = [memory.load(sizes) for memory, sizes in zip(state.memories, state.persistent, strict=True)]
    if not all(fits):
        status = RunStatus.OUT_OF_MEMORY
        state.records.append([memory.record() for memory in state.memories])
    for step in range(scenario.run.steps if status is RunStatus.DONE else 0):
        cancel.check()
        progress(step / scenario.run.steps, clock.stage(step))
        if state.upkeep.restarts(step) and not restarted(state):
            status = RunStatus.OUT_OF_MEMORY
            state.records.append([memory.record() for memory in state.memories])
            break
        keeps = step in scenario.run.profile_steps
        served: list[list[tuple[int, ServedStretch]]] = [[] for _ in state.classes]
        if step == max(scenario.run.profile_steps, default=-1):
            for memory in state.memories:
                memory.keep_addresses()
        executed = [serve_step(state, number, step, served[number] if keeps else None) for number in range(len(served))]
        state.records.append([memory.record() for memory in state.memories])
        complete = [part for part in executed if part is not None]
        if len(complete) < len(executed):
            status = RunStatus.OUT_OF_MEMORY
            break
        if not clock.run(complete):
            status = RunStatus.DEADLOCK
            break
        for memory in state.memories:
            memory.keep_no_more()
        if keeps:
            profiled.steps.append(ProfiledStep(step, tuple(complete), tuple(served)))
    return _result(state, clock, status, profiled)


def _result(state: RunState, clock: "_Clock", status: RunStatus, profiled: ProfiledRun) -> RunResult:
    scenario = state.scenario
    shares = clock.shares()
    replicas = scenario.parallel.data // state.lengths.tokens.shape[1]
    return RunResult(
        scenario=state.asked,
        status=status,
        step_ns=np.array(clock.step_ns, np.int64),
        tokens=state.lengths.tokens.sum(axis=(1, 2, 3))[: len(clock.step_ns)] * replicas,
        memory=tuple(_class_memory(state, number) for number in range(len(state.classes))),
        communication_share_ratio=shares.communication_ratio,
        bubble_ratio=shares.bubble_ratio,
        deadlock=clock.deadlock,
        profiled=profiled,
    )


class _Clock:
    """Turns executed steps into times. Steps are independent: each ends with the host waiting for the device."""

    def __init__(self, state: RunState, cancel: CancelToken) -> None:
        self._state = state
        self._cancel = cancel
        self._known: dict[tuple[tuple[int, ...], ...], int] = {}
        self.step_ns: list[int] = []
        self._last: tuple[TaskGraph, Schedule, dict[int, int]] | None = None
        self.deadlock: Deadlock | None = None

    def stage(self, step: int) -> str:
        """Returns which step begins, and how long the last one took."""
        last = f", the last one took {format_duration_ns(self.step_ns[-1])}" if self.step_ns else ""
        return f"step {step + 1:,} of {self._state.scenario.run.steps:,}{last}"

    def shares(self) -> StepShares:
        """Returns the shares of the last step that was scheduled."""
        return step_shares(*self._last) if self._last else StepShares(0.0, 0.0)

    def run(self, executed: Sequence[Sequence[Executed]]) -> bool:
        """Schedules one step and notes its time; returns False where it cannot finish."""
        stalled = any(item.stalls or item.stop >= 0 for items in executed for item in items)
        key = tuple(tuple(item.length for item in items) for items in executed)
        if not stalled and key in self._known:
            self.step_ns.append(self._known[key])
            return True
        writer = StepGraphWriter(self._state.machine, self._state.transfer_bytes)
        for number, items in enumerate(executed):
            writer.add_class(number, self._state.classes[number], items)
        graph = writer.graph()
        result = schedule(graph, writer.slowdown_ratio(), cancel=self._cancel)
        if not result.is_complete:
            self.deadlock = find_deadlock(graph, result)
            return False
        self.step_ns.append(result.makespan_ns)
        self._last = (graph, result, writer.exposed_ns)
        if not stalled:
            self._known[key] = result.makespan_ns
        return True


def _class_memory(state: RunState, number: int) -> ClassMemory:
    records = [step[number] for step in state.records]

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([getattr(record, name) for record in records], np.int64)

    scenario = state.scenario
    return ClassMemory(
        ranks=_ranks(state, number),
        persistent_bytes=int(state.persistent[number].sum()),
        peak_allocated_bytes=column("peak_allocated_bytes"),
        peak_reserved_bytes=column("peak_reserved_bytes"),
        end_allocated_bytes=column("end_allocated_bytes"),
        end_reserved_bytes=column("end_reserved_bytes"),
        stranded_bytes=column("stranded_bytes"),
        retries=column("retries"),
        driver_calls=column("driver_calls"),
        caught=column("caught"),
        stall_ns=column("stall_ns"),
        migrated_bytes=column("migrated_bytes"),
        compacted_bytes=column("compacted_bytes"),
        failed_bytes=records[-1].failed_bytes if records else 0,
        limit_bytes=scenario.memory.limit_bytes or scenario.device.hbm_usable_bytes,
    )


def _ranks(state: RunState, number: int) -> tuple[int, ...]:
    """Returns the ranks a class stands for: all of a stage, or those of one replica."""
    parallel, chosen = state.scenario.parallel, state.classes[number]
    replicas = range(parallel.data) if state.lengths.tokens.shape[1] == 1 else [chosen.replica]
    return tuple(
        rank_of(Place(tensor, context, data, chosen.stage), parallel)
        for data in replicas
        for context in range(parallel.context)
        for tensor in range(parallel.tensor)
    )
