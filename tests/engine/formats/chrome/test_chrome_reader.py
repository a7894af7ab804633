import json
from pathlib import Path

import pytest

from engine.core.errors import EmptyTraceError
from engine.formats.chrome.reader import ChromeReader
from engine.trace import TrackKind
from engine.trace.tables import INSTANT, UNFINISHED
from tests.support.hostile_files import array, codes, event, read_chrome, slices, write


def read(directory: Path, *events, wrap=array):
    return read_chrome(write(directory, wrap(*events)))


def arrows(trace):
    return [
        (trace.name(source), trace.name(target), trace.strings.text(kind))
        for source, target, kind in zip(
            trace.flows.source.tolist(), trace.flows.target.tolist(), trace.flows.kind.tolist(), strict=True
        )
    ]


def begin(name, ts, **more):
    return event(name, ts=str(ts), dur=None, ph="B", **more)


def end(name, ts, **more):
    return event(name, ts=str(ts), dur=None, ph="E", **more)


def flow(phase, ts, *, tid="1", flow_id="7", cat="x", bind=None):
    more = {"bp": f'"{bind}"'} if bind else {}
    return event("flow", ts=str(ts), dur=None, ph=phase, tid=tid, id=flow_id, cat=f'"{cat}"', **more)


def test_b3_5_overlapping_begin_end_pairs_keep_their_own_ends(tmp_path):
    trace = read(tmp_path, begin("A", 0), begin("B", 3), end("A", 5), end("B", 7))
    assert slices(trace) == {"A": (0, 5000), "B": (3000, 4000)}
    assert trace.events.parent.tolist() == [-1, -1]


def test_perfetto_386_pairs_in_any_file_order_do_not_swap_ends(tmp_path):
    events = [end("Event3", 350), begin("Event2", 200), begin("Event3", 280), end("Event2", 300)]
    assert slices(read(tmp_path, *events)) == {"Event2": (0, 100_000), "Event3": (80_000, 70_000)}


def test_an_end_without_a_name_closes_the_innermost_slice(tmp_path):
    nameless = [event(ts=ts, dur=None, ph="E").replace('"name":"a",', "") for ts in ("4", "9")]
    trace = read(tmp_path, begin("outer", 0), begin("inner", 2), *nameless)
    assert slices(trace) == {"outer": (0, 9000), "inner": (2000, 2000)}
    assert trace.events.parent.tolist() == [-1, 0]


def test_an_unfinished_begin_reaches_to_the_end_and_an_orphan_end_is_counted(tmp_path):
    trace = read(tmp_path, begin("open", 0), event("x", ts="10", dur="5", tid="2"), end("never", 3))
    assert slices(trace)["open"] == (0, 15_000)
    assert trace.events.flags[0] == UNFINISHED
    assert codes(trace) == {"unfinished-slice": 1, "end-without-begin": 1}


def test_b3_6_two_overlapping_complete_slices_are_both_kept_as_they_are(tmp_path):
    trace = read(tmp_path, event("A", ts="3", dur="3.776"), event("B", ts="5", dur="2"))
    assert slices(trace) == {"A": (0, 3776), "B": (2000, 2000)}
    assert trace.events.depth.tolist() == [0, 1]
    assert trace.events.parent.tolist() == [-1, -1]


def test_b3_7_slices_with_an_identical_start_do_not_hide_one_another(tmp_path):
    trace = read(tmp_path, event("short", dur="2"), event("long", dur="9"), event("same", dur="9"))
    assert slices(trace) == {"short": (0, 2000), "long": (0, 9000), "same": (0, 9000)}
    assert sorted(trace.events.depth.tolist()) == [0, 1, 2]


def test_b3_7_overlapping_async_operations_stay_apart(tmp_path):
    def async_event(phase, name, ts, number):
        return event(name, ts=str(ts), dur=None, ph=phase, id=number, cat='"net"')

    trace = read(
        tmp_path,
        async_event("b", "get", 0, "1"),
        async_event("b", "put", 2, '"0x2"'),
        async_event("n", "mark", 3, "1"),
        async_event("e", "get", 5, "1"),
        async_event("e", "put", 9, '"0x2"'),
    )
    assert slices(trace) == {"get": (0, 5000), "put": (2000, 7000), "mark": (3000, 0)}
    names = {trace.name(row): trace.tracks[int(trace.events.track[row])].name for row in range(3)}
    assert names == {"get": "net 1", "mark": "net 1", "put": "net 0x2"}


