"""Counter events of trace_view.json as series."""

import re
from collections.abc import Sequence

import numpy as np

from engine.core.errors import SourcePosition
from engine.formats.ascend.lanes import Lanes
from engine.formats.events.event_arguments import finite_number
from engine.formats.events.trace_events import ABSENT_TIME_NS, RawEvents
from engine.formats.reader import ReadContext
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import StringTable
from engine.trace.tables import CounterSeries
from engine.trace.tracks import Track, TrackKind

_UNIT = re.compile(r"^(?P<title>.*)\((?P<unit>[^()]+)\)$")
_PLAIN_UNITS = ("MHz", "KB", "MB", "GB", "B", "KB/s", "MB/s", "GB/s", "%")
_CHECK_EVERY = 4096
_SERIES_KEYS = ("acc_id",)
"""Arguments that tell series of one name apart instead of being values."""


def add_counters(
    builder: TraceBuilder,
    texts: StringTable,
    raw: RawEvents,
    lanes: Lanes,
    position: SourcePosition,
    context: ReadContext,
) -> None:
    """Adds one COUNTER track per counter name under its layer, and one series per value on it.

    A Python loop: counters are decoded one by one and make a few percent of the events.
    """
    samples: dict[tuple[int, str, str, str], tuple[list[int], list[float]]] = {}
    for index, event in enumerate(raw.counters):
        if index % _CHECK_EVERY == 0:
            context.cancel.check()
        time_ns = int(raw.start_ns[event.row])
        values = [(key, finite_number(value)) for key, value in event.args.items() if key not in _SERIES_KEYS]
        numbers = [(key, value) for key, value in values if value is not None]
        if time_ns == ABSENT_TIME_NS:
            numbers = []
        builder.diagnostics.add(
            "unusable-counter",
            Severity.DATA_LOSS,
            "counter events hold no number or no time",
            count=int(not numbers),
            position=position,
        )
        owner = str(event.args.get("acc_id", ""))
        for key, number in numbers:
            series = (int(raw.process[event.row]), texts.text(int(raw.name[event.row])), key, owner)
            times, column = samples.setdefault(series, ([], []))
            times.append(time_ns)
            column.append(number)
    tracks: dict[tuple[int, str], int] = {}
    for (process, name, key, owner), (times, column) in samples.items():
        if (process, name) not in tracks:
            tracks[process, name] = _add_track(builder, lanes, process, name, len(tracks))
        builder.counters.append(_series(builder, tracks[process, name], (name, key, owner), times, column))


def _add_track(builder: TraceBuilder, lanes: Lanes, process: int, name: str, order: int) -> int:
    parent = lanes.parents[process]
    header = builder.tracks[parent]
    return builder.add_track(
        Track(
            TrackKind.COUNTER,
            name,
            parent=parent,
            sort_key=order,
            device=header.device,
            process_id=header.process_id,
        )
    )


def _series(
    builder: TraceBuilder, track: int, words: tuple[str, str, str], times: Sequence[int], column: Sequence[float]
) -> CounterSeries:
    name, key, owner = words
    match = _UNIT.match(key)
    unit = match["unit"] if match else key if key in _PLAIN_UNITS else ""
    order = np.argsort(np.array(times, dtype=np.int64), kind="stable")
    value = np.array(column, dtype=np.float64)[order]
    if unit == "%" and "Hit Rate" in name and value.max() <= 1.0:
        # The key says percent, the file holds a fraction (the profiler's own database has percent).
        value = value * 100.0
        builder.diagnostics.add(
            "fraction-called-percent", Severity.NOTICE, "hit rates stand in the file as 0…1 and are shown as percent"
        )
    title = match["title"] if match else ""
    known = title in name or key in (name, "value", *_PLAIN_UNITS)
    full_name = name if known else f"{name} {title or key}"
    return CounterSeries(
        track=track,
        name=f"{full_name} (acc {owner})" if owner else full_name,
        unit=unit,
        time_ns=np.array(times, dtype=np.int64)[order],
        value=value,
    )
