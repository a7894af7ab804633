"""Which limit of a service would have prevented late requests: found by serving the same requests again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.analyses.serving.jitter import Jitter, LateLimits, jitter, late_counts, late_limits
from engine.analyses.serving.jitter_parts import Cause
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.workloads.serving.settings import Batching, ServingSettings
from engine.workloads.serving.simulate import ServingResult, served_with

_CURED_RATIO = 0.1
"""Late requests that may be left for a limit to count as having prevented them; a choice."""
_MOST_ITERATIONS = 50_000
"""Longer runs are not repeated a dozen times unasked: the limit that was reached is told instead."""
_MOST_CAUSES = 3
"""Causes looked into: the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Prevention:
    """A limit that was changed.

    Attributes:
        cause: What it was changed against.
        setting: Key of the ``[serving]`` table.
        before: Its value in the run.
        after: Its value in the rerun.
        waits: What is counted: waits for first tokens or between tokens.
        late_before: Such waits that were late in the run.
        late_after: In the rerun, by the same limits.
        others_more: How many more waits of the other kind are late in the rerun.
        unserved_after: Requests the rerun did not answer that the run did.
    """

    cause: Cause
    setting: str
    before: str
    after: str
    waits: str
    late_before: int
    late_after: int
    others_more: int
    unserved_after: int

    @property
    def prevents(self) -> bool:
        """Whether next to nothing is late any more, and nobody pays for it."""
        return self.late_after <= _CURED_RATIO * self.late_before and not self.costs

    @property
    def costs(self) -> bool:
        """Whether others pay for it: requests are refused, or more are late in another way."""
        return self.unserved_after > 0 or self.others_more > 0

    @property
    def text(self) -> str:
        """One sentence without full stop."""
        cost = f", {self.unserved_after:,} requests unanswered" if self.unserved_after > 0 else ""
        cost += f", {self.others_more:,} more late otherwise" if self.others_more > 0 else ""
        return (
            f"{self.setting} = {self.after} instead of {self.before}: {self.late_after:,} {self.waits} late instead "
            f"of {self.late_before:,}{cost} (served again)"
        )


@dataclass(frozen=True, slots=True)
class JitterReport:
    """Late requests with what would have prevented them.

    Attributes:
        jitter: Who was late and why.
        preventions: The best change per cause that was tried and helped.
        unprevented: Sentences about causes no change helped against, or that were not tried, with the reason.
    """

    jitter: Jitter
    preventions: tuple[Prevention, ...]
    unprevented: tuple[str, ...]


