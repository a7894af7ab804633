import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ExportError, OperationCancelled, TraceReadError
from engine.core.progress import CancelToken
from engine.formats import open_job
from engine.formats.chrome.writer import write_chrome
from engine.formats.readers import built_in_readers
from engine.trace import Origin, Source, TraceBuilder, TraceMetadata, Track, TrackKind
from engine.trace.tables import INSTANT, CounterSeries
from tests.support.captures import captures_directory
from tests.support.hostile_files import codes, read_chrome, read_kineto
from tests.support.trace_text import trace_from_text

NAMES = st.text(st.characters(codec="utf-8") | st.sampled_from('\ud800"\\\x00\n层'), min_size=1, max_size=8)
TRACK_NAMES = ("main", "Stream 2", "Plane 0")


@st.composite
def traces(draw):
    """Traces of one process; starts are distinct per track, so that every arrow has one place to land."""
    builder = TraceBuilder()
    process = builder.add_track(Track(TrackKind.PROCESS, draw(NAMES), process_id=draw(st.sampled_from(["", "7", "x"]))))
    tracks = [builder.add_track(Track(TrackKind.HOST_THREAD, name, process)) for name in TRACK_NAMES]
    epoch_ns = draw(st.sampled_from([10**18, 1736412474714258990, 0]))
    rows = draw(
        st.lists(
            st.tuples(st.sampled_from(tracks), st.integers(0, 400), st.integers(0, 200), NAMES, NAMES, st.booleans()),
            min_size=1,
            max_size=25,
            unique_by=lambda row: row[:2],
        )
    )
    rows[0] = (tracks[0], 0, *rows[0][2:])
    rows = [row for index, row in enumerate(rows) if row[:2] != rows[0][:2] or index == 0]
    builder.add_events(
        start_ns=np.array([row[1] for row in rows]) + epoch_ns,
        duration_ns=np.array([0 if row[5] else row[2] for row in rows]),
        track=np.array([row[0] for row in rows], dtype=np.int32),
        name=builder.strings.intern_all([row[3] for row in rows]),
        category=builder.strings.intern_all([row[4] for row in rows]),
        correlation=np.array([row[2] - 1 for row in rows]),
        flags=np.array([INSTANT if row[5] else 0 for row in rows], dtype=np.uint8),
    )
    lasting = [index for index, row in enumerate(rows) if not row[5]]
    if lasting:
        ends = draw(st.lists(st.tuples(st.sampled_from(lasting), st.sampled_from(lasting)), max_size=8))
        builder.add_flows(
            np.array([source for source, _ in ends], dtype=np.int64),
            np.array([target for _, target in ends], dtype=np.int64),
            draw(st.sampled_from(["async_npu", "ac2g"])),
        )
    counter = builder.add_track(Track(TrackKind.COUNTER, "HBM", process))
    values = draw(
        st.lists(st.tuples(st.integers(0, 500), st.floats(allow_nan=False, allow_infinity=False)), min_size=1)
    )
    values.sort(key=lambda sample: sample[0])
    builder.counters.append(
        CounterSeries(
            counter,
            "HBM 0/Read",
            draw(st.sampled_from(["", "MB/s", "KB"])),
            np.array([time_ns for time_ns, _ in values], dtype=np.int64) + epoch_ns,
            np.array([value for _, value in values]),
        )
    )
    return builder.build(
        origin=Origin.MEASURED, source=Source("x", "test"), metadata=TraceMetadata(), clock_is_unix=epoch_ns > 0
    )


def described(trace, row):
    events = trace.events
    return (
        trace.tracks[int(events.track[row])].name,
        int(events.start_ns[row]),
        int(events.duration_ns[row]),
        trace.name(row),
        trace.category(row),
        int(events.correlation[row]),
        int(events.flags[row]),
    )


def contents(trace):
    """Everything a written trace must give back, independent of the order of rows."""
    flows = trace.flows
    return {
        "events": Counter(described(trace, row) for row in range(len(trace.events))),
        "flows": Counter(
            (described(trace, source), described(trace, target), trace.strings.text(kind))
            for source, target, kind in zip(
                flows.source.tolist(), flows.target.tolist(), flows.kind.tolist(), strict=True
            )
        ),
        "counters": [(item.name, item.unit, item.time_ns.tolist(), item.value.tolist()) for item in trace.counters],
        "epoch": trace.metadata.epoch_ns,
        "process": [track.name for track in trace.tracks if track.kind is TrackKind.PROCESS],
    }


