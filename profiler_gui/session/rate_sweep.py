"""Latency over rate, in the worker: the service is asked at random, slowly to faster than it can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiler_gui.session.serving_runs import RatePoint, ServeRequest, document_with

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from profiler_gui.session.worker import JobContext


def sweep_in_worker(context: JobContext, request: ServeRequest) -> None:
    """Delivers a ``RatePoint`` per rate, the slowest first.

    Raises:
        ScenarioError: The service cannot be run, or its requests are recorded ones.
        OperationCancelled: Cancelled.
    """
    from engine.workloads.scenario_file import scenario_from_document
    from engine.workloads.serving.sweep import rate_sweep

    scenario = scenario_from_document(document_with(request.place.document, request.chosen), request.place.folder)
    for point in rate_sweep(scenario, (), context.progress, context.cancel):
        context.deliver(RatePoint(request.chosen, point.rate_per_s, point.analysis))
