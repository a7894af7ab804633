"""Texts shown beside the pointer."""

import html

from engine.core.number_format import format_bytes, format_duration_ns
from engine.trace import Trace
from engine.trace.tables import INSTANT, UNFINISHED
from profiler_gui.timeline.layout import RowKind
from profiler_gui.timeline.places import Hit
from profiler_gui.timeline.state import TimelineState
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

_MAX_NAME = 300


def tip_of(trace: Trace, state: TimelineState, hit: Hit, time_ns: int) -> str:
    """Returns what a tooltip says of what is under the pointer, as rich text; "" for nothing."""
    if hit.event >= 0:
        return event_tip(trace, hit)
    if hit.row.node.kind is RowKind.COUNTER:
        return counter_tip(state, hit, time_ns)
    return ""


def event_tip(trace: Trace, hit: Hit) -> str:
    """Returns name, duration, start, category and track of an event."""
    events = trace.events
    flags = int(events.flags[hit.event])
    name = trace.name(hit.event)
    shown = name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…"
    duration = tr("a moment") if flags & int(INSTANT) else format_duration_ns(int(events.duration_ns[hit.event]))
    if flags & int(UNFINISHED):
        duration = tr("{duration} (its end was not recorded)", duration=duration)
    start = time_text(int(events.start_ns[hit.event]))
    lines = [tr("{duration}, from {start}", duration=duration, start=start)]
    category = trace.category(hit.event)
    if category:
        lines.append(tr("Category: {category}", category=category))
    lines.append(tr("Track: {track}", track=hit.row.node.label))
    return f"<b>{html.escape(shown)}</b><br>" + "<br>".join(html.escape(line) for line in lines)


def counter_tip(state: TimelineState, hit: Hit, time_ns: int) -> str:
    """Returns the values of a counter under the pointer."""
    counter = state.counters[hit.row.node.counter]
    lines = []
    for title, steps in counter.layers:
        value = steps.value_at(time_ns)
        if value is not None:
            lines.append(f"{title}: {value_text(value, counter.unit)}")
    return f"<b>{html.escape(counter.label)}</b><br>" + "<br>".join(html.escape(line) for line in lines)


def value_text(value: float, unit: str) -> str:
    """Returns a counter's value with its unit; bytes in binary units."""
    if unit == "B":
        return format_bytes(value)
    return f"{value:,.6g} {unit}".rstrip()
