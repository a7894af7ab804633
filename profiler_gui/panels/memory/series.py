"""The lines of the memory plot, and fewer points of them that keep every spike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.memory import MemoryAnalysis
    from engine.core.arrays import Float64Array, Int64Array
    from engine.trace import Trace
    from engine.trace.tables import MemoryCurve

PROCESS = "APP"
"""The component under which Ascend records what the driver sees of the process."""


@dataclass(frozen=True, slots=True, eq=False)
class MemorySeries:
    """One line of the plot: a level that holds until the next sample.

    Attributes:
        id: ``"PTA/0/allocated"``: component, device, quantity.
        title: Already translated.
        quantity: ``"allocated"``, ``"active"`` or ``"reserved"``; ``"process"`` for the driver's view.
        is_main: Whether it belongs to the analysed allocator, or is the process on the same device: shown at first.
        time_ns: int64, shape (n,), ascending.
        value_bytes: int64, shape (n,).
    """

    id: str
    title: str
    quantity: str
    is_main: bool
    time_ns: Int64Array
    value_bytes: Int64Array


def memory_series(trace: Trace, memory: MemoryAnalysis) -> tuple[MemorySeries, ...]:
    """Returns every recorded quantity of every component that was ever above zero.

    The analysed component comes first, the process after it, other components last.
    """
    from engine.analyses.memory import analysed_curve

    curves = list(trace.memory.curves)
    analysed = analysed_curve(trace)
    if analysed is not None and all(analysed is not curve for curve in curves):
        curves.insert(0, analysed)
    found: list[MemorySeries] = []
    for curve in curves:
        found += _series_of(curve, memory, several_devices=len({item.device for item in curves}) > 1)
    return tuple(sorted(found, key=lambda item: (not item.is_main, item.quantity == "process")))


def _series_of(curve: MemoryCurve, memory: MemoryAnalysis, *, several_devices: bool) -> list[MemorySeries]:
    found = []
    is_process = curve.component == PROCESS
    same_device = curve.device == memory.device
    for quantity, values in (
        ("allocated", curve.allocated_bytes),
        ("active", curve.active_bytes),
        ("reserved", curve.reserved_bytes),
    ):
        known = values >= 0  # −1 stands for an empty cell
        if not known.any() or not values[known].any():
            continue
        what = "process" if is_process else quantity
        found.append(
            MemorySeries(
                id=f"{curve.component}/{curve.device}/{quantity}",
                title=_title(curve, what, memory, several_devices=several_devices),
                quantity=what,
                is_main=same_device and (is_process or curve.component == memory.component),
                time_ns=curve.time_ns[known],
                value_bytes=values[known],
            )
        )
    return found


def _title(curve: MemoryCurve, quantity: str, memory: MemoryAnalysis, *, several_devices: bool) -> str:
    names = {
        "allocated": tr("allocated"),
        "active": tr("active"),
        "reserved": tr("reserved"),
        "process": tr("process (driver)"),
    }
    title = names[quantity]
    if curve.component not in (memory.component, PROCESS):
        title = f"{curve.component} {title}"
    if several_devices and curve.device != memory.device:
        where = tr("host") if curve.device < 0 else tr("device {number}", number=curve.device)
        title = f"{title}, {where}"
    return title


def stepped(
    time_ns: Int64Array, value_bytes: Int64Array, start_ns: int, end_ns: int, columns: int
) -> tuple[Float64Array, Float64Array]:
    """Returns the corners of a step line inside a view: x in ns from ``start_ns``, y in bytes; float64, shape (m,).

    Where samples outnumber the columns each column shows its lowest and its highest level between the level it begins
    and the one it ends with, so no spike and no dip is lost; m ≤ 4 × columns + 5 then. The level the view begins with
    is that of the last sample before it; nothing is drawn before the first sample or after the last.

    Args:
        time_ns: int64, ascending.
        value_bytes: int64, same shape.
        start_ns: First ns of the view.
        end_ns: First ns after it.
        columns: Width of the view in pixels.
    """
    first = int(np.searchsorted(time_ns, start_ns, side="left"))
    if first > 0 and (first == len(time_ns) or int(time_ns[first]) > start_ns):
        first -= 1  # the level the view begins with
    last = int(np.searchsorted(time_ns, end_ns, side="left"))
    moments = np.clip(time_ns[first:last] - start_ns, 0, end_ns - start_ns)
    levels = value_bytes[first:last]
    if len(levels) == 0 or columns <= 0:
        return np.empty(0), np.empty(0)
    # The level at the right edge holds up to the next sample, if there is one.
    tail_ns = end_ns - start_ns if last < len(time_ns) else int(moments[-1])
    if len(levels) <= 2 * columns:
        x = np.repeat(moments, 2)[1:].astype(np.float64)
        y = np.repeat(levels, 2)[:-1].astype(np.float64)
    else:
        x, y = _thinned(moments, levels, (end_ns - start_ns) / columns)
    return np.append(x, float(tail_ns)), np.append(y, float(levels[-1]))


def _thinned(moments: Int64Array, levels: Int64Array, column_ns: float) -> tuple[Float64Array, Float64Array]:
    """Returns, per column that holds samples: the level before it, its lowest, its highest and its last level."""
    edges = np.arange(0.0, float(moments[-1]) + column_ns, column_ns)
    begins = np.unique(np.searchsorted(moments, np.ceil(edges).astype(np.int64)))
    begins = begins[begins < len(levels)]
    lowest = np.minimum.reduceat(levels, begins)
    highest = np.maximum.reduceat(levels, begins)
    ends = np.append(begins[1:], len(levels)) - 1
    final = levels[ends]
    before = np.append(levels[0], final[:-1])
    x = np.repeat(moments[begins].astype(np.float64), 4)
    y = np.stack((before, lowest, highest, final), axis=1).reshape(-1).astype(np.float64)
    return x, y


def value_at(series: MemorySeries, time_ns: int) -> int | None:
    """Returns the level at a moment; None before the first sample and after the last."""
    if len(series.time_ns) == 0 or time_ns > int(series.time_ns[-1]):
        return None
    index = int(np.searchsorted(series.time_ns, time_ns, side="right")) - 1
    return int(series.value_bytes[index]) if index >= 0 else None
