"""A recorded job with optimizations switched on: its tasks rewritten and run again."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.core.progress import CancelToken, Progress, part_of
from engine.optimizations.interface import Bound, CapturePlan
from engine.optimizations.selection import Enabled, Refusal, refusals
from engine.trace.job import Job
from engine.whatif import driver_calls
from engine.whatif.capture_changes import CaptureChanges, at_bound, changed_capture
from engine.whatif.capture_side import CaptureRun, capture_run, capture_side, replayed_plan
from engine.whatif.inferred import own_lag_ns, with_own_lags
from engine.whatif.results import Contribution, Gain, WhatIf
from engine.whatif.subject import CaptureSubject

WEAK_ERROR_RATIO = 0.05
"""Above this replay error a prediction is weak (as the reports of this product have always said)."""
WEAK_INFERRED_RATIO = 0.5
"""More than half of a gain on inferred dependencies: the other explanation of the recording would halve it."""
FEWER_REPLICAS = "a step of a replica lasts as long with other numbers of replicas"
SMALLEST_GAIN_RATIO = 1e-6
"""Of the step: gains below are rounding, of which no share can be told."""


def capture_what_if(
    subject: CaptureSubject, chosen: Sequence[Enabled], progress: Progress, cancel: CancelToken
) -> WhatIf:
    """Returns a recorded job, replayed, beside the same with ``chosen`` switched on.

    Raises:
        OperationCancelled: Cancelled.
    """
    baseline = subject.baseline_run(part_of(progress, 0.0, 0.2), cancel)
    refused = refusals(chosen, subject.environment)
    if refused:
        return _refused(subject, baseline, chosen, refused)
    changes = changed_capture(baseline.plan, chosen, cancel)
    replays = _Replays(baseline, changes, part_of(progress, 0.2, 1.0), cancel)
    contributions = replays.contributions()
    candidate = replays.candidate
    gain = replays.gain()
    share = replays.inferred_share_ratio(gain.expected_ns)
    error = baseline.replayed.error_ratio
    count = subject.baseline(cancel=cancel).device_count
    devices = devices_for_equal_throughput(subject.job, count, baseline.mean_step_ns, candidate.mean_step_ns)
    assumed = [*changes.plan.assumptions]
    if devices not in (None, count):
        assumed.append(FEWER_REPLICAS)
    if changes.plan.allocator is not None:
        assumed.append(driver_calls.ASSUMPTION if replays.has_driver_calls else driver_calls.NO_CALLS)
    notes = tuple(f"{item.message} ({item.count})" for item in subject.capture.diagnostics)
    return WhatIf(
        name=subject.name,
        baseline=subject.baseline(cancel=cancel),
        candidate=subject.baseline(cancel=cancel) if candidate is baseline else capture_side(candidate),
        enabled=tuple(chosen),
        applicability=changes.applicability,
        refused=(),
        gain=gain,
        contributions=contributions,
        inferred_share_ratio=share,
        replay_error_ratio=error,
        weak=weakness(error, share),
        assumptions=tuple(assumed),
        devices_for_equal_throughput=devices,
        notes=notes,
    )


def weakness(error_ratio: float | None, inferred_ratio: float | None) -> str | None:
    """Returns why a prediction is weak, None where it is not."""
    reasons = []
    if error_ratio is None:
        reasons.append("the recorded steps have no length to compare the replay with")
    elif abs(error_ratio) > WEAK_ERROR_RATIO:
        reasons.append(f"the replay of the unchanged capture is off by {error_ratio:+.1%}")
    if inferred_ratio is not None and inferred_ratio > WEAK_INFERRED_RATIO:
        reasons.append(f"{inferred_ratio:.0%} of the gain rests on dependencies that are inferred, not recorded")
    return " and ".join(reasons) or None


def devices_for_equal_throughput(job: Job, count: int, before_ns: float, after_ns: float) -> int | None:
    """Returns the devices that give the recorded throughput after a change, in whole replicas.

    Steps of a replica are taken to last as long with fewer replicas; a collective over fewer is at most faster.

    Returns:
        None where the capture does not say how the job was spread, or has no time.
    """
    told = (entry.trace.metadata.parallel_sizes for entry in job.ranks)
    sizes = next((sizes for sizes in told if sizes), {})
    names = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
    if not before_ns or not after_ns or not any(name in sizes for name in names):
        return None
    replica = math.prod(sizes.get(name, 1) for name in names)
    return math.ceil(round(count * after_ns / before_ns / replica, 9)) * replica


class _Replays:
    """The runs behind a what-if: prefixes of what is switched on, each alone, both ends of the range."""

    def __init__(self, baseline: CaptureRun, changes: CaptureChanges, progress: Progress, cancel: CancelToken) -> None:
        self._baseline = baseline
        self._changes = changes
        self._progress = progress
        self._cancel = cancel
        self._done_count = 0
        self.has_driver_calls = changes.plan.allocator is not None and bool(baseline.call_ns.any())
        self.candidate = capture_run(changes.plan, baseline, self._stage(), cancel) if changes.applied else baseline

    def contributions(self) -> tuple[Contribution, ...]:
        """Returns what each gives after those before it, and alone."""
        found: list[Contribution] = []
        before_ns = self._baseline.mean_step_ns
        for item, plan in zip(self._changes.applied, self._changes.prefixes[1:], strict=True):
            is_last = plan is self._changes.plan
            after_ns = self.candidate.mean_step_ns if is_last else self._mean_ns(plan)
            gain_ns = before_ns - after_ns
            found.append(Contribution(item.id, gain_ns, gain_ns if len(found) == 0 else self._alone_ns(item)))
            before_ns = after_ns
        return tuple(found)

    def gain(self) -> Gain:
        """Returns what everything together saves, with the range of its prices."""
        before_ns, applied = self._baseline.mean_step_ns, self._changes.applied
        expected = before_ns - self.candidate.mean_step_ns
        if not applied:
            return Gain(expected, expected, expected)
        bounds = (Bound.LOW, Bound.HIGH)
        ends = [before_ns - self._mean_ns(at_bound(self._baseline.plan, applied, bound), bound) for bound in bounds]
        return Gain(min(expected, *ends), expected, max(expected, *ends))

    def inferred_share_ratio(self, gain_ns: float) -> float | None:
        """Returns the share of a gain that inferred waits carry (see ``inferred``), None where there is no gain."""
        baseline = self._baseline
        if abs(gain_ns) <= SMALLEST_GAIN_RATIO * baseline.mean_step_ns:
            return None
        recorded = baseline.replayed.graph
        if not recorded.inferred.any():
            return 0.0
        lag_ns = own_lag_ns(recorded, baseline.replayed.schedule)
        before, after = (
            self._mean_ns(replace(baseline.plan, graph=with_own_lags(graph, recorded, lag_ns)))
            for graph in (recorded, self.candidate.replayed.graph)
        )
        return min(abs(gain_ns - (before - after)) / abs(gain_ns), 1.0)

    def _alone_ns(self, item: Enabled) -> float:
        """Returns what an optimization saves on the baseline; one that needs others, on the baseline with these."""
        needed = [other for other in self._changes.applied if other.id in item.optimization.needs]
        plan = at_bound(self._baseline.plan, needed, Bound.EXPECTED)
        return self._mean_ns(plan) - self._mean_ns(changed_capture(plan, [item], self._cancel).plan)

    def _mean_ns(self, plan: CapturePlan, bound: Bound = Bound.EXPECTED) -> float:
        """Returns the mean step of a plan; what its memory comes to is asked only where that decides about time."""
        stage = self._stage()
        if plan.allocator is not None and self.has_driver_calls and bound is Bound.EXPECTED:
            return capture_run(plan, self._baseline, stage, self._cancel).mean_step_ns
        spares = plan.allocator is not None and bound is Bound.HIGH
        replayed = replayed_plan(plan, self._baseline, spares=spares, progress=stage, cancel=self._cancel)
        return float(np.mean(replayed.step_ns))

    def _stage(self) -> Progress:
        whole = 3 * len(self._changes.applied) + 4
        self._done_count += 1
        return part_of(self._progress, min((self._done_count - 1) / whole, 1.0), min(self._done_count / whole, 1.0))


def _refused(
    subject: CaptureSubject, baseline: CaptureRun, chosen: Sequence[Enabled], refused: tuple[Refusal, ...]
) -> WhatIf:
    side = subject.baseline()
    found = {item.id: item.optimization.check_capture(baseline.plan, item.parameters) for item in chosen}
    return WhatIf(
        name=subject.name,
        baseline=side,
        candidate=side,
        enabled=tuple(chosen),
        applicability=found,
        refused=refused,
        gain=Gain(0.0, 0.0, 0.0),
        contributions=(),
        inferred_share_ratio=None,
        replay_error_ratio=baseline.replayed.error_ratio,
    )
