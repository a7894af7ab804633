"""A service as one side of a what-if. Its steps are requests: what one takes from its arrival to its last token."""

import numpy as np

from engine.analyses.serving.latency import serving_analysis
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.trace.job import Job
from engine.whatif.results import Side
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario
from engine.workloads.serving.recording import record_service
from engine.workloads.serving.simulate import simulate_serving


def served_side(scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED) -> Side:
    """Returns what a service came to: per answered request how long it took, in order of arrival.

    Raises:
        ScenarioError: The service cannot be run.
        OperationCancelled: Cancelled.
    """
    result = simulate_serving(scenario, progress, cancel)
    settings, requests = result.settings, result.run.requests
    analysis = serving_analysis(result.run, settings.slo_ttft_ns, settings.slo_tpot_ns)
    done = np.flatnonzero(requests.finished)
    done = done[np.argsort(requests.arrival_ns[done], kind="stable")]
    reserved = result.shard.weight_bytes + (
        result.run.kv_block_count * settings.block_tokens * result.shard.kv_bytes_per_token
    )

    def record(progress: Progress, cancel: CancelToken) -> Job:
        return record_service(result, progress, cancel)

    return Side(
        status=RunStatus.DONE,
        step_ns=requests.last_token_ns[done] - requests.arrival_ns[done],
        tokens_per_s=analysis.output_tokens_per_s or None,
        device_count=scenario.device_count,
        peak_allocated_bytes={0: result.peak_memory_bytes},
        peak_reserved_bytes={0: reserved},
        stranded_bytes={},
        operator_ns={},
        communication_share_ratio=0.0,
        bubble_ratio=0.0,
        record=record,
        warm_up_count=0,
        serving=analysis,
        service=result,
    )


def served_notes(baseline: Side, candidate: Side) -> tuple[str, ...]:
    """Returns what the mean time of answered requests does not say: who was not answered."""
    before, after = baseline.serving, candidate.serving
    if before is None or after is None:
        return ()
    notes = ["a step is one answered request, from its arrival to its last token"]
    for what, side in (("the service as it is", before), ("the changed service", after)):
        lost = side.requests - side.finished
        if lost:
            refused = f"{side.rejected:,} refused, {side.timed_out:,} timed out"
            notes.append(f"{what} leaves {lost:,} of {side.requests:,} requests unanswered ({refused})")
    return tuple(notes)
