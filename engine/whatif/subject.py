"""What a what-if is asked about: a simulated job or a recorded one, with its baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import MissingDataError, ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.formats import TraceCache, open_job
from engine.formats.readers import built_in_readers
from engine.optimizations.fitting import Platform, platform_of_job, platform_of_scenario
from engine.optimizations.interface import CapturePlan
from engine.replay.capture_graph import CaptureGraph
from engine.replay.job_graph import capture_graph
from engine.trace.job import Job
from engine.whatif.capture_changes import recorded_environment
from engine.whatif.capture_side import CaptureRun, capture_run, capture_side
from engine.whatif.recorded_device import RecordedDevice, recorded_device
from engine.whatif.results import Side
from engine.whatif.scenario_side import scenario_side
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import read_scenario

SCENARIO_SUFFIX = ".toml"


@dataclass(slots=True, eq=False)
class ScenarioSubject:
    """A simulated job, training or serving. Its baseline is run once.

    Attributes:
        scenario: The job.
        path: Its file, None for one that was never written.
    """

    scenario: Scenario
    path: Path | None = None
    _baseline: Side | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Of the job."""
        return self.scenario.name

    @property
    def platform(self) -> Platform:
        """What it runs on, which decides about switches."""
        return platform_of_scenario(self.scenario)

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing is set for a simulated job but what the scenario says."""
        return {}

    def baseline(self, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
        """Returns the job as it is. Raises ScenarioError, OperationCancelled."""
        if self._baseline is None:
            self._baseline = scenario_side(self.scenario, progress, cancel)
        return self._baseline


@dataclass(slots=True, eq=False)
class CaptureSubject:
    """A recorded job. It is replayed unchanged once.

    Attributes:
        job: The recorded ranks.
        capture: Their tasks.
        device: On which device, None where it cannot be told.
    """

    job: Job
    capture: CaptureGraph
    device: RecordedDevice | None
    _baseline_run: CaptureRun | None = field(default=None, repr=False)
    _baseline: Side | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The path of the capture."""
        return self.job.path

    @property
    def platform(self) -> Platform:
        """What it ran on, which decides about switches."""
        return platform_of_job(self.job)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the recorded job."""
        return recorded_environment(self.job)

    @property
    def plan(self) -> CapturePlan:
        """The job as recorded."""
        known = self.device
        assumed = () if known is None or known.assumption is None else (known.assumption,)
        return CapturePlan(self.capture, self.capture.graph, None if known is None else known.spec, assumptions=assumed)

    def baseline_run(self, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> CaptureRun:
        """Returns the replay of the unchanged job. Raises OperationCancelled."""
        if self._baseline_run is None:
            self._baseline_run = capture_run(self.plan, None, progress, cancel)
        return self._baseline_run

    def baseline(self, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
        """Returns the replay of the unchanged job as a side. Raises OperationCancelled."""
        if self._baseline is None:
            self._baseline = capture_side(self.baseline_run(progress, cancel))
        return self._baseline


Subject: TypeAlias = ScenarioSubject | CaptureSubject


def capture_subject(
    job: Job, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> CaptureSubject:
    """Returns an open job as a subject.

    Raises:
        MissingDataError: No rank shows a device task.
        OperationCancelled: Cancelled.
    """
    try:
        capture = capture_graph(job, progress=progress, cancel=cancel)
    except MissingDataError as error:
        raise MissingDataError(error.required, error.advice, job.path) from error
    return CaptureSubject(job, capture, recorded_device(job))


def scenario_subject(scenario: Scenario, path: Path | None = None) -> ScenarioSubject:
    """Returns a simulated job, training or serving, as a subject."""
    return ScenarioSubject(scenario, path)


def open_subject(
    paths: Sequence[Path],
    overrides: Mapping[tuple[str, ...], Any] | None = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
    *,
    cache: TraceCache | None = None,
) -> Subject:
    """Returns what is at ``paths``: a TOML file is a scenario, anything else a capture.

    Args:
        paths: One scenario, or the files and directories of a capture.
        overrides: Path of a key → value, set over a scenario's own.
        progress: Told what is done.
        cancel: Looked at between files.
        cache: Where opened captures are kept; None for nowhere.

    Raises:
        ScenarioError: The scenario cannot be read, is mixed with other paths, or keys are set in a capture.
        TraceReadError: No capture can be read.
        MissingDataError: The capture shows no device task.
        OperationCancelled: Cancelled.
    """
    scenarios = [path for path in paths if path.suffix.lower() == SCENARIO_SUFFIX]
    if scenarios and len(paths) > 1:
        raise ScenarioError(f"{scenarios[0]}: a scenario stands alone; give it, or the paths of one capture")
    if scenarios:
        return scenario_subject(read_scenario(scenarios[0], overrides), scenarios[0])
    if overrides:
        key = ".".join(next(iter(overrides)))
        raise ScenarioError(f"{key}: a capture has no keys to set; make a scenario of it with: cannscope twin PATH")
    job = open_job(paths, built_in_readers(), cache=cache, progress=part_of(progress, 0.0, 0.6), cancel=cancel)
    return capture_subject(job, part_of(progress, 0.6, 1.0), cancel)
