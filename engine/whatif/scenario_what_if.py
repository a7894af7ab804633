"""A simulated job with optimizations switched on: every figure is a run of its own."""

from collections.abc import Sequence

from engine.core.errors import ScenarioError
from engine.core.progress import CancelToken, Progress, part_of
from engine.core.registry import Registry
from engine.optimizations.interface import Optimization
from engine.optimizations.selection import Enabled, Refusal, refusals
from engine.whatif.replicas import fewest_devices
from engine.whatif.results import Contribution, Gain, Side, WhatIf
from engine.whatif.scenario_changes import ScenarioChanges, changed
from engine.whatif.scenario_side import scenario_side
from engine.whatif.served_side import served_notes
from engine.whatif.subject import ScenarioSubject
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario

EXACT = (
    "the simulated runtime leaves nothing to chance, so the gain has no spread; how far it is from machines: fidelity"
)


def switched_on_already(scenario: Scenario, registry: Registry[Optimization]) -> tuple[Enabled, ...]:
    """Returns what a scenario runs with, as far as the catalogue knows it."""
    return tuple(
        Enabled(registry[identifier], registry[identifier].defaults)
        for identifier in scenario.optimizations
        if identifier in registry
    )


def scenario_refusals(
    scenario: Scenario, chosen: Sequence[Enabled], registry: Registry[Optimization]
) -> tuple[Refusal, ...]:
    """Returns what conflicts among ``chosen``, or with what the job runs with."""
    ids = {item.id for item in chosen}
    present = [item for item in switched_on_already(scenario, registry) if item.id not in ids]
    before = refusals(present, {})
    return tuple(item for item in refusals([*present, *chosen], {}) if item not in before)


def scenario_what_if(
    subject: ScenarioSubject,
    chosen: Sequence[Enabled],
    registry: Registry[Optimization],
    progress: Progress,
    cancel: CancelToken,
) -> WhatIf:
    """Returns a simulated job beside the same with ``chosen`` switched on.

    Raises:
        ScenarioError: The job as it is cannot run.
        OperationCancelled: Cancelled.
    """
    baseline = subject.baseline(part_of(progress, 0.0, 0.3), cancel)
    refused = scenario_refusals(subject.scenario, chosen, registry)
    changes = changed(subject.scenario, chosen)
    refused = refused or changes.refused
    if refused:
        return _unchanged(subject, baseline, chosen, changes, refused)
    runs = _Runs(subject.scenario, baseline, changes.applied, part_of(progress, 0.3, 0.9), cancel)
    try:
        contributions = runs.contributions()
    except ScenarioError as error:
        return _unchanged(subject, baseline, chosen, changes, (Refusal(runs.last, str(error)),))
    candidate = runs.sides[-1]
    devices = None
    if baseline.tokens_per_s is not None and baseline.serving is None:
        stage = part_of(progress, 0.9, 1.0)
        devices = fewest_devices(changes.scenario, candidate, baseline.tokens_per_s, stage, cancel)
    gain_ns = saved_ns(baseline, candidate)
    return WhatIf(
        name=subject.name,
        baseline=baseline,
        candidate=candidate,
        enabled=tuple(chosen),
        applicability=changes.applicability,
        refused=(),
        gain=Gain(gain_ns, gain_ns, gain_ns),
        contributions=contributions,
        inferred_share_ratio=0.0 if gain_ns else None,
        replay_error_ratio=None,
        assumptions=(EXACT,),
        devices_for_equal_throughput=devices,
        notes=(*_notes(baseline, candidate), *served_notes(baseline, candidate)),
    )


def saved_ns(baseline: Side, candidate: Side) -> float:
    """Returns what is saved per step, 0 where one of the two did not run."""
    before, after = baseline.mean_step_ns, candidate.mean_step_ns
    return before - after if before and after else 0.0


class _Runs:
    """The runs behind a what-if: prefixes of what is switched on, and each alone."""

    def __init__(
        self, scenario: Scenario, baseline: Side, applied: Sequence[Enabled], progress: Progress, cancel: CancelToken
    ) -> None:
        self.sides: list[Side] = [baseline]
        self.last = ""
        self._scenario = scenario
        self._applied = applied
        self._progress = progress
        self._cancel = cancel
        self._known: dict[tuple[str, ...], Side] = {(): baseline}

    def contributions(self) -> tuple[Contribution, ...]:
        """Returns what each gives after those before it and alone; ``sides`` holds the baseline and every prefix."""
        found = []
        for count, item in enumerate(self._applied, start=1):
            self.last = item.id
            self.sides.append(self._side(self._applied[:count]))
            needed = [other for other in self._applied if other.id in item.optimization.needs]
            alone = saved_ns(self._side(needed), self._side([*needed, item]))
            found.append(Contribution(item.id, saved_ns(self.sides[-2], self.sides[-1]), alone))
        return tuple(found)

    def _side(self, chosen: Sequence[Enabled]) -> Side:
        """Returns the job with ``chosen``; the same choice runs once."""
        applied = changed(self._scenario, chosen)
        key = tuple(item.text for item in applied.applied)
        if key not in self._known:
            whole = 2 * len(self._applied)
            stage = part_of(self._progress, (len(self._known) - 1) / whole, len(self._known) / whole)
            self._known[key] = scenario_side(applied.scenario, stage, self._cancel)
        return self._known[key]


def _unchanged(
    subject: ScenarioSubject,
    baseline: Side,
    chosen: Sequence[Enabled],
    changes: ScenarioChanges,
    refused: tuple[Refusal, ...],
) -> WhatIf:
    return WhatIf(
        name=subject.name,
        baseline=baseline,
        candidate=baseline,
        enabled=tuple(chosen),
        applicability=changes.applicability,
        refused=refused,
        gain=Gain(0.0, 0.0, 0.0),
        contributions=(),
        inferred_share_ratio=None,
        replay_error_ratio=None,
    )


def _notes(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """Returns what the mean step times do not say."""
    notes = []
    for what, side in (("the job as it is", baseline), ("the changed job", candidate)):
        if side.status is not RunStatus.DONE:
            word = "ran out of memory" if side.status is RunStatus.OUT_OF_MEMORY else "came to a deadlock"
            notes.append(f"{what} {word} after {len(side.step_ns)} steps")
    return tuple(notes)
