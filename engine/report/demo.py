"""The demonstration: a run that slows down, what is wrong with it, what cures it, and both beside each other."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.advisor.advise import advise, examine
from engine.advisor.gains import Laboratory
from engine.advisor.recommendations import Advice
from engine.advisor.rules import rule_registry
from engine.analyses.slowdown import RunCourse, run_course
from engine.analyses.step_history import StepHistory
from engine.core.errors import ExportError
from engine.core.number_format import format_bytes, format_duration_ns, format_ratio
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.registry import Registry
from engine.core.units import NS_PER_US
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.selection import enabled
from engine.report.advice_document import advice_document
from engine.report.advice_export import write_advice
from engine.report.advice_words import gain_text
from engine.report.escaping import markdown_text
from engine.report.run_capture import write_run
from engine.report.simulation import run_ending
from engine.whatif.results import Side
from engine.whatif.subject import ScenarioSubject
from engine.workloads.results import RunResult
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import read_scenario

SCHEMA = "cannscope.demo/1"
SCENARIO = "fragmentation_slowdown.toml"
CURES = {"expandable": "memory.expandable_segments", "amc": "memory.amc"}
"""Allocator → the optimization that puts it in place of the scenario's own."""
RULES = (
    "memory.fragmentation_slowdown",
    "memory.fragmentation",
    "memory.out_of_memory",
    "memory.leak",
    "course.step_drift",
)
"""What the demonstration looks for: how a run goes. All rules take several times as long: ``cannscope advise``."""
LEVEL = 1
REPORT, ADVICE = "report.md", "report.html"


