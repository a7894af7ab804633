"""What a what-if is asked about: a simulated job or a recorded one, with its baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.whatif.results import Side
from engine.whatif.scenario_side import scenario_side
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import read_scenario

SCENARIO_SUFFIX = ".toml"


@dataclass(slots=True, eq=False)
class ScenarioSubject:
    """A simulated job. Its baseline is run once.

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
    def environment(self) -> Mapping[str, str]:
        """Nothing is set for a simulated job but what the scenario says."""
        return {}

    def baseline(self, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
        """Returns the job as it is. Raises ScenarioError, OperationCancelled."""
        if self._baseline is None:
            self._baseline = scenario_side(self.scenario, progress, cancel)
        return self._baseline


Subject: TypeAlias = ScenarioSubject


def open_subject(
    paths: Sequence[Path],
    overrides: Mapping[tuple[str, ...], Any] | None = None,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Subject:
    """Returns what is at ``paths``: a TOML file is a scenario, anything else a capture.

    Args:
        paths: One scenario, or the files and directories of a capture.
        overrides: Path of a key → value, set over a scenario's own.
        progress: Told what is done.
        cancel: Looked at between files.

    Raises:
        ScenarioError: The scenario cannot be read, or a scenario is mixed with other paths.
        TraceReadError: No capture can be read.
        OperationCancelled: Cancelled.
    """
    scenarios = [path for path in paths if path.suffix.lower() == SCENARIO_SUFFIX]
    if scenarios and len(paths) > 1:
        raise ScenarioError(f"{scenarios[0]}: a scenario stands alone; give it, or the paths of one capture")
    del progress, cancel
    return ScenarioSubject(read_scenario(scenarios[0], overrides), scenarios[0])
