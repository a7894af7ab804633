import json
import pickle

import pytest


@pytest.fixture
def snapshot(tmp_path):
    segment = {"address": 1 << 30, "total_size": 20 << 20, "stream": 0, "segment_type": "large", "blocks": []}
    segment["blocks"] = [
        {"size": (4 << 20) + 512, "requested_size": 4 << 20, "state": "active_allocated"},
        {"size": (16 << 20) - 512, "requested_size": 0, "state": "inactive"},
    ]
    events = [
        {"action": "segment_alloc", "addr": 1 << 30, "size": 20 << 20, "stream": 0},
        {"action": "alloc", "addr": 1 << 30, "size": 4 << 20, "stream": 0},
    ]
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [events]}))
    return path


def test_replay_is_one_document_with_the_keys_of_the_contract(cannscope, snapshot):
    code, out, err = cannscope("replay", snapshot, "--json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "cannscope.replay/1")
    assert (document["allocator"], document["policy"]["pad_bytes"]) == ("caching", 32)
    assert document["recorded"] == document["replayed"]
    assert document["reserved_error_ratio"] == 0.0
    assert (document["addresses_total"], document["addresses_matched"]) == (1, 1)
    assert (document["driver_events_total"], document["driver_events_matched"]) == (1, 1)
    assert (document["releases_total"], document["releases_matched"]) == (0, 0)
    assert document["snapshot"]["reserved_end"] == 20 << 20


def test_text_says_what_matched_and_where_it_parts(cannscope, snapshot):
    code, out, _ = cannscope("replay", snapshot)
    assert code == 0
    assert "Every address is the recorded one." in out
    code, out, _ = cannscope("replay", snapshot, "--allocator", "expandable")
    assert code == 0
    assert "need not be equal" in out


def test_an_unknown_allocator_and_a_hostile_file_end_in_one_line(cannscope, snapshot, tmp_path):
    code, out, err = cannscope("replay", snapshot, "--allocator", "magic")
    assert (code, out) == (2, "")
    assert "caching, caching-cuda, expandable" in err
    (tmp_path / "x.pickle").write_bytes(b"cos\nsystem\n(S'id'\ntR.")
    code, out, err = cannscope("replay", tmp_path / "x.pickle", "--json")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_capture_says_what_every_policy_would_have_reserved(cannscope, captures):
    path = captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"
    code, out, err = cannscope("replay", path, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["allocator"], document["rank"]) == ("expandable", 2)
    assert abs(document["reserved_error_ratio"]) <= 0.005
    assert [item["rank"] for item in document["ranks"]] == [0, 2]
    assert {"caching", "expandable"} <= {item["allocator"] for item in document["policies"]}
    code, out, _ = cannscope("replay", path, "--allocator", "caching")
    assert code == 0
    assert "No list of allocated blocks: rank 1, 3." in out


def test_a_capture_without_blocks_says_how_to_record_them(cannscope, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]')
    code, out, err = cannscope("replay", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "profile_memory=True" in err


def test_a_capture_is_replayed_in_time_too(cannscope, captures):
    path = captures / "pytorch" / "nccl_data.json.gz"
    code, out, err = cannscope("replay", path, "--json")
    document = json.loads(out)
    assert (code, err, document["allocator"]) == (0, "", None)
    time = document["time"]
    assert abs(time["error_ratio"]) < 0.03
    assert abs(time["withheld_error_ratio"]) < 0.1
    assert 0 <= time["inferred_edge_share_ratio"] <= 1
    assert time["host_source"] == {"0": "launches"}
    assert [step["step"] for step in time["steps"]] == [4, 5, 6]
    assert abs(time["replayed_step_us"] / time["recorded_step_us"] - 1 - time["error_ratio"]) < 1e-9
    code, out, _ = cannscope("replay", path)
    assert (code, "recorded launches" in out, "No list of allocated blocks" in out) == (0, True, True)


def test_a_capture_with_neither_device_tasks_nor_blocks_ends_in_one_line(cannscope, captures):
    code, out, err = cannscope("replay", captures / "pytorch" / "rank_non_gpu.json.gz")
    assert (code, out, err.count("\n")) == (2, "", 1)