@dataclass(frozen=True, slots=True)
class DemoRun:
    """The job under one allocator.

    Attributes:
        allocator: Name of the policy.
        optimization: What put it there; None for the job as it stands.
        result: What the run came to.
        history: Of the rank whose allocator cost most time.
        course: Whether it slows down and why; None where not one step was run.
        directory: Where its captures are; None where it ended before anything was recorded.
    """

    allocator: str
    optimization: str | None
    result: RunResult
    history: StepHistory
    course: RunCourse | None
    directory: Path | None

    @property
    def last_ns(self) -> float | None:
        """Mean step of the last eighth; None where not one step was run."""
        times = self.result.step_ns
        return float(times[-max(len(times) // 8, 1) :].mean()) if len(times) else None


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """What was run and what was said of it.

    Attributes:
        runs: The job as it stands, then with each of ``CURES``.
        advice: On the job as it stands.
        gains_ns: Optimization → saved per step by the rerun with it.
    """

    runs: tuple[DemoRun, ...]
    advice: Advice
    gains_ns: Mapping[str, float]


def demo_scenario() -> Scenario:
    """Returns the shipped scenario of a job that slows down. Raises ScenarioError."""
    with demo_scenario_file() as path:
        return read_scenario(path)


def demo_scenario_file() -> AbstractContextManager[Path]:
    """Returns its file, which is there for as long as it is used."""
    return resources.as_file(resources.files("engine.workloads").joinpath("scenarios", SCENARIO))


def run_demo(
    scenario: Scenario,
    directory: Path,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Demonstration:
    """Runs the job, looks for what is wrong, reruns it with what should cure it, writes captures and reports.

    Args:
        scenario: The job.
        directory: Receives a directory per allocator, ``report.md`` and the advice as ``report.html``.
        progress: Told what is done.
        cancel: Looked at between steps.

    Raises:
        ScenarioError: The job cannot run.
        ExportError: Something cannot be written.
        OperationCancelled: Cancelled.
    """
    subject, optimizations = ScenarioSubject(scenario), optimization_registry()
    laboratory = Laboratory(subject, optimizations, cancel)
    examination = examine(subject, part_of(progress, 0.0, 0.4), cancel)
    rules = Registry([rule for rule in rule_registry() if rule.id in RULES])
    reruns = {
        identifier: laboratory.rerun(enabled({identifier: {}}, optimizations), part_of(progress, start, start + 0.2))
        for start, identifier in zip((0.4, 0.6), CURES.values(), strict=True)
    }
    advice = advise(examination, subject, rules, optimizations, cancel=cancel, laboratory=laboratory)
    sides = {identifier: rerun.candidate for identifier, rerun in reruns.items()}
    named = ((scenario.memory.allocator, None, subject.baseline()), *((n, i, sides[i]) for n, i in CURES.items()))
    runs = []
    for place, (allocator, identifier, side) in enumerate(named):
        stage = part_of(progress, 0.8 + 0.2 * place / len(named), 0.8 + 0.2 * (place + 1) / len(named))
        runs.append(_written(allocator, identifier, side, directory / allocator, stage, cancel))
    gains_ns = {identifier: rerun.gain_ns.expected for identifier, rerun in reruns.items()}
    demonstration = Demonstration(tuple(runs), advice, gains_ns)
    _write_reports(demonstration, directory)
    return demonstration


def _write_reports(demonstration: Demonstration, directory: Path) -> None:
    path = directory / REPORT
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(demo_markdown(demonstration), encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with -o") from error
    write_advice(demonstration.advice, directory / ADVICE)


def _written(
    allocator: str, identifier: str | None, side: Side, directory: Path, progress: Progress, cancel: CancelToken
) -> DemoRun:
    """Returns a run after its captures were written; a run that ended before anything was recorded leaves none."""
    result = side.run
    if result is None:
        message = f"{allocator}: a simulated job has a run"
        raise AssertionError(message)
    written = None
    if result.profiled.steps:
        write_run(result, directory, LEVEL, progress, cancel)
        written = directory
    history = max(result.histories, key=lambda item: int(item.stall_ns.sum()))
    return DemoRun(allocator, identifier, result, history, run_course(history) if len(history) else None, written)


def demo_document(demonstration: Demonstration, directory: Path, provenance: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a demonstration (``cannscope.demo/1``); durations in µs, sizes in bytes."""
    runs = demonstration.runs
    return {
        "schema": SCHEMA,
        "scenario": runs[0].result.scenario.name,
        "report": str(directory / REPORT),
        "advice_report": str(directory / ADVICE),
        "runs": [{**_run_document(run), **_gain_document(demonstration, run)} for run in runs],
        "advice": advice_document(demonstration.advice),
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


def _gain_document(demonstration: Demonstration, run: DemoRun) -> dict[str, Any]:
    saved_ns = demonstration.gains_ns.get(run.optimization or "")
    return {
        "optimization": run.optimization,
        "gain_us": None if saved_ns is None else saved_ns / NS_PER_US,
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


def recommended_sentences(advice: Advice) -> list[str]:
    """Returns what the advisor says of the job as it stands, a line per recommendation."""
    if not advice.recommendations:
        return ["Advice: nothing to recommend."]
    lines = []
    for place, item in enumerate(advice.recommendations, start=1):
        label = " (simulator feature)" if item.simulator_only else ""
        switch = f"; {item.how_to_apply[0].framework}: {item.how_to_apply[0].switch}" if item.how_to_apply else ""
        lines.append(f"Advice {place}: {item.title}{label}: {gain_text(item.gain)}{switch}")
    return lines


def demo_text(demonstration: Demonstration, directory: Path) -> RenderableType:
    """Returns the demonstration for people."""
    runs = demonstration.runs
    scenario = runs[0].result.scenario
    table = Table(*_TITLES, box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for run in runs:
        table.add_row(*_cells(run))
    return Group(
        Text(f"{scenario.name}: {scenario.run.steps:,} simulated steps on {scenario.device.id}", style="bold"),
        Text(_sentence(runs[0])),
        *(Text(line) for line in recommended_sentences(demonstration.advice)),
        Text(comparison_sentence(runs)),
        Text(),
        table,
        Text(),
        Text(f"captures, {REPORT} and {ADVICE} are in {directory}"),
        Text(f"the window: cannscope {directory / runs[0].allocator}"),
    )


def demo_markdown(demonstration: Demonstration) -> str:
    """Returns the report."""
    runs = demonstration.runs
    scenario = runs[0].result.scenario
    what = f"{scenario.run.steps:,} steps of {scenario.model.id} on {scenario.device_count} × {scenario.device.id}"
    lines = [
        f"# {scenario.name}",
        "",
        f"Simulated: {what}, seed {scenario.seed}. Nothing here was measured.",
        "",
        _sentence(runs[0]),
        "",
        *(f"* {markdown_text(line)}" for line in recommended_sentences(demonstration.advice)),
        "",
        f"All of it with evidence: [{ADVICE}]({ADVICE}).",
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
