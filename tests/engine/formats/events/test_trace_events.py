import gzip
import json
import random
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import OperationCancelled, TraceReadError, TraceSyntaxError
from engine.core.progress import CancelToken
from engine.formats.events import event_columns
from engine.formats.events.json_scanning import ODD_NUMBER, parse_us, skip_value
from engine.formats.events.trace_events import ABSENT_TIME_NS, EventDecoder, decode_event, read_events
from engine.formats.reader import ReadContext
from engine.trace.diagnostics import DiagnosticLog
from engine.trace.strings import StringInterner
from tests.support.hostile_files import array, event, raw_events, write, write_gzip


def parsed(text):
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    return int(parse_us(data, 0, len(data)))


@given(st.decimals(min_value=-(10**14), max_value=10**15, allow_nan=False, allow_infinity=False, places=9))
def test_decimal_microseconds_become_exact_ns(value_us):
    text = format(value_us, "f")
    assert parsed(text) == int((Decimal(text) * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))


@pytest.mark.parametrize("text", ["1e3", "NaN", "Infinity", "", ".5", "1.2.3", "99999999999999999999", "--1"])
def test_numbers_that_are_no_plain_decimals_are_left_to_the_slow_path(text):
    assert parsed(text) == ODD_NUMBER


def test_b5_3_an_epoch_timestamp_is_exact_to_the_ns(tmp_path):
    texts = ["1672924880617000", '"1732107141551429.079"', "1736412474714258.990", "0", "1.6729248806170e15", '"5"']
    file = raw_events(tmp_path, array(*(event(ts=text) for text in texts)))
    assert file.raw.start_ns.tolist() == [
        1672924880617000000,
        1732107141551429079,
        1736412474714258990,
        0,
        1672924880617000000,
        5000,
    ]


def test_durations_are_rounded_not_truncated_and_negative_ones_counted(tmp_path):
    texts = ["828.33653125", "12.77012757357446", "0.0006", "3", "-0.001", "-5", None, "null"]
    file = raw_events(tmp_path, array(*(event(dur=text) for text in texts)))
    assert file.raw.duration_ns.tolist() == [828337, 12770, 1, 3000, 0, 0, -1, -1]
    assert file.counts == {"negative-duration": 2}


def test_kineto_105_literal_inf_and_nan_are_read_and_counted(tmp_path):
    file = raw_events(tmp_path, array(event(dur="inf"), event(dur="NaN"), event(ts="Infinity"), event(ts="-nan")))
    assert file.raw.duration_ns.tolist() == [0, 0, 2000, 2000]
    assert file.raw.start_ns.tolist() == [1000, 1000, ABSENT_TIME_NS, ABSENT_TIME_NS]
    assert file.counts == {"unusable-duration": 2, "unusable-timestamp": 2}


def test_an_event_without_a_time_is_counted(tmp_path):
    assert raw_events(tmp_path, array(event(ts=None), event(ph="M", ts=None))).counts == {"missing-timestamp": 1}


def test_b5_7_flow_ids_beyond_64_bits_and_strings_stay_what_they_are(tmp_path):
    ids = ["1736412474725417508", '"40004631069296951295"', "40004631069296951294", '"abc"', "1736412474725417509"]
    file = raw_events(tmp_path, array(*(event(ph="s", id=text) for text in [*ids, ids[0]])))
    assert list(file.raw.flow_ids) == [text.strip('"') for text in ids]
    assert file.raw.flow.tolist() == [0, 1, 2, 3, 4, 0]


def test_process_and_thread_ids_may_be_numbers_strings_negative_or_beyond_32_bits(tmp_path):
    ids = ["4376751100", '"Spans"', "-549452224", '"stream 7"', '""', "7", '"7"', None, "null"]
    file = raw_events(tmp_path, array(*(event(tid=text, pid=text) for text in ids)))
    texts = ["4376751100", "Spans", "-549452224", "stream 7", "", "7", "7", "", ""]
    assert file.texts.texts(file.raw.thread) == texts
    assert file.texts.texts(file.raw.process) == texts
    assert file.raw.thread[5] == file.raw.thread[6]
    assert file.raw.thread[4] >= 0
    assert file.raw.thread[7] == file.raw.thread[8] == -1


def test_names_with_escapes_unicode_and_surrogates_are_decoded(tmp_path):
    written = [r"a\"b", r"\u0041\n", "层", r"\ud83d\ude00", r"\ud800", r"C:\\x", "", r"tab\tbed"]
    file = raw_events(tmp_path, array(*(event(name=text) for text in [*written, "A\\n"])))
    assert file.names == ['a"b', "A\n", "层", "😀", "\ud800", "C:\\x", "", "tab\tbed", "A\n"]
    assert file.raw.name[1] == file.raw.name[8]


