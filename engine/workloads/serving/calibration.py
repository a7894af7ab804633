"""A device's memory rate and the engine's cost per iteration, fitted to some requests of a recorded run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.serving.tables import ServedRequests
from engine.core.arrays import Float64Array
from engine.core.progress import Progress, no_progress
from engine.devices.spec import DeviceSpec
from engine.workloads.serving.engine_costs import EngineCosts

RATIO_RANGE = (0.5, 1.0)
"""Share of the memory's rate that streaming reaches."""
ITERATION_RANGE_NS = (0.0, 10e6)
_ROUNDS, _POINTS = 4, 7
"""Each round looks at so many points per unknown, around the best of the round before."""
_TTFT_WEIGHT = 0.1
"""Times to first tokens are short and noisy while nothing queues; times per token decide."""


@dataclass(frozen=True, slots=True)
class ServingFit:
    """What was fitted.

    Attributes:
        device: With the fitted memory rate.
        costs: With the fitted cost per iteration; nothing per sequence.
        error_ratio: Root of the mean square of logarithms of predicted ÷ measured time per token on the fitted part.
    """

    device: DeviceSpec
    costs: EngineCosts
    error_ratio: float


def fitted_serving(
    device: DeviceSpec,
    costs: EngineCosts,
    run: Callable[[DeviceSpec, EngineCosts], ServedRequests],
    ttft_ns: Float64Array,
    tpot_ns: Float64Array,
    progress: Progress = no_progress,
) -> ServingFit:
    """Returns the memory rate and the engine's cost per iteration that follow a recorded run best.

    Two unknowns by repeated grids: every guess serves the whole run, and is judged on the first requests only.

    Args:
        device: Its ``hbm_stream_ratio`` is replaced.
        costs: Its costs per iteration and sequence are replaced.
        run: Serves the recorded requests.
        ttft_ns: Measured times to the first token of the first requests, shape (fitted,).
        tpot_ns: Measured times per further token of the same requests.
        progress: Told the share of guesses made.
    """
    count = len(ttft_ns)
    (low, high), (least, most) = RATIO_RANGE, ITERATION_RANGE_NS
    best = (np.inf, device, costs)
    for turn in range(_ROUNDS):
        ratios, iterations = np.linspace(low, high, _POINTS), np.linspace(least, most, _POINTS)
        place = (0, 0)
        for i, ratio in enumerate(ratios.tolist()):
            progress((turn + i / _POINTS) / _ROUNDS, f"fitting round {turn + 1} of {_ROUNDS}")
            spec = with_stream_ratio(device, ratio)
            for j, iteration_ns in enumerate(iterations.tolist()):
                guess = replace(costs, iteration_ns=iteration_ns, sequence_ns=0.0)
                served = run(spec, guess)
                error = _error(served, ttft_ns, tpot_ns, count)
                if error < best[0]:
                    best, place = (error, spec, guess), (i, j)
        low, high = _around(ratios, place[0])
        least, most = _around(iterations, place[1])
    served = run(best[1], best[2])
    logs = np.log(_tpot_ns(served)[:count] / tpot_ns)
    return ServingFit(best[1], best[2], float(np.sqrt(np.mean(logs**2))))


def with_stream_ratio(device: DeviceSpec, ratio: float) -> DeviceSpec:
    """Returns the device with another share of its memory's rate that streaming reaches."""
    constant = replace(device.constants["hbm_stream_ratio"], value=ratio)
    return replace(device, constants={**device.constants, "hbm_stream_ratio": constant})


def _around(points: Float64Array, place: int) -> tuple[float, float]:
    return float(points[max(place - 1, 0)]), float(points[min(place + 1, len(points) - 1)])


def _tpot_ns(served: ServedRequests) -> Float64Array:
    further = np.maximum(served.output_tokens - 1, 1)
    return (served.last_token_ns - served.first_token_ns) / further


def _error(served: ServedRequests, ttft_ns: Float64Array, tpot_ns: Float64Array, count: int) -> float:
    per_token = np.log(np.maximum(_tpot_ns(served)[:count], 1.0) / tpot_ns)
    first = np.log((served.first_token_ns - served.arrival_ns)[:count] / ttft_ns)
    return float(np.mean(per_token**2) + _TTFT_WEIGHT * np.mean(first**2))
