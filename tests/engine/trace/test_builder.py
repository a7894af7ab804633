import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace import Origin, Source, TraceBuilder, TraceMetadata, Track, TrackKind
from engine.trace.storage import load_trace, save_trace
from engine.trace.tables import EventTable, empty_columns
from tests.support.trace_text import text_from_trace, trace_from_text


def build(events, slack_ns=0):
    builder = TraceBuilder(slack_ns=slack_ns)
    track = builder.add_track(Track(TrackKind.HOST_THREAD, "host"))
    columns = np.array(events, dtype=np.int64).reshape(-1, 2)
    builder.add_events(start_ns=columns[:, 0], duration_ns=columns[:, 1], track=track, name=builder.strings.intern("x"))
    return builder.build(
        origin=Origin.MEASURED, source=Source("test", "test"), metadata=TraceMetadata(), clock_is_unix=False
    )


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 30)), min_size=1, max_size=40))
def test_parents_contain_their_children_and_rows_never_overlap(events):
    trace = build(events)
    table = trace.events
    assert sorted(zip(table.start_ns.tolist(), table.duration_ns.tolist(), strict=True)) == sorted(
        (start - min(start for start, _ in events), duration) for start, duration in events
    )
    for row, parent in enumerate(table.parent.tolist()):
        if parent >= 0:
            assert table.start_ns[parent] <= table.start_ns[row]
            assert table.end_ns[parent] >= table.end_ns[row]
            assert table.depth[parent] < table.depth[row]
    for depth in set(table.depth.tolist()):
        rows = np.flatnonzero((table.depth == depth) & (table.duration_ns > 0))
        assert np.all(table.start_ns[rows][1:] >= table.end_ns[rows][:-1])


def test_overlapping_slices_keep_their_times_on_rows_of_their_own():
    trace = trace_from_text("gpu 7 | AAAA.... |\ngpu 7 | ..BBBB.. |")
    assert text_from_trace(trace) == "gpu 7 | AAAA.. |\ngpu 7 | ..BBBB |"
    assert trace.events.parent.tolist() == [-1, -1]


def test_rounded_times_nest_within_the_files_own_resolution():
    assert build([(0, 100), (90, 11)]).events.parent.tolist() == [-1, -1]
    assert build([(0, 100), (90, 11)], slack_ns=1).events.parent.tolist() == [-1, 0]


def test_one_stray_zero_timestamp_does_not_stretch_the_view():
    epoch_ns = 1_700_000_000 * 10**9
    trace = build([(0, 5), (epoch_ns, 10), (epoch_ns + 50, 10)])
    assert trace.time_range.end_ns == 60
    assert trace.events.start_ns.tolist() == [-epoch_ns, 0, 50]
    assert [item.code for item in trace.diagnostics] == ["timestamp-far-outside"]


def test_columns_of_different_lengths_are_a_programming_error():
    columns = empty_columns(EventTable)
    columns["name"] = np.zeros(1, dtype=np.int32)
    with pytest.raises(ValueError, match="different lengths"):
        EventTable(**columns)


def test_stored_trace_reads_back_equal(tmp_path):
    trace = trace_from_text("host 1 | AAAA.. |\nhost 1 | .BB... |\ngpu 7 | ..CC.. |", rank=3)
    save_trace(trace, tmp_path / "stored")
    again = load_trace(tmp_path / "stored")
    assert text_from_trace(again) == text_from_trace(trace)
    assert (again.metadata, again.tracks, again.source, again.time_range) == (
        trace.metadata,
        trace.tracks,
        trace.source,
        trace.time_range,
    )
    assert list(again.strings) == list(trace.strings)
    assert not again.events.start_ns.flags.writeable


def test_an_incomplete_store_is_never_seen(tmp_path, monkeypatch):
    trace = trace_from_text("host 1 | AAAA |")
    monkeypatch.setattr("numpy.save", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_trace(trace, tmp_path / "stored")
    assert list(tmp_path.iterdir()) == []