def test_b6_2_a_control_character_in_a_name_does_no_harm(tmp_path):
    file = raw_events(tmp_path, array(event(name="a\x01b"), event(name="c\nd")))
    assert file.names == ["a\x01b", "c\nd"]
    assert file.counts == {}


def test_viztracer_106_bytes_that_are_no_utf8_are_replaced_and_counted(tmp_path):
    file = raw_events(tmp_path, array(event(name="a@b"), event(name="c")).encode().replace(b"@", b"\xff\xfe"))
    assert file.names == ["a��b", "c"]
    assert file.counts == {"invalid-utf8": 1}


def test_trace_viewer_145_an_array_without_its_bracket_is_read(tmp_path):
    file = raw_events(tmp_path, array(event("a"), event("b"))[:-1])
    assert file.names == ["a", "b"]
    assert file.counts == {"truncated-array": 1}


def test_ascend_pytorch_27_a_comma_before_the_bracket_is_read(tmp_path):
    file = raw_events(tmp_path, "[" + event("a") + ",]")
    assert file.names == ["a"]
    assert file.counts == {"trailing-comma": 1}


def test_a_file_cut_at_any_byte_gives_its_complete_events(tmp_path):
    whole = array(*(event(name, args='{"s":"}],{\\"x\\""}') for name in "abc"))
    ends = [whole.index(f'"{name}"') for name in "abc"]
    closing = [whole.index("}}", end) + 2 for end in ends]
    for cut in range(1, len(whole)):
        path = write(tmp_path, whole[:cut])
        log, strings = DiagnosticLog(), StringInterner()
        raw = read_events(path, strings, log, ReadContext())
        complete = sum(end <= cut for end in closing)
        assert len(raw) == complete, cut
        (problem,) = log.diagnostics()
        assert problem.code == "truncated-array"
        assert problem.position.byte is not None
        assert problem.position.byte <= cut


def test_a_kineto_object_cut_inside_its_events_keeps_the_metadata_before(tmp_path):
    file = raw_events(tmp_path, '{"schemaVersion":1,"traceEvents":[' + event("a") + "," + event("b")[:20])
    assert file.names == ["a"]
    assert file.raw.top_level == {"schemaVersion": 1}
    assert file.counts == {"truncated-array": 1}


def test_metadata_after_the_events_is_read(tmp_path):
    file = raw_events(tmp_path, '{"a":1,"traceEvents":[' + event() + '],"b":{"c":[1,2]},"d":"x"}')
    assert file.raw.top_level == {"a": 1, "b": {"c": [1, 2]}, "d": "x"}
    assert file.counts == {}


def test_metadata_cut_short_is_counted(tmp_path):
    file = raw_events(tmp_path, '{"traceEvents":[' + event() + '],"b":{"c":[1,')
    assert len(file.raw) == 1
    assert file.counts == {"truncated-metadata": 1}


def test_an_unescaped_quote_in_a_name_costs_one_event_not_the_file(tmp_path):
    broken = event("b").replace('"b"', '"b "quoted" name"')
    file = raw_events(tmp_path, array(event("a"), broken, event("c"), event("d")))
    assert file.names == ["a", "c", "d"]
    assert file.counts == {"malformed-event": 1}


def test_an_odd_number_of_quotes_in_an_argument_costs_one_event_not_the_file(tmp_path):
    broken = event("b", args='{"Call stack":"f("x) in y", "n": 1}')
    file = raw_events(tmp_path, array(event("a"), broken, event("c", args='{"k":"v"}'), event("d")))
    assert file.names == ["a", "c", "d"]
    assert file.counts == {"malformed-event": 1}


def test_a_broken_last_event_does_not_hide_the_metadata_behind_it(tmp_path):
    file = raw_events(tmp_path, '{"traceEvents":[' + event("a") + ',{"ph":"X""},{"b":2}],"end":1}')
    assert file.names == ["a"]
    assert file.counts["malformed-event"] == 1
    assert file.raw.top_level == {"end": 1}


def test_the_last_of_duplicate_keys_wins_and_unknown_keys_are_passed_over(tmp_path):
    file = raw_events(
        tmp_path, '[{"ph":"B","ph":"X","name":"a","name":"b","ts":1,"dur":1,"zz":[{"ph":"C"}],"cname":"x"}]'
    )
    assert file.names == ["b"]
    assert chr(file.raw.phase[0]) == "X"


def test_elements_that_are_no_objects_are_counted(tmp_path):
    file = raw_events(tmp_path, "[" + event("a") + ',1,null,"x",[1,{"ph":"X"}],' + event("b") + "]")
    assert file.names == ["a", "b"]
    assert file.counts == {"foreign-element": 4}


