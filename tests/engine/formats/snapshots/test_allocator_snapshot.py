import contextlib
import os
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import TraceReadError
from engine.formats.snapshots.allocator_snapshot import BlockState, SnapshotAction, looks_like_snapshot, read_snapshot
from engine.formats.snapshots.pickle_check import check_pickle


def snapshot(**changes):
    blocks = [
        {"address": 4096, "size": 1024, "requested_size": 700, "state": "active_allocated", "frames": []},
        {"address": 5120, "size": 2096128, "requested_size": 0, "state": "inactive", "frames": []},
    ]
    segment = {
        "device": 0, "address": 4096, "total_size": 2097152, "stream": 7, "segment_type": "small", "blocks": blocks,
    }  # fmt: skip
    events = [
        {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 7, "time_us": 5},
        {"action": "alloc", "addr": 4096, "size": 700, "stream": 7, "time_us": 6},
        {"action": "oom", "device_free": 12, "size": 1 << 40, "stream": 7, "time_us": 7},
    ]
    return {"segments": [segment], "device_traces": [[], events]} | changes


def written(tmp_path, content, protocol=4):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_segments_blocks_and_events_are_read(tmp_path, protocol):
    found = read_snapshot(written(tmp_path, snapshot(), protocol))
    (segment,) = found.segments
    assert (segment.address, segment.size_bytes, segment.large, segment.stream) == (4096, 2097152, False, 7)
    assert [block.state for block in segment.blocks] == [BlockState.ALLOCATED, BlockState.INACTIVE]
    assert list(found.logs) == [1]
    assert found.logs[1].action.tolist() == [SnapshotAction.SEGMENT_ALLOC, SnapshotAction.ALLOC, SnapshotAction.OOM]
    assert found.logs[1].address.tolist() == [4096, 4096, 12]
    assert (found.layout_errors, found.diagnostics) == (0, ())


def test_blocks_of_old_snapshots_get_their_addresses_from_their_order(tmp_path):
    content = snapshot()
    for block in content["segments"][0]["blocks"]:
        del block["address"]
    found = read_snapshot(written(tmp_path, content))
    assert [block.address for block in found.segments[0].blocks] == [4096, 5120]


def test_a_bare_list_of_segments_is_a_snapshot_without_a_log(tmp_path):
    found = read_snapshot(written(tmp_path, snapshot()["segments"]))
    assert len(found.segments) == 1
    assert not found.logs


def test_what_cannot_be_used_is_counted(tmp_path):
    content = snapshot()
    content["segments"].append({"address": "here"})
    content["segments"][0]["blocks"][1]["size"] = 512
    content["device_traces"][1] += [{"action": "teleport"}, {"action": "alloc", "addr": 1 << 70, "size": 1}, 5]
    found = read_snapshot(written(tmp_path, content))
    counts = {item.code: item.count for item in found.diagnostics}
    assert counts == {"broken-segment": 1, "unknown-allocator-event": 3, "blocks-do-not-tile": 1}


class Runs:
    def __reduce__(self):
        return os.mkdir, ("must-not-exist",)


HOSTILE = {
    "reduce": pickle.dumps({"segments": Runs()}),
    "global by name": b"cos\nsystem\n(S'id'\ntR.",
    "instance": b"(S'id'\nios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent id": b"\x80\x02U\x01aQ.",
    "build": b"\x80\x02}}b.",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1) + b"a.",
    "memo bomb": b"\x80\x02Nr" + struct.pack("<I", 0xFFFFFFF0) + b".",
    "memo bomb in text": b"Np99999999999\n.",
    "length bomb": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"a.",
    "negative length": b"\x80\x02\x8b" + struct.pack("<i", -1) + b".",
    "cut off": pickle.dumps(snapshot())[:-20],
    "empty": b"",
    "text": b"hello",
    "get without put": b"\x80\x02h\x05.",
    "append to a number": b"\x80\x02K\x01K\x02a.",
    "unhashable key": b"\x80\x02}]Ns.",
    "stack underflow": b"\x80\x02\x86.",
    "unknown protocol": b"\x80\xff.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_end_in_one_clear_error(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hostile.pickle"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(TraceReadError) as caught:
        read_snapshot(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "must-not-exist").exists()


def test_the_refusal_names_opcode_and_byte(tmp_path):
    path = tmp_path / "x.pickle"
    path.write_bytes(b"cos\nsystem\n(S'id'\ntR.")
    with pytest.raises(TraceReadError, match=r"byte 0: .*opcode GLOBAL.*nothing was run"):
        read_snapshot(path)


@pytest.mark.parametrize("content", [{"a": 1}, [], 3, {"segments": 5}, {"segments": []}, None, "text"])
def test_other_pickles_are_no_snapshots(tmp_path, content):
    with pytest.raises(TraceReadError):
        read_snapshot(written(tmp_path, content))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(PLAIN, st.integers(3, 5))
def test_plain_data_always_passes_the_check(value, protocol):
    check_pickle(pickle.dumps(value, protocol=protocol), None)


@given(st.binary(max_size=200))
def test_the_check_survives_any_bytes(data):
    with contextlib.suppress(TraceReadError):
        check_pickle(data, None)


def test_a_file_is_recognised_by_its_first_bytes(tmp_path):
    assert looks_like_snapshot(written(tmp_path, snapshot()))
    assert not looks_like_snapshot(tmp_path)
    (tmp_path / "trace.json").write_text("{}")
    assert not looks_like_snapshot(tmp_path / "trace.json")
