"""The demonstration: a run that slows down, what says so and why, and what other allocators make of the same job."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.analyses.slowdown import RunCourse, run_course
from engine.analyses.step_history import StepHistory
from engine.core.errors import ExportError
from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.units import NS_PER_US
from engine.report.run_capture import write_run
from engine.report.simulation import run_ending
from engine.workloads.results import RunResult
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import read_scenario
from engine.workloads.simulate import simulate

SCHEMA = "cannscope.demo/1"
SCENARIO = "fragmentation_slowdown.toml"
ALLOCATORS = ("caching", "expandable", "amc")
"""The one the scenario names, and those that should cure it."""
LEVEL = 1
REPORT = "report.md"
_RUNNING_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class DemoRun:
    """The job under one allocator.

    Attributes:
        allocator: Name of the policy.
        result: What the run came to.
        history: Of the rank whose allocator cost most time.
        course: Whether it slows down and why; None where not one step was run.
        directory: Where its captures are; None where it ended before anything was recorded.
    """

    allocator: str
    result: RunResult
    history: StepHistory
    course: RunCourse | None
    directory: Path | None

    @property
    def last_ns(self) -> float | None:
        """Mean step of the last eighth; None where not one step was run."""
        times = self.result.step_ns
        return float(times[-max(len(times) // 8, 1) :].mean()) if len(times) else None


def demo_scenario() -> Scenario:
    """Returns the shipped scenario of a job that slows down. Raises ScenarioError."""
    with resources.as_file(resources.files("engine.workloads").joinpath("scenarios", SCENARIO)) as path:
        return read_scenario(path)


def run_demo(
    scenario: Scenario,
    directory: Path,
    allocators: Sequence[str] = ALLOCATORS,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> tuple[DemoRun, ...]:
    """Runs the job under every allocator, writes the captures of each and a report.

    Args:
        scenario: The job.
        directory: Receives a directory per allocator and ``report.md``.
        allocators: Names of policies.
        progress: Told what is done.
        cancel: Looked at between steps.

    Raises:
        ScenarioError: The job cannot run.
        ExportError: Something cannot be written.
        OperationCancelled: Cancelled.
    """
    runs = []
    for number, allocator in enumerate(allocators):
        stage = part_of(progress, number / len(allocators), (number + 1) / len(allocators))
        own = replace(scenario, memory=replace(scenario.memory, allocator=allocator))
        runs.append(_run(own, directory / allocator, stage, cancel))
    path = directory / REPORT
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(demo_markdown(runs), encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with -o") from error
    return tuple(runs)


def _run(scenario: Scenario, directory: Path, progress: Progress, cancel: CancelToken) -> DemoRun:
    allocator = scenario.memory.allocator

    def named(done_ratio: float, what: str) -> None:
        progress(done_ratio * _RUNNING_SHARE, f"{allocator}: {what}")

    result = simulate(scenario, named, cancel)
    written = None
    if result.profiled.steps:
        write_run(result, directory, LEVEL, part_of(progress, _RUNNING_SHARE, 1.0), cancel)
        written = directory
    history = max(result.histories, key=lambda item: int(item.stall_ns.sum()))
    return DemoRun(allocator, result, history, run_course(history) if len(history) else None, written)


def demo_document(runs: Sequence[DemoRun], directory: Path, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a demonstration (``cannscope.demo/1``); durations in µs, sizes in bytes."""
    return {
        "schema": SCHEMA,
        "scenario": runs[0].result.scenario.name,
        "report": str(directory / REPORT),
        "runs": [_run_document(run) for run in runs],
        "provenance": provenance,
    }


def _run_document(run: DemoRun) -> dict[str, Any]:
    slowdown = run.course.slowdown if run.course else None
    history = run.history
    return {
        "allocator": run.allocator,
        "status": run.result.status.value,
        "steps": len(run.result.step_ns),
        "captures": str(run.directory) if run.directory else None,
        "step_time_us": float(run.result.step_ns.mean()) / NS_PER_US if len(run.result.step_ns) else None,
        "last_step_time_us": run.last_ns / NS_PER_US if run.last_ns is not None else None,
        "onset_step": slowdown.onset if slowdown else None,
        "loss_ratio": slowdown.loss_ratio if slowdown else None,
        "retries": int(history.retries.sum()),
        "driver_calls": int(history.driver_calls.sum()),
        "out_of_memory_caught": int(history.caught.sum()),
        "peak_allocated_bytes": int(history.peak_allocated_bytes.max(initial=0)),
        "peak_reserved_bytes": int(history.peak_reserved_bytes.max(initial=0)),
        "limit_bytes": history.limit_bytes,
        "verdict": run.course.trend.verdict.value if run.course else None,
        "sentence": _sentence(run),
    }


def _sentence(run: DemoRun) -> str:
    return run.course.sentence if run.course else run_ending(run.result)


_TITLES = ("allocator", "ms per step", "at the end", "slows down", "retries", "driver calls", "OOM caught", "reserved")


def _cells(run: DemoRun) -> tuple[str, ...]:
    history, times = run.history, run.result.step_ns
    slowdown = run.course.slowdown if run.course else None
    slows = f"from step {slowdown.onset:,}, +{format_ratio(slowdown.loss_ratio)}" if slowdown else "no"
    return (
        run.allocator,
        format_duration_ns(float(np.mean(times))) if len(times) else "–",
        format_duration_ns(run.last_ns) if run.last_ns is not None else "–",
        slows,
        f"{int(history.retries.sum()):,}",
        f"{int(history.driver_calls.sum()):,}",
        f"{int(history.caught.sum()):,}",
        format_bytes(int(history.peak_reserved_bytes.max(initial=0))),
    )


def comparison_sentence(runs: Sequence[DemoRun]) -> str:
    """Returns what the other allocators make of the job whose first run is the one as it stands."""
    first = runs[0].last_ns
    if first is None:
        return ""
    parts = [
        f"{run.allocator} ends at {format_duration_ns(run.last_ns)} per step ({(run.last_ns / first - 1) * 100:+.0f} %)"
        for run in runs[1:]
        if run.last_ns is not None
    ]
    return f"The same job and seed: {', '.join(parts)}." if parts else ""


def demo_text(runs: Sequence[DemoRun], directory: Path) -> RenderableType:
    """Returns the demonstration for people."""
    scenario = runs[0].result.scenario
    table = Table(*_TITLES, box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for run in runs:
        table.add_row(*_cells(run))
    return Group(
        Text(f"{scenario.name}: {scenario.run.steps:,} simulated steps on {scenario.device.id}", style="bold"),
        Text(_sentence(runs[0])),
        Text(comparison_sentence(runs)),
        Text(),
        table,
        Text(),
        Text(f"captures and {REPORT} are in {directory}; the window: cannscope {directory / runs[0].allocator}"),
    )


def demo_markdown(runs: Sequence[DemoRun]) -> str:
    """Returns the report."""
    scenario = runs[0].result.scenario
    what = f"{scenario.run.steps:,} steps of {scenario.model.id} on {scenario.device_count} × {scenario.device.id}"
    lines = [
        f"# {scenario.name}",
        "",
        f"Simulated: {what}, seed {scenario.seed}. Nothing here was measured.",
        "",
        _sentence(runs[0]),
        "",
        comparison_sentence(runs),
        "",
        f"| {' | '.join(_TITLES)} |",
        f"|{'---|' * len(_TITLES)}",
        *(f"| {' | '.join(_cells(run))} |" for run in runs),
        "",
        *(f"* **{run.allocator}**: {_sentence(run)}" for run in runs),
    ]
    return "\n".join(lines) + "\n"
