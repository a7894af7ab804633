"""Of every real capture, what its files hold equals what the trace holds plus what the diagnostics count."""

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from engine.core.errors import TraceReadError
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from tests.support.captures import captures_directory
from tests.support.hostile_files import codes

CAPTURES = captures_directory() or Path()
JSON_TRACES = sorted([*CAPTURES.glob("pytorch/**/*.json*"), *CAPTURES.glob("ascend/**/trace_view.json")])
CNN = [f"910b-cnn-ddp2-text/level{level}/rank{rank}_ascend_pt" for level in range(3) for rank in range(2)]
ASCEND = [*CNN, *(f"910b-qwen3-0.6b-pp2dp2/rank_{rank}_ascend_pt" for rank in range(4))]


def named(path):
    return str(path.relative_to(CAPTURES)) if CAPTURES.name else str(path)


def elements(path):
    raw = path.read_bytes()
    content = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return content if isinstance(content, list) else content["traceEvents"]


def undrawn_flows(items):
    """Counts starts without ends, ends without starts, and starts and ends of arrows from threads without a slice."""
    lanes = {(str(item["pid"]), str(item["tid"])) for item in items if item["ph"] == "X"}
    keys = {phase: Counter() for phase in "sf"}
    homeless = set()
    for item in items:
        if item["ph"] in keys:
            key = (item.get("cat"), str(item["id"]))
            keys[item["ph"]][key] += 1
            if (str(item["pid"]), str(item["tid"])) not in lanes:
                homeless.add(key)
    starts, ends = keys["s"], keys["f"]
    both = starts.keys() & ends.keys() & homeless
    return (
        sum(count for key, count in starts.items() if key not in ends),
        sum(count for key, count in ends.items() if key not in starts),
        sum(starts[key] for key in both),
        sum(ends[key] for key in both),
    )


@pytest.mark.parametrize("path", JSON_TRACES, ids=named)
def test_every_element_of_a_trace_is_used_or_counted(path):
    try:
        (entry,) = open_job([path], built_in_readers()).ranks
    except TraceReadError:
        assert "_et." in path.name or "memory_timeline" in path.name  # execution traces and timelines are no traces
        return
    trace, counted = entry.trace, codes(entry.trace)
    items = elements(path)
    phases = Counter(item["ph"] for item in items)
    samples = sum(len(curve) for curve in trace.memory.curves)
    assert len(trace.events) + samples + counted.get("unusable-memory-event", 0) == phases["X"] + phases["i"]
    assert sum(len(series) for series in trace.counters) + counted.get("unusable-counter", 0) == phases["C"]
    lone_starts, lone_ends, lost_starts, lost_ends = undrawn_flows(items)
    assert len(trace.flows) + lone_ends + lost_ends == phases["f"]
    assert counted.get("flow-without-start", 0) == lone_ends
    assert counted.get("flow-without-end", 0) == lone_starts
    assert counted.get("flow-without-slice", 0) == lost_starts + lost_ends
    assert set(phases) <= set("XiCsfM"), "the sums above leave nothing out"


def rows(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return sum(1 for _ in csv.DictReader(file))


@pytest.mark.parametrize("name", ASCEND)
def test_every_row_of_a_table_is_used_or_counted(name, captures):
    root = captures / "ascend" / name
    (entry,) = open_job([root], built_in_readers()).ranks
    trace, counted = entry.trace, codes(entry.trace)
    lost = counted.get("incomplete-table-row", 0) + counted.get("odd-table-row", 0)
    held = {
        "kernel_details": len(trace.kernels),
        "memory_record": sum(len(curve) for curve in trace.memory.curves),
        "operator_memory": len(trace.memory.allocations),
        **{name: len(table) for name, table in trace.tables.items()},
    }
    files = {path.stem: path for path in (root / "ASCEND_PROFILER_OUTPUT").glob("*.csv")}
    assert files.keys() <= held.keys()
    for table, path in files.items():
        assert held[table] == rows(path), table
    assert lost == 0
    described = root / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    if described.exists():
        kinds = [kind for step in json.loads(described.read_text()).values() for kind in step.values()]
        operators = sum(len([key for key in kind if key != "Total Op Info"]) for kind in kinds)
        extra = counted.get("collective-not-described", 0)
        assert len(trace.collectives) == operators + extra - counted.get("unreadable-collective", 0)
