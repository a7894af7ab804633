"""Pictures of the HTML report: where the step goes, memory, and gains with their ranges."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.recommendations import Combined, GainMethod, Recommendation
from engine.analyses.headline import headline
from engine.analyses.memory import analysed_curve
from engine.analyses.step_history import StepHistory
from engine.core.arrays import Float64Array, Int64Array
from engine.core.number_format import format_bytes, format_duration_ns
from engine.core.units import GIB, NS_PER_MS
from engine.report.advice_words import range_text
from engine.report.svg import label, line, nice_ticks, picture, polyline, rectangle

WIDTH = 900.0
_MARGIN = 110.0
_TITLES = 310.0
_LONGEST_TITLE = 38
_ROW = 30.0
_BAR = 18.0
_PARTS = ("computing", "overlap", "transfer", "communication", "waiting", "idle")
"""Parts of a step from left to right; the words are classes of the page's style too."""
_MOST_RANKS = 16
_MOST_POINTS = 600
_CURVE_HEIGHT = 220.0


def breakdown_plot(examination: Examination) -> str:
    """Returns one bar per rank with the parts of its typical step; "" without device work."""
    bars: dict[int, Mapping[str, float]] = {}
    for rank in list(examination.steps)[:_MOST_RANKS]:
        bars[rank] = {share.id: share.ns for share in headline(examination.summary, rank).shares}
    longest = max((sum(parts.values()) for parts in bars.values()), default=0.0)
    if not longest:
        return ""
    scale = (WIDTH - _MARGIN - 90) / longest
    marks = []
    for row, (rank, parts) in enumerate(bars.items()):
        y, x = 8 + row * _ROW, _MARGIN
        marks.append(label(f"rank {rank}", _MARGIN - 10, y + 14, "end"))
        for part in _PARTS:
            ns = parts.get(part, 0.0)
            marks.append(rectangle(x, y, ns * scale, _BAR, part, f"{part}: {format_duration_ns(ns)}"))
            if ns * scale > 62:
                marks.append(label(format_duration_ns(ns), x + 5, y + 13, kind=f"on-{part}"))
            x += ns * scale
        marks.append(label(format_duration_ns(sum(parts.values())), x + 8, y + 14, kind="dim"))
    bottom = 8 + len(bars) * _ROW
    marks += _legend([part for part in _PARTS if any(parts.get(part) for parts in bars.values())], bottom + 6)
    return picture(marks, WIDTH, bottom + 30, "Where the typical step of each rank goes")


def _legend(parts: Sequence[str], y: float) -> list[str]:
    marks, x = [], _MARGIN
    for part in parts:
        marks.append(rectangle(x, y, 12, 12, part))
        marks.append(label(part, x + 17, y + 10, kind="dim"))
        x += 32 + 7.2 * len(part)
    return marks


def gains_plot(recommendations: Sequence[Recommendation], combined: Combined | None) -> str:
    """Returns a bar from the low to the high gain with a mark at the expected one; "" where nothing is quantified."""
    rows = [
        (f"{place}  {_cut(item.title)}", item.gain.time_ns, item.gain.method)
        for place, item in enumerate(recommendations, start=1)
        if item.gain.time_ns is not None
    ]
    if combined is not None and combined.gain.time_ns is not None:
        rows.append(("together", combined.gain.time_ns, combined.gain.method))
    highest = max((max(gain.high, gain.expected) for _, gain, _ in rows), default=0.0)
    if highest <= 0:
        return ""
    scale = (WIDTH - _TITLES - 240) / highest
    bottom = 10 + len(rows) * _ROW
    marks = _time_axis(highest, scale, bottom)
    for row, (name, gain, method) in enumerate(rows):
        y = 8 + row * _ROW
        low, high = max(gain.low, 0.0), max(gain.high, 0.0)
        kind = "rerun" if method is GainMethod.RERUN else "analytic"
        marks.append(label(name, _TITLES - 10, y + 14, "end"))
        marks.append(
            rectangle(_TITLES + low * scale, y + 2, max((high - low) * scale, 2), _BAR - 4, kind, range_text(gain))
        )
        middle = _TITLES + max(gain.expected, 0.0) * scale
        marks.append(rectangle(middle - 1.5, y - 1, 3, _BAR + 2, "expected"))
        marks.append(label(range_text(gain), _TITLES + high * scale + 10, y + 14, kind="dim"))
    return picture(marks, WIDTH, bottom + 26, "Predicted gain per step: low, expected, high")


