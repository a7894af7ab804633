"""What checks of a service share: its settings as it runs, and what a capture of kernels cannot say."""

import re

import numpy as np

from engine.optimizations.answers import no_effect, unknown
from engine.optimizations.interface import Applicability, CapturePlan, Parameters
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings import Batching, ServingSettings
from engine.workloads.serving.settings_file import optimized

_BACKWARD = re.compile(r"grad|backward|adam", re.IGNORECASE)
"""In names of kernels and operators of training only."""


def service_of(scenario: Scenario) -> ServingSettings:
    """Returns the settings a service runs with, optimizations included."""
    return optimized(scenario.serving, scenario.optimizations)


def only_continuous(settings: ServingSettings, what: str) -> Applicability | None:
    """Returns that static batches leave no room for ``what``; None where batches are continuous."""
    if settings.batching is Batching.STATIC:
        return no_effect(f"{what} needs batches that change every iteration; these stay together (batching = static)")
    return None


def mean_answer(settings: ServingSettings) -> float | None:
    """Returns the mean length of an answer in tokens, None for requests read from a file."""
    return None if settings.requests.file else settings.requests.output.mean


def check_served_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    """Returns that a recorded training job serves nobody, and that a capture of inference lacks the requests."""
    del parameters
    graph = plan.graph
    names = [graph.strings.text(int(number)) for number in np.unique(graph.name) if number >= 0]
    trained = next((name for name in names if _BACKWARD.search(name)), None)
    if trained is not None:
        return no_effect(f"the recorded job trains ({trained} runs); this is about serving requests")
    return unknown(
        "a capture of kernels lists no requests; describe the service in a scenario with kind = serving "
        "(serving.file takes recorded arrivals and lengths)"
    )
