"""The tuning loop: find the largest loss, try what is made for it, keep the best, begin again."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from engine.advisor.bottlenecks import LAYOUT, LOSSY, Bottleneck, Loss, bottlenecks, made_for
from engine.advisor.layout_variants import layout_variants
from engine.advisor.service_losses import BATCHING, batch_variants, served_ratio
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.registry import Registry
from engine.optimizations.catalogue import in_order
from engine.optimizations.interface import Optimization, Parameters, ParameterValue
from engine.optimizations.selection import Enabled, enabled
from engine.whatif.results import Side
from engine.whatif.scenario_changes import changed
from engine.whatif.subject import CaptureSubject, Subject
from engine.whatif.trial import trial
from engine.workloads.results import RunStatus

SMALLEST_GAIN_RATIO = 0.01
"""Where nothing gives 1 % any more, tuning ends: less is within the error of any prediction here."""
ROUNDS = 10

Tell = Callable[[str], None]
Choice = Mapping[str, Mapping[str, ParameterValue]]
"""What is on: id → chosen parameters."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something that was tried.

    Attributes:
        text: As ``--enable`` takes it.
        gain_ratio: Throughput gained over the round before, None where it was not run or does not run.
        reason: Why it was not kept, "" for what was.
    """

    text: str
    gain_ratio: float | None
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One turn of the loop.

    Attributes:
        number: From 1.
        bottleneck: What the job lost most time to that something could be done about.
        added: What was switched on, as ``--enable`` takes it.
        enabled: Everything that is on now.
        side: The job with it.
        gain_ratio: Throughput gained over the round before; None where the job did not run before.
        attempts: Everything that was tried, as tried.
    """

    number: int
    bottleneck: Bottleneck
    added: str
    enabled: tuple[str, ...]
    side: Side
    gain_ratio: float | None
    attempts: tuple[Attempt, ...]


