"""Counter events (phase C) as series: one per process, counter name and key of its arguments."""

import re
from collections.abc import Mapping

import numpy as np

from engine.core.errors import SourcePosition
from engine.formats.events.event_arguments import finite_number
from engine.formats.events.trace_events import ABSENT_TIME_NS, DecodedRow, RawEvents
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import StringTable
from engine.trace.tables import CounterSeries
from engine.trace.tracks import Track, TrackKind

_LABEL_AND_UNIT = re.compile(r"(.*)\(([^()]*)\)$")


def add_counters(
    builder: TraceBuilder,
    raw: RawEvents,
    texts: StringTable,
    parents: Mapping[int, int],
    position: SourcePosition,
    base_ns: int = 0,
) -> None:
    """Adds the counters of ``raw`` to ``builder``: a COUNTER track per (process, counter name), a series per key.

    A counter with one value is named by its event and takes the key for the unit (``AI Core Freq {"MHz": 1800}``);
    with several, each series is ``event name/key``. ``"value"`` is no unit; ``"Read(MB/s)"`` is a label with one.

    Args:
        builder: Receives tracks and series.
        raw: The events.
        texts: The strings of ``raw``'s ids.
        parents: String id of a process → its PROCESS track.
        position: Where to say samples without a number were found.
        base_ns: What the file's times count from.
    """
    samples: dict[tuple[int, str, str], list[tuple[int, float]]] = {}
    keys: dict[tuple[int, str], dict[str, None]] = {}
    groups: dict[tuple[int, int, int], tuple[int, str]] = {}
    unusable = 0
    # A Python loop over counter events: about 3 % of an Ascend trace.
    for item in raw.counters:
        time_ns = int(raw.start_ns[item.row])
        key = (int(raw.process[item.row]), int(raw.name[item.row]), int(raw.flow[item.row]))
        if key not in groups:
            groups[key] = (key[0], _counter_name(raw, texts, item))
        group = groups[key]
        numbers = {key: finite_number(value) for key, value in item.args.items()}
        values = {key: number for key, number in numbers.items() if number is not None}
        if time_ns == ABSENT_TIME_NS or not values:
            unusable += 1
            continue
        for word, value in values.items():
            keys.setdefault(group, {})[word] = None
            samples.setdefault((*group, word), []).append((time_ns + base_ns, value))
    message = "counter events have no time or no number and are left out"
    builder.diagnostics.add("unusable-counter", Severity.DATA_LOSS, message, count=unusable, position=position)
    for (process, name), names_of_values in keys.items():
        track = builder.add_track(
            Track(TrackKind.COUNTER, name, parent=parents.get(process, -1), process_id=texts.text(process))
        )
        for word in names_of_values:
            label, unit = _label_and_unit(word, alone=len(names_of_values) == 1)
            full_name = f"{name}/{label}" if label else name
            builder.counters.append(_series(track, full_name, unit, samples[process, name, word]))


def _series(track: int, name: str, unit: str, samples: list[tuple[int, float]]) -> CounterSeries:
    samples = sorted(samples, key=lambda sample: sample[0])
    return CounterSeries(
        track=track,
        name=name,
        unit=unit,
        time_ns=np.array([time_ns for time_ns, _ in samples], dtype=np.int64),
        value=np.array([value for _, value in samples], dtype=np.float64),
    )


def _counter_name(raw: RawEvents, texts: StringTable, item: DecodedRow) -> str:
    """Returns the event's name, with its id where it has one: counters of one name and other ids are others."""
    name = texts.text(int(raw.name[item.row]))
    number = int(raw.flow[item.row])
    return f"{name} [{raw.flow_ids[number]}]" if number >= 0 else name


def _label_and_unit(key: str, *, alone: bool) -> tuple[str, str]:
    if alone and key == "value":
        return "", ""
    match = _LABEL_AND_UNIT.fullmatch(key)
    if match:
        return ("" if alone else match[1]), match[2]
    return ("", key) if alone else (key, "")
