"""Kineto traces of real jobs against plain counts of their JSON."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

from engine.formats.chrome.reader import ChromeReader
from engine.formats.kineto.reader import KinetoReader
from engine.trace import TrackKind
from engine.trace.tables import INSTANT
from tests.support.hostile_files import codes, read_kineto

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "Kernel", "Memcpy", "Memset"}


@pytest.fixture(scope="module")
def traces(captures):
    paths = [path for path in sorted(captures.glob("pytorch/**/*.json*")) if KinetoReader().find(path)]
    assert len(paths) == 27
    return {path: read_kineto(path) for path in paths}


def loaded(path):
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)["traceEvents"]


def changes(times, sizes, sign):
    """Returns ``(time, change)`` of the blocks that have such a time."""
    return [
        (time_ns, sign * size) for time_ns, size in zip(times.tolist(), sizes.tolist(), strict=True) if time_ns >= 0
    ]


def test_every_capture_holds_as_many_events_as_plain_json_counts(traces):
    for path, trace in traces.items():
        items = loaded(path)
        drawn = [item for item in items if item["ph"] in "Xi" and item["name"] != "[memory]"]
        assert len(trace.events) == len(drawn), path
        assert Counter(trace.strings.texts(trace.events.name)) == Counter(item["name"] for item in drawn), path
        rows = trace.events_of(TrackKind.DEVICE_STREAM)
        assert len(rows) == sum(item.get("cat") in DEVICE for item in items), path
        assert int(trace.events.duration_ns.sum()) == sum(max(round(item.get("dur", 0) * 1000), 0) for item in drawn)
        instants = int(np.count_nonzero(trace.events.flags & INSTANT))
        assert instants == sum(item["ph"] == "i" for item in drawn), path
        flow_ends = sum(item["ph"] == "f" for item in items)
        assert len(trace.flows) == flow_ends - codes(trace).get("flow-without-start", 0), path


def test_memory_of_every_capture_adds_up_to_the_recorded_totals(traces):
    checked = 0
    for path, trace in traces.items():
        table = trace.memory.allocations
        for curve in trace.memory.curves:
            mine = table.device == curve.device
            if curve.component != "PTA" or not mine.any():
                continue
            size = table.size_bytes[mine]
            events = changes(table.allocated_at_ns[mine], size, 1) + changes(table.freed_at_ns[mine], size, -1)
            assert len(events) == len(curve), path
            events.sort(key=lambda item: item[0])
            totals = np.cumsum([change for _, change in events])
            # Within one ns the order of events is the file's; compare where a ns has passed.
            last = np.append(np.diff(curve.time_ns) > 0, True)
            assert len(set((curve.allocated_bytes - totals)[last].tolist())) == 1, path
            checked += 1
    assert checked >= 10


def test_the_generic_reader_and_the_kineto_reader_agree_on_which_files_are_traces(captures):
    kineto_files = {capture.root for capture in KinetoReader().find(captures / "pytorch")}
    chrome_files = {capture.root for capture in ChromeReader().find(captures / "pytorch")}
    assert kineto_files == chrome_files
    assert len(KinetoReader().find(captures / "pytorch" / "dlrm-v100-8ranks")) == 8


def test_the_df_index_resolver_capture_reads_as_its_readme_says(captures, traces):
    trace = traces[captures / "pytorch" / "df_index_resolver.json.gz"]
    assert (trace.metadata.rank, trace.metadata.world_size) == (1, 2)
    assert sum(len(curve) for curve in trace.memory.curves) == 28_010
    names = trace.strings.texts(trace.events.name[trace.events_of(TrackKind.DEVICE_STREAM)])
    assert sum("nccl" in name.lower() for name in names) == 2_020
    assert len(trace.flows) == 22_290