def _time_axis(highest: float, scale: float, bottom: float) -> list[str]:
    marks = []
    for tick in nice_ticks(highest / NS_PER_MS):
        x = _TITLES + tick * NS_PER_MS * scale
        marks.append(line(x, 4, x, bottom, "grid"))
        marks.append(label(f"{tick:g} ms", x, bottom + 16, "middle", "dim"))
    return marks


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TITLE else text[: _LONGEST_TITLE - 1] + "…"


def memory_plot(examination: Examination) -> str:
    """Returns the memory of the fullest rank: over the steps of a run with a history, over the capture otherwise."""
    if examination.histories:
        rank = max(
            examination.histories, key=lambda each: int(examination.histories[each].peak_reserved_bytes.max(initial=0))
        )
        return _history_plot(examination.histories[rank], rank)
    ranks = [entry for entry in examination.summary.ranks if entry.memory and entry.memory.peak_allocated_bytes]
    if not ranks:
        return ""
    rank = max(ranks, key=lambda entry: entry.memory.peak_allocated_bytes or 0 if entry.memory else 0).rank
    curve = analysed_curve(examination.trace(rank))
    if curve is None or len(curve) < 2:
        return ""
    series = {"allocated": curve.allocated_bytes, "reserved": curve.reserved_bytes}
    known = {name: values for name, values in series.items() if int(values.max()) >= 0}
    span_ns = float(curve.time_ns[-1] - curve.time_ns[0]) or 1.0
    place = (curve.time_ns - curve.time_ns[0]) / span_ns
    return _curves(place, known, f"Memory of rank {rank} over the capture", format_duration_ns(span_ns))


def _history_plot(history: StepHistory, rank: int) -> str:
    if len(history) < 2:
        return ""
    place = np.linspace(0.0, 1.0, len(history))
    series = {
        "allocated": history.peak_allocated_bytes,
        "reserved": history.peak_reserved_bytes,
        "limit": np.full(len(history), history.limit_bytes, dtype=np.int64),
    }
    return _curves(place, series, f"Peak memory of rank {rank}, step by step", f"{len(history):,} steps")


def _curves(place: Float64Array, series: Mapping[str, Int64Array], title: str, extent: str) -> str:
    highest = max(float(values.max()) for values in series.values())
    width, bottom = WIDTH - _MARGIN - 90, _CURVE_HEIGHT
    marks = []
    for tick in nice_ticks(highest / GIB, 4):
        y = bottom - tick * GIB / highest * (bottom - 12)
        marks.append(line(_MARGIN, y, _MARGIN + width, y, "grid"))
        marks.append(label(f"{tick:g} GiB", _MARGIN - 8, y + 4, "end", "dim"))
    ends: list[tuple[float, str]] = []
    for name, values in series.items():
        points = _thinned(place, values)
        shown = [(_MARGIN + x * width, bottom - value / highest * (bottom - 12)) for x, value in points]
        marks.append(polyline(shown, f"curve-{name}"))
        ends.append((shown[-1][1], name))
    marks += _end_labels(ends, _MARGIN + width + 8)
    marks.append(label("0", _MARGIN, bottom + 18, kind="dim"))
    marks.append(label(extent, _MARGIN + width, bottom + 18, "end", "dim"))
    return picture(marks, WIDTH, bottom + 28, title)


def _end_labels(ends: Sequence[tuple[float, str]], x: float) -> list[str]:
    """Returns the names of curves at their right end, moved apart where they would cover each other."""
    marks, last = [], -100.0
    for y, name in sorted(ends):
        last = max(y + 4, last + 15)
        marks.append(label(name, x, last, kind=f"name-{name}"))
    return marks


def _thinned(place: Float64Array, values: Int64Array) -> list[tuple[float, float]]:
    """Returns the points of a curve; of a long one the lowest and highest of each stretch, so that peaks stay."""
    if len(values) <= 2 * _MOST_POINTS:
        return list(zip(place.tolist(), values.astype(np.float64).tolist(), strict=True))
    bounds = np.linspace(0, len(values), _MOST_POINTS + 1).astype(np.int64)[:-1]
    lowest, highest = np.minimum.reduceat(values, bounds), np.maximum.reduceat(values, bounds)
    points = []
    for start, low, high in zip(bounds.tolist(), lowest.tolist(), highest.tolist(), strict=True):
        points += [(float(place[start]), float(low)), (float(place[start]), float(high))]
    return points


def memory_text(examination: Examination) -> str:
    """Returns the peaks of every rank that has any, for the caption."""
    parts = []
    for entry in examination.summary.ranks:
        memory = entry.memory
        if memory is not None and memory.peak_allocated_bytes and memory.peak_reserved_bytes:
            parts.append(
                f"rank {entry.rank}: {format_bytes(memory.peak_allocated_bytes)} of "
                f"{format_bytes(memory.peak_reserved_bytes)} reserved"
            )
    return "; ".join(parts[:8])
