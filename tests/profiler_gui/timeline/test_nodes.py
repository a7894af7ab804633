"""Counters and memory curves as rows, with what their headers and tooltips say."""

import numpy as np
import pytest
from PySide6.QtCore import QPointF

from engine.trace import Origin, ParallelGroup, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from engine.trace.tables import UNFINISHED, CounterSeries, MemoryCurve
from profiler_gui.timeline.layout import RowKind
from profiler_gui.timeline.nodes import first_folds, group_labels, nodes_of
from profiler_gui.timeline.tips import value_text
from tests.support.mouse import hover, leave
from tests.support.timeline import Stage
from tests.support.trace_text import trace_from_text

GIB = 1 << 30


def trace() -> Trace:
    builder = TraceBuilder()
    process = builder.add_track(Track(TrackKind.PROCESS, "NPU"))
    stream = builder.add_track(Track(TrackKind.DEVICE_STREAM, "stream", parent=process))
    alone = builder.add_track(Track(TrackKind.COUNTER, "frequency", parent=process))
    shared = builder.add_track(Track(TrackKind.COUNTER, "HBM", parent=process))
    builder.add_track(Track(TrackKind.HOST_THREAD, "never used", parent=process))
    name = builder.strings.intern("<kernel & co>")
    starts_ns, durations_ns = np.array([0, 2_000]), np.array([1_000, 2_000])
    builder.add_events(
        start_ns=starts_ns, duration_ns=durations_ns, track=stream, name=name, flags=np.array([0, UNFINISHED])
    )
    times_ns = np.array([0, 1_000, 3_000])
    builder.counters += [
        CounterSeries(alone, "frequency", "MHz", times_ns, np.array([800.0, 1800.0, -200.0])),
        CounterSeries(shared, "read", "MB/s", times_ns, np.array([1.0, 2.0, 3.0])),
        CounterSeries(shared, "write", "MB/s", times_ns, np.array([3.0, 2.0, 1.0])),
    ]
    gone = np.full(3, -1, dtype=np.int64)
    size = np.array([GIB, 3 * GIB, 2 * GIB])
    builder.curves += [
        MemoryCurve("PTA", 0, times_ns, size, size + GIB, gone),
        MemoryCurve("GE", -1, times_ns, gone, gone, gone),
    ]
    return builder.build(origin=Origin.SIMULATED, source=Source("", ""), metadata=TraceMetadata(), clock_is_unix=False)


@pytest.fixture
def stage(show) -> Stage:
    return show(trace())


def test_counters_and_curves_become_rows_and_what_holds_nothing_does_not():
    nodes, counters = nodes_of(trace(), 0)
    shown = {node.label: (node.kind, node.counter) for node in nodes}
    assert shown["frequency"] == (RowKind.COUNTER, 0)
    assert shown["HBM"] == (RowKind.GROUP, -1)
    assert [shown[label][1] for label in ("read", "write")] == [1, 2]
    assert [counter.label for counter in counters] == ["frequency", "read", "write", "PTA, device 0"]
    assert [title for title, _ in counters[3].layers] == ["reserved", "allocated"]


def test_every_row_is_drawn_beside_its_name(stage):
    labels = [row.node.label for row in stage.view._state.layout.rows]
    assert labels == ["NPU", "stream", "frequency", "HBM", "read", "write", "Memory", "PTA, device 0"]
    stage.view.grab()


def tip_at(stage: Stage, label: str, time_ns: int) -> str:
    canvas = stage.view.canvas
    row = next(row for row in stage.view._state.layout.rows if row.node.label == label)
    hover(canvas, QPointF(canvas.places.scale.x_px(time_ns), row.top_px + 8))
    text = stage.view.pointer.tip()
    leave(canvas)
    return text


def test_tooltips_tell_values_under_the_pointer(stage):
    assert tip_at(stage, "frequency", 1_500) == "<b>frequency</b><br>frequency: 1,800 MHz"
    assert tip_at(stage, "PTA, device 0", 1_500) == (
        "<b>PTA, device 0</b><br>reserved: 4.00 GiB<br>allocated: 3.00 GiB".replace("4.00", "4").replace("3.00", "3")
    )


def test_tooltips_escape_names_and_tell_ends_that_were_not_recorded(stage):
    assert tip_at(stage, "stream", 500).startswith("<b>&lt;kernel &amp; co&gt;</b><br>1 µs, from 0 ns")
    assert "its end was not recorded" in tip_at(stage, "stream", 3_000)
    assert tip_at(stage, "stream", 1_700) == ""


def test_values_are_written_with_their_unit():
    assert value_text(2.0, "MB/s") == "2 MB/s"
    assert value_text(0.125, "") == "0.125"
    assert value_text(1.5 * GIB, "B") == "1.5 GiB"


def communicating_trace() -> Trace:
    builder = TraceBuilder()
    process = builder.add_track(Track(TrackKind.PROCESS, "Communication"))
    hashed = "5862276093215481612"
    for name, group in (("Group 5862276093215481612", hashed), ("Group x", "x")):
        track = builder.add_track(Track(TrackKind.COMMUNICATION_GROUP, name, parent=process, group=group))
        at = np.array([0])
        builder.add_events(start_ns=at, duration_ns=at + 9, track=track, name=builder.strings.intern("hcom_allReduce_"))
    metadata = TraceMetadata(parallel_groups=(ParallelGroup(hashed, "dp_cp", (0, 2)),))
    return builder.build(origin=Origin.SIMULATED, source=Source("", ""), metadata=metadata, clock_is_unix=False)


def test_communication_groups_are_called_by_the_frameworks_word():
    trace = communicating_trace()
    nodes, _ = nodes_of(trace, 0, group_labels(trace, ()))
    assert [node.label for node in nodes] == ["Communication", "dp_cp · …1612", "Group x"]


def test_the_deepest_host_threads_are_folded_at_first_until_the_device_is_in_view():
    def threads(*depths: int) -> str:
        lines = [
            f"host {thread} | {'A' * (12 - lane)} |" for thread, depth in enumerate(depths) for lane in range(depth)
        ]
        return "\n".join(lines)

    for picture, folded in (
        (threads(10), []),
        (threads(10) + "\ngpu 7 | BB |", []),
        (threads(10, 3) + "\ngpu 7 | BB |", [(0, 0)]),
        (threads(9, 8, 7, 1) + "\ngpu 7 | BB |", [(0, 0), (0, 1)]),
    ):
        trace = trace_from_text(picture)
        assert sorted(first_folds(trace, nodes_of(trace, 0)[0])) == folded
