"""Steps of a simulated job on the scheduler, in both of their resolutions."""

from collections.abc import Iterator

from engine.graph.task_graph import TaskGraph
from engine.runtime.scheduler import Schedule, schedule
from engine.workloads.block_times import Contention
from engine.workloads.run_state import prepared_run
from engine.workloads.scenario import Scenario
from engine.workloads.step_detail import step_detail
from engine.workloads.step_graph import StepGraphWriter
from engine.workloads.step_memory import serve_step

Timed = tuple[TaskGraph, Schedule]
ALONE = Contention(1e12, 0.0)
"""Transfers that slow nothing."""


def scheduled_steps(scenario: Scenario, slowing: Contention | None, count: int = 2) -> Iterator[tuple[Timed, Timed]]:
    """Yields the first steps of a job, each operator by operator and in blocks."""
    state = prepared_run(scenario)
    for memory, sizes in zip(state.memories, state.persistent, strict=True):
        assert memory.load(sizes)
    layout = state.scenario.parallel
    replicas = state.lengths.tokens.shape[1]
    width = layout.tensor * layout.context
    for step in range(count):
        executed = [serve_step(state, number, step) for number in range(len(state.classes))]
        assert all(executed)
        parts = [part for part in executed if part is not None]
        writer = StepGraphWriter(state.machine, state.transfer_bytes, slowing)
        classes = []
        for number, ranks in enumerate(state.classes):
            writer.add_class(number, ranks, parts[number])
            stage_width = width * layout.data
            own = range(stage_width) if replicas == 1 else range(ranks.replica * width, (ranks.replica + 1) * width)
            classes.append((ranks, tuple(ranks.stage * stage_width + rank for rank in own)))
        detail = step_detail([step], layout, writer, classes, [parts])
        result = schedule(detail.graph, detail.slowdown_ratio)
        assert result.is_complete
        graph = writer.graph()
        yield (detail.graph, result), (graph, schedule(graph, writer.slowdown_ratio()))


def step_times_ns(scenario: Scenario, slowing: Contention | None, count: int = 2) -> list[tuple[int, int]]:
    """Returns the times of the first steps, each operator by operator and in blocks."""
    return [(one.makespan_ns, other.makespan_ns) for (_, one), (_, other) in scheduled_steps(scenario, slowing, count)]