def test_async_operations_beyond_a_thousand_share_a_track_and_lose_no_end(tmp_path):
    events = []
    for number in range(1200):
        events += [
            event(f"op{number}", ts=str(number), dur=None, ph="b", id=str(number), cat='"net"'),
            event(f"op{number}", ts=str(number + 5), dur=None, ph="e", id=str(number), cat='"net"'),
        ]
    path = tmp_path / "many.json"
    path.write_text(array(*events), encoding="utf-8")
    trace = read_chrome(path)
    assert len(trace.tracks) == 2
    assert set(trace.events.duration_ns.tolist()) == {5000}
    assert codes(trace) == {"shared-async-track": 1}


def test_b5_1_children_do_not_stick_out_of_their_parents(tmp_path):
    trace = read(tmp_path, event("parent", ts="1.001", dur="1.999"), event("child", ts="1.5", dur="1.5"))
    assert trace.events.parent.tolist() == [-1, 0]


def test_b5_2_a_gap_of_49_ns_at_an_epoch_timestamp_is_kept(tmp_path):
    trace = read(
        tmp_path,
        event("B", ts="1732107141551428.000", dur="1.030"),
        event("C", ts="1732107141551429.079", dur="1"),
    )
    assert trace.events.depth.tolist() == [0, 0]
    assert trace.events.start_ns.tolist() == [0, 1079]
    assert trace.metadata.epoch_ns == 1732107141551428000


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_b5_4_display_time_unit_is_a_hint_and_no_scale(tmp_path, unit):
    def wrap(*events):
        return f'{{"displayTimeUnit":"{unit}","traceEvents":{array(*events)}}}'

    assert slices(read(tmp_path, event(dur="7"), wrap=wrap)) == {"a": (0, 7000)}


def test_b5_5_times_that_go_backwards_by_one_are_sorted_not_refused(tmp_path):
    trace = read(tmp_path, event("a", ts="10"), event("b", ts="9", dur="1"), event("c", ts="5"))
    assert [trace.name(row) for row in range(3)] == ["c", "b", "a"]
    assert codes(trace) == {}


def test_b5_6_one_event_at_time_zero_does_not_make_the_rest_a_pixel(tmp_path):
    trace = read(tmp_path, event("stray", ts="0"), event("a", ts="1700000000000000"), event("b", ts="1700000000000009"))
    assert trace.time_range.end_ns == 11_000
    assert codes(trace) == {"timestamp-far-outside": 1}


def test_flows_bind_by_exact_start_and_one_start_may_have_several_ends(tmp_path):
    trace = read(
        tmp_path,
        event("launch", ts="1", dur="5"),
        event("inner", ts="2", dur="1"),
        event("k1", ts="8", dur="2", tid="2"),
        event("k2", ts="12", dur="2", tid="2"),
        flow("s", 1),
        flow("f", 8, tid="2", bind="e"),
        flow("f", 12, tid="2", bind="e"),
    )
    assert arrows(trace) == [("launch", "k1", "x"), ("launch", "k2", "x")]
    assert codes(trace) == {}


def test_a_flow_that_ends_before_it_starts_is_an_arrow_all_the_same(tmp_path):
    trace = read(
        tmp_path, event("host", ts="10"), event("device", ts="4", tid="2"), flow("s", 10), flow("f", 4, tid="2")
    )
    assert arrows(trace) == [("host", "device", "x")]


def test_flow_ids_of_other_categories_are_other_flows(tmp_path):
    trace = read(
        tmp_path,
        event("a", ts="1"),
        event("b", ts="5", tid="2"),
        event("c", ts="9", tid="3"),
        flow("s", 1, cat="one"),
        flow("f", 5, tid="2", cat="one", bind="e"),
        flow("f", 9, tid="3", cat="two", bind="e"),
    )
    assert arrows(trace) == [("a", "b", "one")]
    assert codes(trace) == {"flow-without-start": 1}


