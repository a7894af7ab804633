"""Serving in the worker: a service as it is or with toggles, who was late, and latency over rate.

The functions named ``…_in_worker`` run in the worker process. It keeps what it served last, so that who was late can be
looked for again without serving again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler_gui.session.toggles import Chosen, text_of

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.analyses.serving.latency import ServingAnalysis
    from engine.analyses.serving.tables import ServedRun
    from engine.workloads.serving.prevention import JitterReport
    from engine.workloads.serving.settings import ServingSettings
    from engine.workloads.serving.simulate import ServingResult
    from profiler_gui.session.worker import JobContext

SERVING_SHARE = 0.5
"""Part of the progress bar that serving takes, the rest is who was late: limits are tried by serving again."""
MOST_KEPT = 2
"""Served runs the worker keeps: the one in view and the one before."""
_KEPT = "served runs"


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """A service to be run.

    Attributes:
        document: The scenario as a parsed TOML file.
        folder: Paths inside it are relative to this folder.
        name: What it is called.
    """

    document: Mapping[str, Any]
    folder: Path
    name: str

    @property
    def key(self) -> str:
        """Names what it holds."""
        return hashlib.sha256(f"{self.folder} {self.document!r}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """A service to be run with toggles.

    Attributes:
        place: The service.
        chosen: What is on.
    """

    place: ServicePlace
    chosen: Chosen


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What came of a service.

    Attributes:
        chosen: What was on.
        settings: Of the engine, with what was on.
        run: Requests, iterations, phases.
        analysis: Latencies and rates.
        peak_memory_bytes: Weights, keys and values of a device at most.
    """

    chosen: Chosen
    settings: ServingSettings
    run: ServedRun
    analysis: ServingAnalysis
    peak_memory_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class LateFound:
    """Who was late.

    Attributes:
        chosen: What was on.
        report: Who, why, and what prevents it; None where nothing was answered.
        is_complete: Whether what prevents it has been looked for.
    """

    chosen: Chosen
    report: JitterReport | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class RatePoint:
    """Latency at one rate of requests that come at random.

    Attributes:
        chosen: What was on.
        rate_per_s: Requests asked per second.
        analysis: What the service gave.
    """

    chosen: Chosen
    rate_per_s: float
    analysis: ServingAnalysis


def serve_in_worker(context: JobContext, request: ServeRequest) -> LateFound:
    """Serves, delivers a ``Served``, then who was late, and returns that with what would have prevented it.

    Raises:
        ScenarioError: The service cannot be run, or a toggle does nothing to a service.
        OperationCancelled: Cancelled.
    """
    from engine.core.progress import part_of
    from engine.report.serving import analysis_of, report_of

    result = _result(context, request)
    context.deliver(Served(request.chosen, result.settings, result.run, analysis_of(result), result.peak_memory_bytes))
    untried = _untried(result)
    context.deliver(LateFound(request.chosen, untried, is_complete=untried is None))
    progress = part_of(context.progress, SERVING_SHARE, 1.0)
    report = report_of(result, progress, context.cancel) if untried is not None and untried.jitter.late else untried
    return LateFound(request.chosen, report, is_complete=True)


def _untried(result: ServingResult) -> JitterReport | None:
    """Returns who was late, before any limit was tried; None where nothing was answered."""
    from engine.analyses.serving.jitter import jitter, late_limits
    from engine.core.errors import MissingDataError
    from engine.workloads.serving.prevention import JitterReport

    settings = result.settings
    try:
        limits = late_limits(result.run, settings.slo_ttft_ns, settings.slo_tpot_ns)
    except MissingDataError:
        return None
    return JitterReport(jitter(result.run, limits), (), ())


def _result(context: JobContext, request: ServeRequest) -> ServingResult:
    """Returns the served run of a request, served once as long as no others are asked about."""
    from engine.core.progress import part_of
    from engine.workloads.scenario_file import scenario_from_document
    from engine.workloads.serving.simulate import simulate_serving

    kept: dict[tuple[str, str], ServingResult] = context.kept.setdefault(_KEPT, {})
    key = (request.place.key, text_of(request.chosen))
    if key not in kept:
        scenario = scenario_from_document(document_with(request.place.document, request.chosen), request.place.folder)
        kept[key] = simulate_serving(scenario, part_of(context.progress, 0.0, SERVING_SHARE), context.cancel)
        while len(kept) > MOST_KEPT:
            del kept[next(iter(kept))]
    return kept[key]


def document_with(document: Mapping[str, Any], chosen: Chosen) -> dict[str, Any]:
    """Returns a scenario with toggles on besides those it has on itself."""
    if not chosen:
        return dict(document)
    own = document.get("optimizations", {})
    return {**document, "optimizations": {**own, **{key: dict(values) for key, values in chosen.items()}}}