def jitter_report(
    result: ServingResult, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> JitterReport:
    """Returns who was late in a served scenario, why, and which limit would have prevented it.

    Args:
        result: The run.
        progress: Told which limit is tried.
        cancel: Looked at inside reruns.

    Raises:
        MissingDataError: No request was answered.
        OperationCancelled: Cancelled.
    """
    settings = result.settings
    limits = late_limits(result.run, settings.slo_ttft_ns, settings.slo_tpot_ns)
    found = jitter(result.run, limits)
    preventions: list[Prevention] = []
    unprevented: list[str] = []
    causes = list(found.causes)[:_MOST_CAUSES]
    for done, cause in enumerate(causes):
        progress(done / len(causes), f"what prevents: {cause.value}")
        if len(result.run.iterations) > _MOST_ITERATIONS:
            unprevented.append(f"{cause.value}: not tried, the run has {len(result.run.iterations):,} iterations")
            continue
        best = _best(result, limits, found, cause, cancel)
        if best is None:
            unprevented.append(f"{cause.value}: {_NO_LIMIT.get(cause, 'no limit that was tried makes fewer late')}")
        else:
            preventions.append(best)
    return JitterReport(found, tuple(preventions), tuple(unprevented))


_NO_LIMIT = {
    Cause.OWN_PROMPT: "no limit of the engine shortens a prompt; a prefix cache does where prompts begin alike",
    Cause.ITERATION: "requests join between iterations only; shorter iterations need fewer tokens in each",
}


def _best(
    result: ServingResult, limits: LateLimits, found: Jitter, cause: Cause, cancel: CancelToken
) -> Prevention | None:
    """Returns the first change against a cause that prevents, else what helps most, if possible at nobody's cost."""
    best: Prevention | None = None
    finished = int(result.run.requests.finished.sum())
    late = (found.late_first, found.late_between)
    kind = 0 if 2 * found.first_causes.get(cause, 0) >= found.causes[cause] else 1
    waits = ("first tokens", "answers")[kind]
    for setting, before, after, changed in _changes(result, cause):
        try:
            run = served_with(result.scenario, changed, cancel=cancel).run
        except ScenarioError:
            continue  # no room for it on this device
        again = int(run.requests.finished.sum())
        left = late_counts(run, limits) if again else late
        more = left[1 - kind] - late[1 - kind]
        tried = Prevention(cause, setting, before, after, waits, late[kind], left[kind], more, finished - again)
        if tried.prevents:
            return tried
        helps = tried.late_after < late[kind]
        if helps and (best is None or (tried.costs, tried.late_after) < (best.costs, best.late_after)):
            best = tried
    return best


def _changes(result: ServingResult, cause: Cause) -> Iterator[tuple[str, str, str, ServingSettings]]:
    """Yields key, value before, value after and the settings, the smallest change first."""
    now = result.settings
    if now.batching is Batching.STATIC:
        yield "batching", now.batching.value, "continuous", replace(now, batching=Batching.CONTINUOUS)
        return
    if cause is Cause.PLACES:
        yield from _batches(now, 2.0, 4.0)
    elif cause is Cause.TOKENS:
        yield from _budgets(now, 2.0, 4.0)
    elif cause in (Cause.BLOCKS, Cause.PREEMPTED):
        blocks = result.run.kv_block_count
        for factor in (1.25, 1.5, 2.0):
            more = round(blocks * factor)
            yield "kv_blocks", f"{blocks}", f"{more}", replace(now, kv_block_count=more)
        yield from _batches(now, 0.5)
    elif cause in (Cause.PROMPT, Cause.ITERATION):
        if not now.chunked_prefill:
            yield "chunked_prefill", "false", "true", replace(now, chunked_prefill=True)
        yield from _budgets(now, 0.5, 0.25, 0.125)
    elif cause is Cause.COMPANY:
        yield "max_wait_ms", f"{now.max_wait_ns / 1e6:g}", "0", replace(now, max_wait_ns=0)
    elif cause is Cause.BATCH:
        yield from _batches(now, 0.5, 0.25)
    elif not now.prefix_cache:
        yield "prefix_cache", "false", "true", replace(now, prefix_cache=True)
    if cause in (Cause.PLACES, Cause.TOKENS, Cause.BLOCKS) and not now.max_queue:
        # Where no limit helps the rate is too high: refusing is what keeps the others on time.
        yield "max_queue", "0 (any)", f"{now.max_batch}", replace(now, max_queue=now.max_batch)


def _batches(now: ServingSettings, *factors: float) -> Iterator[tuple[str, str, str, ServingSettings]]:
    for factor in factors:
        places = max(round(now.max_batch * factor), 1)
        if places != now.max_batch:
            yield "max_batch", f"{now.max_batch}", f"{places}", replace(now, max_batch=places)


def _budgets(now: ServingSettings, *factors: float) -> Iterator[tuple[str, str, str, ServingSettings]]:
    for factor in factors:
        tokens = max(round(now.max_batched_tokens * factor), now.max_batch)
        if tokens != now.max_batched_tokens:
            changed = replace(now, max_batched_tokens=tokens)
            yield "max_batched_tokens", f"{now.max_batched_tokens}", f"{tokens}", changed