def test_flow_ends_inside_a_slice_belong_to_it_and_steps_make_a_chain(tmp_path):
    trace = read(
        tmp_path,
        event("a", ts="0", dur="10"),
        event("nested", ts="1", dur="2"),
        event("b", ts="20", dur="10", tid="2"),
        event("c", ts="40", dur="10", tid="3"),
        flow("s", 5),
        flow("t", 25, tid="2"),
        flow("f", 45, tid="3", bind="e"),
    )
    assert arrows(trace) == [("a", "b", "x"), ("b", "c", "x")]


def test_a_flow_end_without_bp_belongs_to_the_next_slice(tmp_path):
    trace = read(tmp_path, event("a", ts="0"), event("b", ts="20", tid="2"), flow("s", 0), flow("f", 15, tid="2"))
    assert arrows(trace) == [("a", "b", "x")]


def test_flow_ends_without_slices_or_partners_are_counted(tmp_path):
    trace = read(tmp_path, event("a", ts="0"), flow("s", 0), flow("s", 50, flow_id="8"), flow("f", 60, flow_id="9"))
    assert arrows(trace) == []
    assert codes(trace) == {"flow-without-end": 2, "flow-without-start": 1}


def test_every_flow_event_that_is_part_of_no_arrow_is_counted_once(tmp_path):
    no_slice = [flow("s", 50, flow_id="8"), flow("f", 2, flow_id="8"), flow("f", 60, flow_id="8")]
    no_id = '{"ph":"s","ts":0,"pid":1,"tid":1,"cat":"x"}'
    rows = [event("a", ts="0"), flow("s", 0), flow("f", 1, bind="e"), flow("f", 99), *no_slice, no_id]
    trace = read(tmp_path, *rows)
    assert len(trace.flows) == 1
    assert codes(trace) == {"flow-without-slice": 4, "flow-without-id": 1}


def test_a_reused_flow_id_joins_each_end_to_the_latest_start(tmp_path):
    trace = read(
        tmp_path,
        event("a", ts="0"),
        event("b", ts="10", tid="2"),
        event("c", ts="20"),
        event("d", ts="30", tid="2"),
        *(flow(phase, ts, tid=tid, bind="e") for phase, ts, tid in (("s", 0, "1"), ("f", 10, "2"))),
        *(flow(phase, ts, tid=tid, bind="e") for phase, ts, tid in (("s", 20, "1"), ("f", 30, "2"))),
    )
    assert arrows(trace) == [("a", "b", "x"), ("c", "d", "x")]


def test_counters_become_series_with_units_and_bad_samples_are_counted(tmp_path):
    def counter(name, ts, args):
        return event(name, ts=str(ts), dur=None, ph="C", args=args)

    trace = read(
        tmp_path,
        event("a", ts="0"),
        counter("HBM 0/Read", 2, '{"Read(MB/s)":5}'),
        counter("HBM 0/Read", 1, '{"Read(MB/s)":4.5}'),
        counter("queue", 1, '{"cats":1,"dogs":2}'),
        counter("queue", 2, '{"cats":"many"}'),
        counter("plain", 1, '{"value":-3}'),
    )
    series = {item.name: (item.unit, item.time_ns.tolist(), item.value.tolist()) for item in trace.counters}
    assert series == {
        "HBM 0/Read": ("MB/s", [1000, 2000], [4.5, 5.0]),
        "queue/cats": ("", [1000], [1.0]),
        "queue/dogs": ("", [1000], [2.0]),
        "plain": ("", [1000], [-3.0]),
    }
    assert codes(trace) == {"unusable-counter": 1}
    assert {trace.tracks[item.track].kind for item in trace.counters} == {TrackKind.COUNTER}


