"""Latency over the rate of requests: one service served at many rates, from idle to more than it can answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.analyses.serving.latency import ServingAnalysis, serving_analysis
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings import Arrival, ServingSettings
from engine.workloads.serving.settings_file import optimized
from engine.workloads.serving.simulate import check_served, served_with

RATE_SHARES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0, 1.15)
"""Rates tried unless others are asked for, as shares of what the service answers when everything is asked at once."""


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A service at one rate.

    Attributes:
        rate_per_s: Requests asked per second.
        analysis: What came of it, under the limits of the service.
    """

    rate_per_s: float
    analysis: ServingAnalysis

    @property
    def goodput_ratio(self) -> float | None:
        """Share of the requests answered within the limits; None where the service has none."""
        good, asked = self.analysis.goodput_per_s, self.analysis.requests
        seconds = self.analysis.span_ns / 1e9
        return None if good is None or not asked else good * seconds / asked


def highest_rate_per_s(
    scenario: Scenario, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> float:
    """Returns how many requests per second a service answers when all are asked at once and may wait for ever.

    Raises:
        ScenarioError: The service cannot be run, or its requests are recorded ones.
        OperationCancelled: Cancelled.
    """
    settings = _settings(scenario)
    asked = replace(settings.requests, arrival=Arrival.AT_ONCE)
    at_once = replace(settings, requests=asked, timeout_ns=0, max_queue=0)
    return serving_analysis(served_with(scenario, at_once, progress, cancel).run).requests_per_s


def rate_sweep(
    scenario: Scenario,
    rates_per_s: Sequence[float] = (),
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Iterator[SweepPoint]:
    """Yields a service at each rate as soon as it is served; requests come at random (Poisson).

    Args:
        scenario: The service; how its requests arrive is replaced, what they ask stays.
        rates_per_s: Rates in the order served; ``RATE_SHARES`` of the highest rate where empty.
        progress: Told the share of rates served.
        cancel: Looked at inside.

    Raises:
        ScenarioError: The service cannot be run, or its requests are recorded ones.
        OperationCancelled: Cancelled.
    """
    settings = _settings(scenario)
    chosen = tuple(rates_per_s)
    if not chosen:
        highest = highest_rate_per_s(scenario, part_of(progress, 0.0, 0.1), cancel)
        chosen = tuple(share * highest for share in RATE_SHARES if highest > 0)
    for done, rate_per_s in enumerate(chosen):
        stage = part_of(progress, 0.1 + 0.9 * done / len(chosen), 0.1 + 0.9 * (done + 1) / len(chosen))
        asked = replace(settings.requests, arrival=Arrival.POISSON, rate_per_s=rate_per_s)
        run = served_with(scenario, replace(settings, requests=asked), stage, cancel).run
        yield SweepPoint(rate_per_s, serving_analysis(run, settings.slo_ttft_ns, settings.slo_tpot_ns))


def _settings(scenario: Scenario) -> ServingSettings:
    check_served(scenario)
    settings = optimized(scenario.serving, scenario.optimizations)
    if settings.requests.file:
        raise ScenarioError("serving.file: recorded requests come when they came; draw requests to vary their rate")
    return settings