def test_speedscope_386_extreme_nesting_is_passed_over_without_recursion(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    path = tmp_path / "deep.json"
    path.write_text(array(event("a", args=f'{{"x":{deep}}}'), event("b")), encoding="utf-8")
    strings = StringInterner()
    raw = read_events(path, strings, DiagnosticLog(), ReadContext())
    assert strings.table().texts(raw.name) == ["a", "b"]
    assert decode_event(path, int(raw.offset[0])) == {}
    assert decode_event(path, int(raw.offset[1]))["name"] == "b"


def test_a_deeply_nested_metadata_event_is_counted_and_the_rest_read(tmp_path):
    deep = "[" * 20_000 + "]" * 20_000
    path = tmp_path / "deep.json"
    path.write_text(array(event("a", ph="M", args=f'{{"x":{deep}}}'), event("b")), encoding="utf-8")
    log = DiagnosticLog()
    assert len(read_events(path, StringInterner(), log, ReadContext())) == 2
    assert [item.code for item in log.diagnostics()] == ["unreadable-arguments"]


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02", b"hello", b'{"nodes":[]}', b"{", b'"text"', b"12", b'{"traceEvents":{}}']
)
def test_what_is_no_trace_gives_one_clear_error(tmp_path, content):
    with pytest.raises(TraceSyntaxError, match=r"fault\.json"):
        raw_events(tmp_path, content)


def test_a_byte_order_mark_and_blanks_before_the_events_are_passed_over(tmp_path):
    assert raw_events(tmp_path, b"\xef\xbb\xbf\r\n\t " + array(event("a")).encode()).names == ["a"]


def test_gzip_is_told_by_its_first_bytes_not_by_its_name(tmp_path):
    packed = gzip.compress(array(event("a")).encode())
    assert raw_events(tmp_path, packed, "plain.json").names == ["a"]
    assert raw_events(tmp_path, array(event("b")), "liar.json.gz").names == ["b"]


def test_a_truncated_gzip_gives_what_could_be_inflated(tmp_path):
    rng = random.Random(1)  # noqa: S311 - only has to be incompressible
    events = [event(f"{rng.getrandbits(64):x}") for _ in range(20)]
    packed = gzip.compress(array(*events).encode())
    file = raw_events(tmp_path, packed[: len(packed) * 2 // 3])
    assert 0 < len(file.raw) < 20
    assert set(file.counts) == {"truncated-gzip", "truncated-array"}


def test_gzip_members_one_after_another_are_one_file(tmp_path):
    halves = array(event("a"), event("b")).encode()
    data = gzip.compress(halves[:30]) + gzip.compress(halves[30:])
    assert raw_events(tmp_path, data, "members.json.gz").names == ["a", "b"]


def test_a_gzip_bomb_is_refused_before_it_fills_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.formats.events.trace_input.FREE_EXPANSION_BYTES", 1 << 16)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * (8 << 20)))
    with pytest.raises(TraceReadError, match="expands to more than"):
        read_events(path, StringInterner(), DiagnosticLog(), ReadContext())


def test_a_file_that_only_claims_to_be_gzip_gives_one_clear_error(tmp_path):
    with pytest.raises(TraceReadError, match="gzip"):
        raw_events(tmp_path, b"\x1f\x8b" + b"\xff" * 40)


def test_arguments_are_decoded_on_demand_plain_and_gzip(tmp_path):
    content = array(event("a"), event("b", args='{"x":NaN,"s":"\x01","deep":{"y":[1,2]}}'))
    for path in (write(tmp_path, content), write_gzip(tmp_path, content)):
        raw = read_events(path, StringInterner(), DiagnosticLog(), ReadContext())
        decoder = EventDecoder(path)
        assert decoder(int(raw.offset[0])) == {}
        args = decoder(int(raw.offset[1]))
        assert args["s"] == "\x01"
        assert args["deep"] == {"y": [1, 2]}
        assert decode_event(path, int(raw.offset[1]))["name"] == "b"
        assert decoder(10**9) == {}


def test_correlation_task_and_stream_come_from_the_arguments(tmp_path):
    file = raw_events(
        tmp_path,
        array(
            event(args='{"correlation":7,"stream":20}'),
            event(args='{"Task Type":"AI_CORE","Physic Stream Id":2,"Stream Id":9,"connection_id":965}'),
            event(args='{"nested":{"correlation":1},"stream":-1}'),
            event(args='{"connection_id":-1,"finished":false}'),
        ),
    )
    assert file.raw.correlation.tolist() == [7, 965, -1, -1]
    assert file.raw.stream.tolist() == [20, 2, -1, -1]
    assert file.texts.texts(file.raw.task) == ["", "AI_CORE", "", ""]
    assert file.raw.not_finished.tolist() == [False, False, False, True]


def test_memory_instants_are_columns_with_absent_numbers_marked(tmp_path):
    args = (
        '{"Device Type":1,"Device Id":0,"Addr":139926520725504,"Bytes":-512,"Total Allocated":10,"Total Reserved":20}'
    )
    file = raw_events(
        tmp_path,
        array(
            event("x"),
            event("[memory]", ph="i", dur=None, args=args),
            event("[memory]", ph="i", dur=None, args='{"Device Type":0,"Device Id":-1,"Bytes":-1}'),
        ),
    )
    memory = file.raw.memory
    assert memory.row.tolist() == [1, 2]
    assert memory.address.tolist() == [139926520725504, -1]
    assert memory.bytes.tolist() == [-512, -1]
    assert memory.total_allocated_bytes.tolist() == [10, -1]
    assert memory.total_reserved_bytes.tolist() == [20, -1]
    assert memory.device_type.tolist() == [1, 0]
    assert memory.device.tolist() == [0, -1]


def test_reading_stops_when_cancelled_and_reports_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(event_columns, "STRETCH_BYTES", 2_000)
    path = tmp_path / "many.json"
    path.write_text(array(*(event(str(index)) for index in range(500))), encoding="utf-8")
    reports = []
    read_events(
        path, StringInterner(), DiagnosticLog(), ReadContext(progress=lambda ratio, what: reports.append((ratio, what)))
    )
    assert len(reports) > 10
    assert reports == sorted(reports, key=lambda item: item[0])
    with pytest.raises(OperationCancelled):
        read_events(path, StringInterner(), DiagnosticLog(), ReadContext(cancel=CancelToken(lambda: True)))


EVENT_TEXTS = st.builds(
    lambda name, ts, nested: event(name, ts=str(ts), args=nested),
    st.sampled_from(["a", "bb", 'q\\"q', "}],{", "层", "\\\\", '},{\\"ph\\":\\"X\\"}']),
    st.integers(0, 10**15),
    st.sampled_from(['{"s":"},{\\"ph\\":1}"}', '{"l":[{"ph":"X","n":1},{"ph":"Y"}]}', "{}", None]),
)


@given(st.lists(EVENT_TEXTS, min_size=1, max_size=120), st.integers(100, 3_000))
def test_reading_in_stretches_equals_json_load_wherever_the_file_is_cut(tmp_path_factory, events, stretch_bytes):
    path = tmp_path_factory.mktemp("stretches") / "trace.json"
    path.write_text(array(*events), encoding="utf-8")
    strings, log = StringInterner(), DiagnosticLog()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_columns, "STRETCH_BYTES", stretch_bytes)
        raw = read_events(path, strings, log, ReadContext())
    expected = json.loads(path.read_text(encoding="utf-8"))
    assert strings.table().texts(raw.name) == [item["name"] for item in expected]
    assert raw.start_ns.tolist() == [item["ts"] * 1000 for item in expected]
    assert log.diagnostics() == ()
    text = path.read_bytes()
    for offset, item in zip(raw.offset.tolist(), expected, strict=True):
        data = np.frombuffer(text, dtype=np.uint8)
        assert json.loads(text[offset : int(skip_value(data, offset, len(text)))]) == item


def test_every_event_of_the_ascend_captures_equals_json_load(captures):
    paths = sorted(captures.glob("ascend/**/trace_view.json"))
    assert paths
    for path in paths:
        strings, log = StringInterner(), DiagnosticLog()
        raw = read_events(path, strings, log, ReadContext())
        expected = json.loads(path.read_bytes())
        assert strings.table().texts(raw.name) == [item["name"] for item in expected]
        assert [chr(phase) for phase in raw.phase.tolist()] == [item["ph"] for item in expected]
        assert raw.start_ns.tolist() == [
            int(Decimal(str(item["ts"])) * 1000) if "ts" in item else ABSENT_TIME_NS for item in expected
        ]
        assert [raw.flow_ids.text(flow) for flow in raw.flow.tolist()] == [str(item.get("id", "")) for item in expected]
        assert log.diagnostics() == ()


def test_times_and_durations_no_trace_can_have_are_counted_and_never_overflow(tmp_path):
    file = raw_events(
        tmp_path,
        array(
            event(ts="9223372036854775.807"), event(ts="-9223372036854775"), event(ts="1e400"), event(ts="1" * 400),
            event(dur="8000000000000000"), event(dur="1" + "0" * 60),
        ),
    )  # fmt: skip
    assert file.raw.start_ns.tolist() == [ABSENT_TIME_NS] * 4 + [1000] * 2
    assert file.raw.duration_ns.tolist() == [2000] * 4 + [0, 0]
    assert file.counts == {"unusable-timestamp": 4, "unusable-duration": 2}
