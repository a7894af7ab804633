"""What requests of a service lose time to, and how many sequences at once to try."""

from collections.abc import Iterator

import numpy as np

from engine.analyses.serving.tables import PhaseKind, ServedRun
from engine.optimizations.interface import Parameters
from engine.whatif.results import Side
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings_file import optimized

BATCHING = "serving.dynamic_batching"
_PLACES = (2, 4)
"""Times as many sequences at once as now: doubling twice per round, as nobody knows the best number beforehand."""


def phase_ratios(run: ServedRun) -> dict[PhaseKind, float]:
    """Returns the share of the time of answered requests, from arrival to last token, by what they were doing."""
    requests, phases = run.requests, run.phases
    answered = requests.finished[phases.request]
    length_ns = np.where(answered, phases.end_ns - phases.start_ns, 0)
    spent_ns = np.bincount(phases.kind, weights=length_ns, minlength=len(PhaseKind))
    done = requests.finished
    whole_ns = float((requests.last_token_ns - requests.arrival_ns)[done].sum())
    return {kind: float(spent_ns[kind]) / whole_ns if whole_ns else 0.0 for kind in PhaseKind}


def served_ratio(side: Side) -> float:
    """Returns the share of requests a service answers, 1 for a training job."""
    analysis = side.serving
    return 1.0 if analysis is None or not analysis.requests else analysis.finished / analysis.requests


def batch_variants(scenario: Scenario) -> Iterator[Parameters]:
    """Yields parameters of dynamic batching to try on a service: as many sequences as now, then more."""
    settings = optimized(scenario.serving, scenario.optimizations)
    if BATCHING not in scenario.optimizations:
        yield {}
    for times in _PLACES:
        yield {"max_batch": settings.max_batch * times}
