"""Axes of the service's plots: moments, request numbers, durations, counts."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg

from engine.core.number_format import format_count
from profiler_gui.panels.serving.rows import RequestRows
from profiler_gui.toolkit.time_axis import TimeScale, ticks, time_text

TICK_SPACING_PX = 90
ROW_SPACING_PX = 18


class MomentAxis(pg.AxisItem):
    """Moments from the start of the run, in ns."""

    def __init__(self, *, has_texts: bool) -> None:
        super().__init__("bottom")
        self.setStyle(showValues=has_texts)

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Returns round moments."""
        scale = TimeScale(round(minVal), max(round(maxVal), round(minVal) + 1), max(size, 1.0))
        found = ticks(scale, TICK_SPACING_PX)
        return [(float(found.step_ns), [float(time_ns) for time_ns in found.times_ns])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the moments as texts."""
        return [time_text(round(value), resolution_ns=max(round(spacing), 1)) for value in values]


class RequestAxis(pg.AxisItem):
    """Numbers of requests beside their rows."""

    def __init__(self) -> None:
        super().__init__("left")
        self._rows: RequestRows | None = None

    def set_rows(self, rows: RequestRows | None) -> None:
        """Names other rows."""
        self._rows = rows
        self.picture = None
        self.update()

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """Returns middles of rows, far enough apart to be read; the axis of an inverted plot says its ends reversed."""
        top, bottom = max(min(minVal, maxVal), 0.0), max(minVal, maxVal)
        step = max(int(np.ceil((bottom - top) * ROW_SPACING_PX / max(size, 1.0))), 1)
        count = len(self._rows) if self._rows is not None else 0
        first = int(top) - int(top) % step
        return [(float(step), [row + 0.5 for row in range(first, min(int(bottom) + 1, count), step)])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the requests of the rows."""
        rows = self._rows
        return [] if rows is None else [str(rows.order[int(value)]) for value in values if 0 <= value < len(rows)]


class CountAxis(pg.AxisItem):
    """Whole numbers."""

    def __init__(self) -> None:
        super().__init__("left")
        self.enableAutoSIPrefix(False)

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the numbers as texts; none between two whole ones."""
        return [format_count(round(value)) if float(value).is_integer() else "" for value in values]


class DurationAxis(pg.AxisItem):
    """Durations in ns, each with the digits their distance calls for."""

    def __init__(self) -> None:
        super().__init__("left")
        self.enableAutoSIPrefix(False)

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Returns the durations as texts; 0 without a unit."""
        return [time_text(round(value), resolution_ns=max(round(spacing), 1)) if value else "0" for value in values]
