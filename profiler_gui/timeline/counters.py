"""Counters and memory curves as step areas: every column of pixels shows the least and the greatest value in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from engine.core.arrays import AnyArray, Float64Array, Int64Array, read_only
from engine.trace import Trace
from engine.trace.tables import MemoryCurve
from profiler_gui.timeline.palette import mix
from profiler_gui.timeline.raster import Image
from profiler_gui.toolkit.translations import tr

CHUNK = 64
"""Samples whose extremes are kept together, so that a million samples cost no more than a few thousand."""


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """One quantity that keeps each value until the next sample.

    Attributes:
        time_ns: int64, shape (n,), ascending.
        value: float64, shape (n,).
        chunk_low: float64, shape (⌈n ÷ CHUNK⌉,).
        chunk_high: float64, same shape.
    """

    time_ns: Int64Array
    value: Float64Array
    chunk_low: Float64Array
    chunk_high: Float64Array

    def value_at(self, time_ns: int) -> float | None:
        """Returns the value at a moment; None before the first sample."""
        index = int(np.searchsorted(self.time_ns, np.int64(time_ns), side="right")) - 1
        return float(self.value[index]) if index >= 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """What one counter row draws.

    Attributes:
        label: What it is called.
        unit: ``"B"`` for bytes, else as the source writes it.
        layers: Drawn one over the other on one scale, with what each is called.
        high: Top of the scale.
        low: Bottom of the scale: 0, or the least value if that is negative.
    """

    label: str
    unit: str
    layers: tuple[tuple[str, Steps], ...]
    high: float
    low: float


def make_steps(time_ns: AnyArray, value: AnyArray) -> Steps:
    """Returns the samples in order of time, without the ones that have no value (NaN)."""
    known = ~np.isnan(value)
    time_ns, value = np.asarray(time_ns)[known], np.asarray(value)[known]
    if np.any(np.diff(time_ns) < 0):
        order = np.argsort(time_ns, kind="stable")
        time_ns, value = time_ns[order], value[order]
    starts = np.arange(0, len(value), CHUNK)
    low = np.minimum.reduceat(value, starts) if len(value) else np.empty(0)
    high = np.maximum.reduceat(value, starts) if len(value) else np.empty(0)
    columns = (np.ascontiguousarray(column) for column in (time_ns.astype(np.int64), value.astype(np.float64)))
    return Steps(*(read_only(column) for column in (*columns, low.astype(np.float64), high.astype(np.float64))))


def counters_of(trace: Trace) -> list[tuple[int, Counter]]:
    """Returns (track, counter) for every counter series, and (−1, counter) for every memory curve with samples."""
    found = [
        (series.track, _counter(series.name, series.unit, ((series.name, make_steps(series.time_ns, series.value)),)))
        for series in trace.counters
    ]
    found += [(-1, _memory_counter(curve)) for curve in trace.memory.curves]
    return [(track, counter) for track, counter in found if any(len(steps.value) for _, steps in counter.layers)]


def paint_counter(
    image: Image,
    top: int,
    bottom: int,
    counter: Counter,
    view_start_ns: int,
    view_end_ns: int,
    colors: Mapping[str, int],
    background: int,
) -> None:
    """Paints a counter into the image rows ``top`` to ``bottom`` (exclusive).

    The area up to the least value of a column is solid; what varies inside the column, up to its greatest value, is
    lighter, so that no peak is averaged away.

    Args:
        image: Is written to.
        top: First row, may lie above the image.
        bottom: First row below.
        counter: What to paint.
        view_start_ns: Left edge.
        view_end_ns: Right edge.
        colors: By title of a layer; the one of ``""`` is for all others.
        background: What lighter parts are mixed with.
    """
    width = image.shape[1]
    low, high = np.empty(width), np.empty(width)
    scale = (bottom - top) / (counter.high - counter.low) if counter.high > counter.low else 0.0
    for title, steps in counter.layers:
        color = colors.get(title, colors[""])
        _extremes(steps.time_ns, steps.value, steps.chunk_low, steps.chunk_high, view_start_ns, view_end_ns, low, high)
        light = np.uint32(mix(color, background, 0.45))
        _paint_area(image, top, bottom, low, high, counter.low, scale, np.uint32(color), light)


def column_extremes(
    steps: Steps, view_start_ns: int, view_end_ns: int, width: int
) -> tuple[Float64Array, Float64Array]:
    """Returns the least and greatest value per column; float64, shape (width,), NaN before the first sample."""
    low, high = np.empty(width), np.empty(width)
    _extremes(steps.time_ns, steps.value, steps.chunk_low, steps.chunk_high, view_start_ns, view_end_ns, low, high)
    return low, high


def _counter(label: str, unit: str, layers: tuple[tuple[str, Steps], ...]) -> Counter:
    values = [steps.value for _, steps in layers if len(steps.value)]
    high = max((float(value.max()) for value in values), default=0.0)
    low = min((float(value.min()) for value in values), default=0.0)
    return Counter(label, unit, layers, max(high, 0.0), min(low, 0.0))


def _memory_counter(curve: MemoryCurve) -> Counter:
    layers = []
    for title, column in (
        ("reserved", curve.reserved_bytes),
        ("active", curve.active_bytes),
        ("allocated", curve.allocated_bytes),
    ):
        steps = make_steps(curve.time_ns, np.where(column < 0, np.nan, column.astype(np.float64)))
        if len(steps.value):
            layers.append((title, steps))
    place = tr("host") if curve.device < 0 else tr("device {number}", number=curve.device)
    return _counter(tr("{component}, {place}", component=curve.component, place=place), "B", tuple(layers))


@numba.njit(cache=True, nogil=True)
def _extremes(
    time_ns: Any, value: Any, chunk_low: Any, chunk_high: Any, view_start_ns: Any, view_end_ns: Any, low: Any, high: Any
) -> Any:
    width = len(low)
    span_ns = view_end_ns - view_start_ns
    index = np.searchsorted(time_ns, view_start_ns, side="right") - 1
    edge_ns = view_start_ns
    for column in range(width):
        position = index + 1
        least, greatest = np.nan, np.nan
        if index >= 0 and not (position < len(time_ns) and time_ns[position] == edge_ns):
            least = greatest = value[index]
        # Ceiling in float, relative to the view; a sample on the border belongs to the column it opens.
        edge_ns = view_start_ns + np.int64(np.ceil((column + 1) * (span_ns / width)))
        while position < len(time_ns) and time_ns[position] < edge_ns:
            last = position + CHUNK - 1
            if position % CHUNK == 0 and last < len(time_ns) and time_ns[last] < edge_ns:
                chunk_least, chunk_greatest = chunk_low[position // CHUNK], chunk_high[position // CHUNK]
                position += CHUNK
            else:
                chunk_least = chunk_greatest = value[position]
                position += 1
            if np.isnan(least):
                least, greatest = chunk_least, chunk_greatest
            least, greatest = min(least, chunk_least), max(greatest, chunk_greatest)
        index = position - 1
        low[column], high[column] = least, greatest


@numba.njit(cache=True, nogil=True)
def _paint_area(
    image: Any, top: Any, bottom: Any, low: Any, high: Any, base: Any, scale: Any, color: Any, light: Any
) -> Any:
    for column in range(len(low)):
        if np.isnan(low[column]):
            continue
        solid = bottom - np.int64(np.round((low[column] - base) * scale))
        peak = bottom - np.int64(np.round((high[column] - base) * scale))
        for row in range(max(peak, top, 0), min(bottom, image.shape[0])):
            image[row, column] = color if row >= solid else light
