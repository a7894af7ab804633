"""With how many devices a changed job does what the unchanged one did."""

import math
from dataclasses import replace

from engine.core.errors import ScenarioError
from engine.core.progress import CancelToken, Progress
from engine.whatif.results import Side
from engine.whatif.scenario_side import scenario_side
from engine.workloads.relayout import with_layout
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_checks import check_scenario

MOST_RERUNS = 4
"""A first estimate from throughputs is at most a few replicas off, because only collectives over replicas change."""


def with_replicas(scenario: Scenario, count: int) -> Scenario:
    """Returns the job with so many replicas, each of which does what it did before.

    Raises:
        ScenarioError: Experts cannot be spread over so few.
    """
    replica_devices = scenario.device_count // scenario.parallel.data
    batch = scenario.batch
    changed = replace(
        scenario,
        device_count=count * replica_devices,
        parallel=replace(scenario.parallel, data=count),
        batch=replace(batch, global_sequences=batch.micro * count * scenario.micro_batch_count),
    )
    check_scenario(changed)
    return changed


def fewest_devices(
    scenario: Scenario, candidate: Side, tokens_per_s: float, progress: Progress, cancel: CancelToken
) -> int | None:
    """Returns how many devices a job needs for a throughput, in whole replicas, by running it with fewer or more.

    Args:
        scenario: The changed job.
        candidate: What it came to.
        tokens_per_s: To be reached.
        progress: Told what is done.
        cancel: Looked at between steps.

    Returns:
        None where the job did not run, or where no number of replicas tried reached it.
    """
    if not candidate.tokens_per_s or not tokens_per_s:
        return None
    scenario = with_layout(scenario)
    own = scenario.parallel.data
    known = {own: candidate.tokens_per_s}

    def reaches(count: int) -> bool:
        if count not in known:
            known[count] = _throughput(scenario, count, progress, cancel)
        return known[count] >= tokens_per_s

    count = max(math.ceil(own * tokens_per_s / candidate.tokens_per_s), 1)
    for _ in range(MOST_RERUNS):
        if not reaches(count):
            count += 1
        elif count > 1 and reaches(count - 1):
            count -= 1
        else:
            return count * (scenario.device_count // own)
    return None


def _throughput(scenario: Scenario, count: int, progress: Progress, cancel: CancelToken) -> float:
    """Returns tokens per second with so many replicas, 0 where that cannot run."""
    try:
        changed = with_replicas(scenario, count)
    except ScenarioError:
        return 0.0
    side = scenario_side(changed, progress, cancel)
    return side.tokens_per_s or 0.0 if side.status is RunStatus.DONE else 0.0