@given(traces())
def test_a_written_trace_reads_back_the_same(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("written") / "trace.json"
    write_chrome(trace, path)
    again = read_chrome(path)
    assert contents(again) == contents(trace)
    assert codes(again) == {}


def test_the_file_has_what_viewers_ask_for(tmp_path):
    path = tmp_path / "trace.json"
    write_chrome(trace_from_text("gpu 7 | AAAA..BB |\nhost 1 | LL.L... |"), path)
    content = json.loads(path.read_bytes())
    assert content["displayTimeUnit"] == "ns"
    events = content["traceEvents"]
    assert {item["ph"] for item in events} == {"M", "X"}
    assert all({"ph", "name", "pid", "tid"} <= item.keys() for item in events)
    assert all(isinstance(item["pid"], int) and isinstance(item["tid"], int) for item in events)
    assert {item["name"] for item in events if item["ph"] == "M"} == {
        "process_name",
        "process_sort_index",
        "thread_name",
        "thread_sort_index",
    }
    text = path.read_text(encoding="utf-8")
    assert '"dur":4.000,"name":"A","cat":"kernel"' in text
    assert '"ts":1.000' in text


def test_slices_that_overlap_without_nesting_are_spread_over_threads_of_one_name(tmp_path):
    path = tmp_path / "trace.json"
    write_chrome(trace_from_text("gpu 7 | AAAA.... |\ngpu 7 | ..BBBB.. |\ngpu 7 | .......C |"), path)
    slices = [item for item in json.loads(path.read_bytes())["traceEvents"] if item["ph"] == "X"]
    threads = {item["name"]: item["tid"] for item in slices}
    assert threads["A"] != threads["B"]
    assert threads["A"] == threads["C"]
    again = read_chrome(path)
    assert [track.name for track in again.tracks if track.kind is not TrackKind.PROCESS] == ["gpu 7", "gpu 7"]


def test_times_before_the_trace_start_are_written_with_their_sign(tmp_path):
    builder = TraceBuilder()
    track = builder.add_track(Track(TrackKind.HOST_THREAD, "main"))
    epoch_ns = 1_700_000_000 * 10**9
    builder.add_events(
        start_ns=np.array([5, epoch_ns, epoch_ns + 50]),
        duration_ns=np.array([1, 10, 10]),
        track=track,
        name=builder.strings.intern_all(["stray", "a", "b"]),
    )
    trace = builder.build(
        origin=Origin.MEASURED, source=Source("x", "test"), metadata=TraceMetadata(), clock_is_unix=True
    )
    path = tmp_path / "trace.json"
    write_chrome(trace, path)
    again = read_chrome(path)
    assert again.events.start_ns.tolist() == [5 - epoch_ns, 0, 50]


def test_a_cancelled_or_failed_writing_leaves_nothing_behind(tmp_path):
    trace = trace_from_text("gpu 7 | AAAA..BB |")
    path = tmp_path / "trace.json"
    with pytest.raises(OperationCancelled):
        write_chrome(trace, path, cancel=CancelToken(lambda: True))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ExportError, match="missing"):
        write_chrome(trace, tmp_path / "missing" / "trace.json")


def test_a_kineto_capture_survives_writing_with_its_arguments(tmp_path, captures):
    trace = read_kineto(captures / "pytorch" / "nccl_data.json.gz")
    path = tmp_path / "trace.json"
    write_chrome(trace, path)
    again = read_chrome(path)
    assert sum(contents(again)["events"].values()) == len(trace.events)
    before, after = contents(trace)["events"], contents(again)["events"]
    assert before == after
    assert len(again.flows) == len(trace.flows)
    kernel = int(trace.collectives.event[0])
    twin = next(row for row in range(len(again.events)) if described(again, row) == described(trace, kernel))
    assert again.arguments(twin)["Process Group Name"] == "0"


CAPTURES = captures_directory() or Path()
READABLE = [
    *(path for path in sorted(CAPTURES.glob("pytorch/**/*.json*")) if "_et." not in path.name),
    *sorted(CAPTURES.glob("ascend/**/*_ascend_pt")),
    *CAPTURES.glob("ascend/old-cann7-timeline/trace_view.json"),
]


def exact_contents(trace):
    """Returns events, arrows and counters by what they are, with times from the first event."""
    events, texts = trace.events, trace.strings.texts
    start_ns = (events.start_ns - events.start_ns.min()).tolist()
    rows = list(zip(texts(events.name), texts(events.category), start_ns, events.duration_ns.tolist(), strict=True))
    arrows = zip(trace.flows.source.tolist(), trace.flows.target.tolist(), strict=True)
    counters = Counter((tuple(series.value.tolist()), series.unit) for series in trace.counters)
    return Counter(rows), Counter((rows[source], rows[target]) for source, target in arrows), counters


@pytest.mark.slow
@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_every_capture_converted_reads_back_equal(path, tmp_path):
    try:
        job = open_job([path], built_in_readers())
    except TraceReadError:
        assert "910b-cnn-ddp2-db" in path.parts or "memory_timeline" in path.name  # nothing this reads
        return
    (entry,) = job.ranks
    write_chrome(entry.trace, tmp_path / "converted.json")
    (again,) = open_job([tmp_path / "converted.json"], built_in_readers()).ranks
    assert exact_contents(again.trace) == exact_contents(entry.trace)
    assert again.trace.diagnostics == ()
