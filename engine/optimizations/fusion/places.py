"""Where fusions could stand in a recorded job, with what one kernel would take there; computed once per capture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from engine.analyses.distinct_rows import distinct_rows
from engine.analyses.fusion.occurrences import PatternOccurrences, PreparedKernels, pattern_occurrences, prepared
from engine.analyses.fusion.patterns import Estimate
from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.devices.spec import DeviceSpec
from engine.optimizations.fusion.kernel_shapes import kernel_shape
from engine.optimizations.fusion.operator_prices import READERS, RELATIVE_READERS, price_ns, ratio
from engine.optimizations.interface import Bound
from engine.replay.capture_graph import CaptureGraph
from engine.trace.trace import Trace

MODEL_SPREAD_RATIO = 0.43
"""Nine of ten prices of the cost model are within this of the measured time for shapes it was not fitted to
(``docs/fidelity.md``, operators-unseen-cases): the range of a price."""
_REMEMBERED = 10
"""About one question per fusion: each is asked when it is checked and at three bounds. No more are kept, so that a
capture that was closed is forgotten as soon as the next one is asked about all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class RankPlaces:
    """Places of one pattern on one rank; columns of shape (places,).

    Attributes:
        rank: Of the job.
        found: The places with the kernels' events.
        best_ns: float64: the least the fused kernel can take.
        expected_ns: float64.
        worst_ns: float64: the most.
        priced_count: Places whose shapes gave the expected time by the cost model; the others' comes from traffic.
        has_types: Whether the capture names element types; without them ``ASSUMED_DTYPE`` is taken.
    """

    rank: int
    found: PatternOccurrences
    best_ns: Float64Array
    expected_ns: Float64Array
    worst_ns: Float64Array
    priced_count: int
    has_types: bool

    def duration_ns(self, bound: Bound) -> Int64Array:
        """Returns the fused kernels' times at one end of the range of the gain, int64, at least 1 ns."""
        chosen = {Bound.LOW: self.worst_ns, Bound.EXPECTED: self.expected_ns, Bound.HIGH: self.best_ns}[bound]
        return np.maximum(np.rint(chosen).astype(np.int64), 1)


def places_of(capture: CaptureGraph, patterns: tuple[str, ...], device: DeviceSpec | None) -> tuple[RankPlaces, ...]:
    """Returns the places of some patterns on every rank, by rank, then as the catalogue orders patterns."""
    return tuple(
        _priced(entry.rank, entry.trace, occurrences, device)
        for entry, found in zip(capture.job.ranks, _occurrences(capture, patterns), strict=True)
        for occurrences in found
        if len(occurrences)
    )


@lru_cache(maxsize=_REMEMBERED)
def _occurrences(capture: CaptureGraph, patterns: tuple[str, ...]) -> tuple[tuple[PatternOccurrences, ...], ...]:
    """Returns the places of some patterns, by rank of the job."""
    return tuple(pattern_occurrences(item, patterns) for item in _prepared(capture))


@lru_cache(maxsize=1)
def _prepared(capture: CaptureGraph) -> tuple[PreparedKernels, ...]:
    """Returns the kernels of every rank; kept for the capture asked for last."""
    return tuple(prepared(entry.trace) for entry in capture.job.ranks)


def _priced(rank: int, trace: Trace, found: PatternOccurrences, device: DeviceSpec | None) -> RankPlaces:
    """Returns places with the cost model's price as the expected time where shapes and device are known."""
    modelled = _modelled_ns(trace, found, device)
    known = ~np.isnan(modelled)
    floor = _floor_ns(found.bytes, device)
    expected = np.maximum(np.where(known, modelled, found.expected_ns), floor)
    # Where only a ratio comes from the model, the recorded kernels say how long their bytes take.
    spread = known & (found.pattern.id not in RELATIVE_READERS)
    best = np.where(spread, expected / (1 + MODEL_SPREAD_RATIO), np.minimum(found.best_ns, expected))
    worst = np.where(spread, expected * (1 + MODEL_SPREAD_RATIO), np.maximum(found.worst_ns, expected))
    return RankPlaces(
        rank=rank,
        found=found,
        best_ns=np.maximum(best, floor),
        expected_ns=expected,
        worst_ns=worst,
        priced_count=int(known.sum()),
        has_types=bool(np.any(trace.kernels.input_types >= 0)),
    )


def _modelled_ns(trace: Trace, found: PatternOccurrences, device: DeviceSpec | None) -> Float64Array:
    """Returns what the operators in place of each chain take by the cost model, float64, NaN where that is unknown."""
    result = np.full(len(found), np.nan)
    pattern = found.pattern.id
    if device is None or len(trace.kernels) == 0 or not (pattern in READERS or pattern in RELATIVE_READERS):
        return result
    codes = _shape_codes(trace, found)
    known: dict[bytes, float] = {}
    # A Python step per place; equal chains are priced once.
    for index, members in enumerate(members_of_places(found)):
        key = codes[members].tobytes()
        if key not in known:
            pairs = zip(found.events[members].tolist(), found.words[members], strict=True)
            chain = [kernel_shape(trace, event, word) for event, word in pairs]
            if pattern in READERS:
                price = price_ns(READERS[pattern], chain, device)
            else:
                price = ratio(*RELATIVE_READERS[pattern], chain, device)
            known[key] = np.nan if price is None else price
        result[index] = known[key]
    return result if pattern in READERS else result * _measured_ns(trace, found)


def _measured_ns(trace: Trace, found: PatternOccurrences) -> Int64Array:
    """Returns the recorded time a ratio is taken of, int64: the product in front of an epilogue, else all kernels."""
    if found.pattern.estimate is Estimate.EPILOGUE:
        return trace.events.duration_ns[found.events[found.offsets[:-1]]]
    return found.busy_ns


def members_of_places(found: PatternOccurrences) -> Sequence[slice]:
    """Returns the range of each place in ``found.events``."""
    return [slice(int(start), int(stop)) for start, stop in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def _shape_codes(trace: Trace, found: PatternOccurrences) -> Int32Array:
    """Returns a number per kernel, int32, shape (events,): equal ones do the same to the same shapes and types."""
    rows = trace.kernel_row_of_event[found.events]
    texts = [column[np.maximum(rows, 0)] for column in (trace.kernels.input_shapes, trace.kernels.input_types)]
    _, word = np.unique(np.array(found.words), return_inverse=True)
    columns = [np.where(rows >= 0, text, np.int32(-1)) for text in texts]
    return distinct_rows([word.astype(np.int32), *columns])[1].astype(np.int32)


def _floor_ns(moved_bytes: Float64Array, device: DeviceSpec | None) -> Float64Array:
    """Returns what moving the bytes takes at least: at the memory's peak rate, or the cache's where they fit in it."""
    if device is None:
        return np.zeros(len(moved_bytes))
    rate = np.where(moved_bytes > device.l2_bytes, device.hbm_bytes_per_s, device.l2_read_bytes_per_s)
    return moved_bytes / (rate / 1e9)
