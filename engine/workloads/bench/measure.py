"""The three numbers of a benchmark: tokens per second, ms per token, peak memory."""

from dataclasses import dataclass

from engine.analyses.serving.latency import serving_analysis
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.units import NS_PER_MS
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario, WorkloadKind
from engine.workloads.serving.simulate import simulate_serving
from engine.workloads.simulate import simulate


@dataclass(frozen=True, slots=True)
class Measurement:
    """A scenario's numbers.

    Attributes:
        tokens_per_s: Tokens of all devices: trained, or of answers; 0 where the run did not end.
        ms_per_token: Training: 1,000 ÷ tokens_per_s. Serving: mean time per further token of a request. None where
            nothing was produced.
        peak_memory_bytes: Training: reserved on the fullest rank. Serving: weights, keys and values of a device.
        status: How the run ended.
    """

    tokens_per_s: float
    ms_per_token: float | None
    peak_memory_bytes: int
    status: str


def measure(scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Measurement:
    """Returns the numbers of one run.

    Raises:
        ScenarioError: It cannot be run.
        OperationCancelled: Cancelled.
    """
    if scenario.kind is WorkloadKind.SERVING:
        return _served(scenario, progress, cancel)
    result = simulate(scenario, progress, cancel)
    done = result.status is RunStatus.DONE
    tokens_per_s = result.tokens_per_s if done else 0.0
    return Measurement(
        tokens_per_s=tokens_per_s,
        ms_per_token=1_000.0 / tokens_per_s if tokens_per_s else None,
        peak_memory_bytes=max((int(item.peak_reserved_bytes.max(initial=0)) for item in result.memory), default=0),
        status=result.status.value,
    )


def _served(scenario: Scenario, progress: Progress, cancel: CancelToken) -> Measurement:
    result = simulate_serving(scenario, progress, cancel)
    analysis = serving_analysis(result.run)
    return Measurement(
        tokens_per_s=analysis.output_tokens_per_s,
        ms_per_token=analysis.tpot.mean_ns / NS_PER_MS if analysis.tpot else None,
        peak_memory_bytes=result.peak_memory_bytes,
        status="done",
    )