def tune(
    subject: Subject,
    registry: Registry[Optimization],
    rounds: int = ROUNDS,
    *,
    lossy: bool = False,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Generator[Round, None, tuple[Attempt, ...]]:
    """Yields each round as soon as it is found; returns what was tried in vain at the end.

    A loss nothing helps against gives way to the next smaller one. What only a simulator has is tried on simulated
    jobs only.

    Args:
        subject: The job.
        registry: All optimizations.
        rounds: At most so many.
        lossy: Also try what changes results (``LOSSY``).
        progress: Told what is tried.
        cancel: Looked at between and inside runs.

    Raises:
        ScenarioError: The job as it is cannot run.
        OperationCancelled: Cancelled.
    """
    progress(0.0, "the job as it is")
    search = _Search(subject, registry, lossy, cancel)
    search.side = subject.baseline(cancel=cancel)
    for number in range(1, rounds + 1):
        found = search.round(number, partial(progress, (number - 1) / rounds))
        if found is None:
            return tuple(search.attempts)
        yield found
    return ()


def total_speedup_ratio(rounds: Sequence[Round]) -> float:
    """Returns how many times the throughput of the job before the first round is reached after the last."""
    total = 1.0
    for item in rounds:
        total *= 1.0 + (item.gain_ratio or 0.0)
    return total


def throughput_gain_ratio(before: Side, after: Side) -> float | None:
    """Returns the throughput gained, in tokens where the job counts them, else in steps; None where one did not run.

    A service answers as many requests as are asked: what is gained is how much faster each is answered.
    """
    if after.status is not RunStatus.DONE or before.status is not RunStatus.DONE:
        return None
    if before.serving is None and before.tokens_per_s and after.tokens_per_s:
        return after.tokens_per_s / before.tokens_per_s - 1.0
    return before.mean_step_ns / after.mean_step_ns - 1.0 if after.mean_step_ns else None


class _Search:
    """What is on, and what one round tries on top of it."""

    side: Side

    def __init__(self, subject: Subject, registry: Registry[Optimization], lossy: bool, cancel: CancelToken) -> None:
        self.attempts: list[Attempt] = []
        self._subject = subject
        self._registry = registry
        self._lossy = lossy
        self._cancel = cancel
        self._on: dict[str, dict[str, ParameterValue]] = {}

    def round(self, number: int, tell: Tell) -> Round | None:
        """Returns the next round, None where nothing gives enough any more."""
        self.attempts = []
        for bottleneck in bottlenecks(self.side):
            tell(f"round {number}: {bottleneck.loss.value}")
            best = self._best_for(bottleneck, tell)
            if best is not None:
                choice, side, gain, text = best
                self._on, self.side = {key: dict(value) for key, value in choice.items()}, side
                on = tuple(item.text for item in enabled(self._on, self._registry))
                return Round(number, bottleneck, text, on, side, gain, tuple(self.attempts))
        return None

    def _best_for(self, bottleneck: Bottleneck, tell: Tell) -> tuple[Choice, Side, float | None, str] | None:
        best: tuple[Choice, Side, float | None, str] | None = None
        rank = SMALLEST_GAIN_RATIO
        for item, parameters in self._candidates(bottleneck.loss):
            text = Enabled(item, {**item.defaults, **parameters}).text
            if text in {attempt.text for attempt in self.attempts}:
                continue  # made for an earlier loss as well, and tried in vain
            tell(f"{bottleneck.loss.value}: {text}")
            choice = self._with(item, parameters)
            found = trial(self._subject, enabled(choice, self._registry), self._registry, cancel=self._cancel)
            if item.id not in {other.id for other in found.applied}:
                refused = next((other.reason for other in found.refused), None)
                known = found.applicability.get(item.id)
                self.attempts.append(Attempt(text, None, refused or (known.reason if known else "does not apply")))
                continue
            gain = throughput_gain_ratio(self.side, found.side)
            value, reason = _valued(self.side, found.side, gain)
            self.attempts.append(Attempt(text, gain, reason if value < SMALLEST_GAIN_RATIO else ""))
            if value >= rank:
                best, rank = (choice, found.side, gain, text), value
        return best

    def _candidates(self, loss: Loss) -> Iterator[tuple[Optimization, Parameters]]:
        """Yields what is made for a loss and not on yet, with the parameters to try."""
        recorded = isinstance(self._subject, CaptureSubject)
        for item in made_for(loss, in_order(self._registry)):
            if (item.id in LOSSY and not self._lossy) or (item.simulator_only and recorded):
                continue
            if item.id in (LAYOUT, BATCHING) and not isinstance(self._subject, CaptureSubject):
                on = changed(self._subject.scenario, enabled(self._on, self._registry)).scenario
                variants = layout_variants(on, loss) if item.id == LAYOUT else batch_variants(on)
                yield from ((item, parameters) for parameters in variants)
            elif item.id not in self._on:
                yield item, {}

    def _with(self, item: Optimization, parameters: Parameters) -> Choice:
        """Returns what is on with one more, and with what that needs."""
        needed: dict[str, dict[str, ParameterValue]] = {other: {} for other in item.needs if other not in self._on}
        return {**self._on, **needed, item.id: {**self._on.get(item.id, {}), **parameters}}


def _valued(before: Side, after: Side, gain: float | None) -> tuple[float, str]:
    """Returns what an attempt is worth and, where that is too little, why it is not kept."""
    if after.status is RunStatus.OUT_OF_MEMORY:
        return -1.0, "runs out of memory"
    if after.status is not RunStatus.DONE:
        return -1.0, "comes to a deadlock"
    if served_ratio(after) < served_ratio(before):
        return -1.0, "leaves more requests unanswered"
    if before.status is not RunStatus.DONE:
        # Among ways to make a job run at all, the one with most throughput.
        return 1.0 + (after.tokens_per_s or 0.0), ""
    return (gain or 0.0), f"gives {gain or 0.0:+.1%}"
