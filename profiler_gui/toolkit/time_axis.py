"""Between ns and pixels, ticks of a time ruler, and texts of times."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MANTISSAS = (1, 2, 5)


class TimeUnit(StrEnum):
    """How times are written."""

    AUTO = "auto"
    NS = "ns"
    US = "us"
    MS = "ms"
    WALL_CLOCK = "wall_clock"


_UNITS = {TimeUnit.NS: ("ns", 1), TimeUnit.US: ("µs", 1_000), TimeUnit.MS: ("ms", 1_000_000)}
_AUTO_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Maps ``[start_ns, end_ns)`` onto ``[0, width_px)``.

    Differences are taken as integers before anything becomes a float, so a trace of days is exact at a width of 1 ns.
    """

    start_ns: int
    end_ns: int
    width_px: float

    @property
    def ns_per_px(self) -> float:
        """How much time a pixel stands for."""
        return (self.end_ns - self.start_ns) / self.width_px

    def x_px(self, time_ns: int) -> float:
        """Returns where a time is drawn; beyond 0…width for times out of view."""
        return (time_ns - self.start_ns) * self.width_px / (self.end_ns - self.start_ns)

    def xs_px(self, times_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns where many times are drawn; float64, shape of ``times_ns``."""
        offsets = (times_ns - self.start_ns).astype(np.float64)
        return offsets * (self.width_px / (self.end_ns - self.start_ns))

    def time_ns(self, x_px: float) -> int:
        """Returns the nearest ns to a position."""
        return self.start_ns + round(x_px * self.ns_per_px)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Round moments of a range.

    Attributes:
        step_ns: Between two ticks: 1, 2 or 5 times a power of ten.
        times_ns: In ascending order.
    """

    step_ns: int
    times_ns: tuple[int, ...]


def ticks(scale: TimeScale, spacing_px: float, origin_ns: int = 0) -> Ticks:
    """Returns ticks at least ``spacing_px`` apart, round when counted from ``origin_ns``."""
    wanted_ns = scale.ns_per_px * spacing_px
    step_ns = next(
        mantissa * 10**power for power in range(19) for mantissa in _MANTISSAS if mantissa * 10**power >= wanted_ns
    )
    first_ns = -(-(scale.start_ns - origin_ns) // step_ns) * step_ns + origin_ns
    return Ticks(step_ns, tuple(range(first_ns, scale.end_ns, step_ns)))


def time_text(
    time_ns: int,
    unit: TimeUnit = TimeUnit.AUTO,
    *,
    resolution_ns: int = 1,
    epoch_ns: int | None = None,
) -> str:
    """Returns a moment as text, with the digits that ``resolution_ns`` calls for, exact in integers.

    Args:
        time_ns: Counted from the trace start (or a mark).
        unit: AUTO takes the largest unit that makes the number at least one.
        resolution_ns: Finer digits are left out (rounded half to even).
        epoch_ns: Unix time of the trace start, for WALL_CLOCK; without it AUTO is used.
    """
    if unit is TimeUnit.WALL_CLOCK and epoch_ns is not None:
        return _wall_clock(epoch_ns + time_ns, resolution_ns)
    if unit in _UNITS:
        name, size_ns = _UNITS[unit]
    else:
        magnitude_ns = max(abs(time_ns), resolution_ns)
        name, size_ns = next(item for item in _AUTO_UNITS if magnitude_ns >= item[1])
    return f"{_fixed(time_ns, size_ns, resolution_ns)} {name}"


def _fixed(time_ns: int, size_ns: int, resolution_ns: int) -> str:
    """Returns ``time_ns ÷ size_ns`` with just enough decimals to tell ``resolution_ns`` apart."""
    decimals = 0
    while decimals < 9 and size_ns // 10**decimals > max(resolution_ns, 1):
        decimals += 1
    decimals = min(decimals, len(str(size_ns)) - 1)
    scaled = round(time_ns * 10**decimals / size_ns) if abs(time_ns) < 1 << 52 else time_ns * 10**decimals // size_ns
    sign, digits = ("−" if scaled < 0 else ""), str(abs(scaled)).rjust(decimals + 1, "0")
    whole, fraction = (digits[:-decimals], digits[-decimals:]) if decimals else (digits, "")
    return f"{sign}{int(whole):,}" + (f".{fraction}" if fraction else "")


def _wall_clock(unix_ns: int, resolution_ns: int) -> str:
    seconds, nanoseconds = divmod(unix_ns, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    decimals = 0 if resolution_ns >= 1_000_000_000 else 10 - len(str(max(resolution_ns, 1)))
    fraction = f".{nanoseconds:09d}"[: decimals + 1] if decimals else ""
    return moment.strftime("%H:%M:%S") + fraction
