"""Running a scenario: simulated and recorded in the worker, then opened as the capture it has written."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler_gui.session.opening import SCENARIO_NAME, OpenRequest, open_in_worker

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.summary import JobSummary
    from engine.workloads.scenario import Scenario
    from profiler_gui.session.worker import JobContext

RUNNING_SHARE = 0.6
"""Part of the progress bar that the steps take."""
SIMULATING_SHARE = 0.8
"""Part that they and recording take; the rest is opening what was written."""
LEVEL = 1
"""Profiler level of what is written: shapes, types and what moved over which link."""


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """A run to be made.

    Attributes:
        document: The scenario as a parsed TOML file.
        folder: Paths inside the scenario are relative to it.
        directory: Where its captures go; made when needed.
        cache_directory: Of both processes.
        requested_at_ns: ``time.monotonic_ns()`` of the request.
    """

    document: Mapping[str, Any]
    folder: Path
    directory: Path
    cache_directory: Path
    requested_at_ns: int

    @property
    def opening(self) -> OpenRequest:
        """The request to open what the run has written."""
        return OpenRequest((self.directory,), self.cache_directory, self.requested_at_ns)


def simulation_request(
    document: Mapping[str, Any], folder: Path, directory: Path, cache_directory: Path
) -> SimulationRequest:
    """Returns the request to run a scenario now."""
    return SimulationRequest(document, folder, directory.absolute(), cache_directory, time.monotonic_ns())


def simulate_in_worker(context: JobContext, request: SimulationRequest) -> JobSummary:
    """Runs the scenario, writes its captures, opens them (see ``open_in_worker``) and returns the analyses.

    Raises:
        ScenarioError: It cannot run, or ended before anything was recorded.
        ExportError: Its captures cannot be written.
        OperationCancelled: Cancelled; captures of an earlier run stay as they were.
    """
    from engine.core.errors import ScenarioError
    from engine.core.progress import part_of
    from engine.report.run_capture import write_run
    from engine.report.simulation import run_ending
    from engine.workloads.scenario import WorkloadKind
    from engine.workloads.scenario_file import scenario_from_document
    from engine.workloads.simulate import simulate

    scenario = scenario_from_document(request.document, request.folder)
    if scenario.kind is WorkloadKind.SERVING:
        return _serve_in_worker(context, request, scenario)
    result = simulate(scenario, part_of(context.progress, 0.0, RUNNING_SHARE), context.cancel)
    if not result.profiled.steps:
        message = f"{run_ending(result)}; no step to be recorded was reached"
        raise ScenarioError(message)
    writing = part_of(context.progress, RUNNING_SHARE, SIMULATING_SHARE)
    write_run(result, request.directory, LEVEL, writing, context.cancel)
    keep_scenario(request)
    return open_in_worker(context, request.opening, start_ratio=SIMULATING_SHARE)


def _serve_in_worker(context: JobContext, request: SimulationRequest, scenario: Scenario) -> JobSummary:
    """Serves the scenario, writes one device of it, opens that and returns the analyses."""
    from engine.core.progress import part_of
    from engine.report.run_capture import write_service
    from engine.workloads.serving.simulate import simulate_serving

    result = simulate_serving(scenario, part_of(context.progress, 0.0, RUNNING_SHARE), context.cancel)
    writing = part_of(context.progress, RUNNING_SHARE, SIMULATING_SHARE)
    write_service(result, request.directory, writing, context.cancel)
    keep_scenario(request)
    return open_in_worker(context, request.opening, start_ratio=SIMULATING_SHARE)


def keep_scenario(request: SimulationRequest) -> None:
    """Writes the scenario beside the captures of its run, paths in it made absolute: reruns begin there.

    Raises:
        ExportError: It cannot be written.
    """
    from engine.core.errors import ExportError
    from engine.workloads.scenario_text import scenario_text

    document = dict(request.document)
    for table, key in (("parallel", "file"), ("memory", "rules"), ("serving", "file")):
        if key in document.get(table, {}):
            document[table] = {**document[table], key: str((request.folder / document[table][key]).absolute())}
    path = request.directory / SCENARIO_NAME
    try:
        path.write_text(scenario_text(document), encoding="utf-8")
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}; choose another directory"
        raise ExportError(message) from error


def directory_of_run(name: str, parent: Path) -> Path:
    """Returns a directory below ``parent`` that is not there yet, named like the scenario."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    taken = {path.name for path in parent.iterdir()} if parent.is_dir() else set()
    number = next(number for number in range(1, len(taken) + 2) if f"{stem}-{number}" not in taken)
    return parent / f"{stem}-{number}"