def test_names_labels_and_order_come_from_metadata_events(tmp_path):
    def metadata(name, args, pid="1", tid="0"):
        return event(name, ts=None, dur=None, ph="M", pid=pid, tid=tid, args=args)

    trace = read(
        tmp_path,
        metadata("process_name", '{"name":"Python"}'),
        metadata("thread_name", '{"name":"main"}', tid="1"),
        metadata("thread_sort_index", '{"sort_index":-3}', tid="1"),
        metadata("chrome_special", "{}"),
        event("a"),
        event("i", ph="i", dur=None, tid="2"),
    )
    assert [(track.kind, track.name, track.parent, track.sort_key) for track in trace.tracks] == [
        (TrackKind.PROCESS, "Python", -1, 0),
        (TrackKind.HOST_THREAD, "main", 0, -3),
        (TrackKind.HOST_THREAD, "Thread 2", 0, 0),
    ]
    assert trace.events.flags.tolist() == [0, INSTANT]
    assert codes(trace) == {"unused-metadata-event": 1}


def test_every_kind_of_event_that_is_not_used_is_counted(tmp_path):
    unused = [event(ph=phase) for phase in "PNODvVc(),zzD"]
    trace = read(tmp_path, event("a"), *unused, event(ph="XX"), '{"name":"x","ts":1}')
    counts = codes(trace)
    assert sum(counts.values()) == len(unused) + 2
    assert counts["unused-phase-D"] == 2
    assert counts["unused-phase"] == 2


def test_every_raw_event_is_drawn_or_counted_or_used(captures):
    path = captures / "ascend" / "old-cann7-timeline" / "trace_view.json"
    trace = read_chrome(path)
    phases = [item["ph"] for item in json.loads(path.read_bytes())]
    assert len(trace.events) == phases.count("X")
    assert len(trace.flows) == phases.count("f")
    assert set(phases) == {"X", "s", "f", "M"}
    assert codes(trace) == {}


def test_arguments_of_an_event_are_read_from_the_file(tmp_path):
    trace = read(tmp_path, event("b", ts="5", args='{"k":[1]}'), event("a", ts="1"))
    assert trace.arguments(0) == {}
    assert trace.arguments(1) == {"k": [1]}
    decoder = ChromeReader().argument_decoder(trace.source)
    assert decoder is not None
    assert decoder(int(trace.events.args_offset[1])) == {"k": [1]}


@pytest.mark.parametrize("content", ["[]", '{"traceEvents":[]}', '[{"ph":"M","name":"process_name"}]'])
def test_a_trace_without_a_single_event_says_so(tmp_path, content):
    with pytest.raises(EmptyTraceError, match="no event"):
        read_chrome(write(tmp_path, content))


def test_files_are_found_by_content_not_by_name(tmp_path):
    write(tmp_path, array(event()), "good.json")
    write(tmp_path, '{"nodes":[{"id":1}]}', "execution_trace.json")
    write(tmp_path, b"", "empty.json")
    write(tmp_path, b"\x1f\x8bjunk", "broken.json.gz")
    odd = write(tmp_path, array(event()), "named.anything")
    reader = ChromeReader()
    assert [capture.root.name for capture in reader.find(tmp_path)] == ["good.json"]
    assert [capture.root for capture in reader.find(odd)] == [odd]
    assert reader.find(tmp_path / "missing") == ()


def test_execution_traces_and_memory_timelines_are_no_traces(captures):
    reader = ChromeReader()
    for path in [*captures.glob("pytorch/gpt-cpu/**/*_et.json.gz"), *captures.glob("pytorch/**/*memory_timeline*")]:
        assert reader.find(path) == ()
    assert reader.find(captures / "ascend" / "fusion_result.json") == ()


def test_counters_that_are_not_finite_are_counted(tmp_path):
    samples = ("1.5", "NaN", "Infinity", "1e999", "1" * 400)
    rows = [event("c", str(t), dur=None, ph="C", args='{"value":' + value + "}") for t, value in enumerate(samples)]
    trace = read_chrome(write(tmp_path, array(event(), *rows)))
    assert [series.value.tolist() for series in trace.counters] == [[1.5]]
    assert codes(trace) == {"unusable-counter": 4}
