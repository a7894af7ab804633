"""What a capture measures of its own device and host: what savings of fusions are estimated from."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.fusion.cache_sizes import LARGEST_KNOWN_BYTES, CacheSize
from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.launches import launch_events
from engine.core.arrays import Float64Array, Int64Array
from engine.trace.trace import Trace

_WAITED_NS = 1_000
"""A task that the device waited for longer than this was launched too late; shorter gaps are the device's own."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What the capture says of its device and host.

    Attributes:
        fixed_ns: Duration of a kernel that does next to nothing.
        longest_wait_ns: What a launch takes at most: Tukey's upper fence of the device's waits before a kernel, or the
            upper quartile of the host's time between launches where that is less. What is longer is something else (a
            synchronisation, a compilation, another step), which no fusion removes.
        launch_ns: Quartiles of the host's time per launch where the device waits for it; None where it never does.
        bandwidth_in_cache: Bytes per ns of streaming kernels that fit in L2, 90th percentile; None without shapes.
        bandwidth_beyond_cache: The same for larger ones.
        cache: The device's L2, None where unknown.
    """

    fixed_ns: float
    longest_wait_ns: int
    launch_ns: tuple[float, float, float] | None
    bandwidth_in_cache: float | None
    bandwidth_beyond_cache: float | None
    cache: CacheSize | None

    @property
    def surely_beyond_bytes(self) -> int:
        """Above this a tensor does not fit in L2, whatever the device is."""
        return self.cache.bytes if self.cache is not None else LARGEST_KNOWN_BYTES


def measure(sequence: KernelSequence, cache: CacheSize | None, dispatch_ns: int | None = None) -> Measures:
    """Returns the capture's own measures.

    Args:
        sequence: The kernels.
        cache: The device's L2, None where unknown.
        dispatch_ns: Upper quartile of the host's time between launches, None where launches are not recorded.
    """
    duration = sequence.duration_ns.astype(np.float64)
    positive = duration[duration > 0]
    fixed_ns = float(np.percentile(positive, 5, method="lower")) if len(positive) else 0.0
    waited = np.flatnonzero(sequence.idle_before_ns > _WAITED_NS)
    intervals = sequence.start_ns[waited] - sequence.start_ns[np.maximum(waited - 1, 0)]
    quartiles = np.percentile(intervals, (25, 50, 75)) if len(intervals) else None
    waits = sequence.idle_before_ns[waited]
    limit = cache.bytes if cache is not None else LARGEST_KNOWN_BYTES
    traffic = sequence.traffic_bytes
    # Kernels of a few µs mostly measure their fixed cost, not the memory.
    long_enough = (traffic > 0) & (duration > 5 * fixed_ns)
    rate = traffic / np.maximum(duration, 1.0)
    return Measures(
        fixed_ns=fixed_ns,
        longest_wait_ns=_upper_fence(waits) if dispatch_ns is None else min(_upper_fence(waits), dispatch_ns),
        launch_ns=None if quartiles is None else (float(quartiles[0]), float(quartiles[1]), float(quartiles[2])),
        bandwidth_in_cache=_upper(rate[long_enough & (traffic <= limit)]),
        bandwidth_beyond_cache=_upper(rate[long_enough & (traffic > limit)]),
        cache=cache,
    )


def dispatch_ns(trace: Trace) -> int | None:
    """Returns the upper quartile of the host's time between two launches, None where launches are not recorded."""
    launch = launch_events(trace)
    launches = np.unique(launch[launch >= 0])
    between = np.diff(np.sort(trace.events.start_ns[launches]))
    return int(np.percentile(between, 75)) if len(between) else None


def _upper_fence(waits: Int64Array) -> int:
    """Returns third quartile + 1.5 × interquartile range (Tukey, Exploratory Data Analysis, 1977); 0 without waits."""
    if len(waits) == 0:
        return 0
    lower, upper = np.percentile(waits, (25, 75))
    return int(upper + 1.5 * (upper - lower))


def _upper(rates: Float64Array) -> float | None:
    return float(np.percentile(rates, 90)) if len(rates) else None
