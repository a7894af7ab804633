"""Axes of the memory plot: times as the rest of the window writes them, sizes in binary units."""

from __future__ import annotations

import math

import pyqtgraph as pg

from engine.core.number_format import format_bytes
from profiler_gui.session.viewport import Viewport
from profiler_gui.toolkit.time_axis import TimeScale, ticks, time_text

TICK_SPACING_PX = 110
LEVELS = 7
"""Marks on the axis of sizes, at most."""


class TimeAxis(pg.AxisItem):
    """Trace time; the plot's own numbers are ns from the start of the view."""

    def __init__(self) -> None:
        super().__init__("bottom")
        self._view = Viewport(0, 1)

    def set_view(self, view: Viewport) -> None:
        """Says which stretch of time is in view."""
        self._view = view
        self.picture = None
        self.update()

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Returns round moments of the trace."""
        found = ticks(TimeScale(self._view.start_ns, self._view.end_ns, max(size, 1.0)), TICK_SPACING_PX)
        return [(float(found.step_ns), [float(time_ns - self._view.start_ns) for time_ns in found.times_ns])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the moments as texts."""
        resolution_ns = max(round(spacing), 1)
        return [time_text(self._view.start_ns + round(value), resolution_ns=resolution_ns) for value in values]


class BytesAxis(pg.AxisItem):
    """Sizes at round binary numbers."""

    def __init__(self) -> None:
        super().__init__("left")

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Returns multiples of ``level_step_bytes``."""
        step = level_step_bytes(maxVal - minVal)
        first = -(-minVal // step)
        count = int((maxVal - first * step) // step) + 1
        return [(float(step), [float((first + index) * step) for index in range(max(count, 0))])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the sizes as texts."""
        return [format_bytes(value) for value in values]


def level_step_bytes(range_bytes: float) -> int:
    """Returns the distance of the axis's marks: a power of two, so that marks are round in every binary unit."""
    wanted = max(range_bytes, 1.0) / LEVELS
    return 1 << max(math.ceil(math.log2(wanted)), 0)
