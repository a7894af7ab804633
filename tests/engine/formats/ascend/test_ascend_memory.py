from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.formats.events.grouped_search import group_bounds, last_not_after
from engine.trace import Trace
from tests.support.ascend_capture import found, layer, read_files, slice_event, us

RECORD = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"
BLOCKS = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),"
    "Allocation Total Allocated(MB),Allocation Total Reserved(MB),Allocation Total Active(MB),"
    "Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),Stream Ptr,Device Type"
)


def block(name: str, size: str, allocated: str, freed: str = "", released: str = "", stream: str = "2") -> str:
    return f"{name},{size},{allocated}\t,{freed},{released},,,1.5,2.0,1.5,,,,{stream},NPU:4"


def read(tmp_path: Path, **tables: list[str]) -> Trace:
    return read_files(tmp_path, {f"{name}.csv": "\r\n".join(rows) + "\r\n" for name, rows in tables.items()})


def test_curves_are_split_by_component_and_sorted_by_time(tmp_path: Path) -> None:
    rows = [
        RECORD,
        f"APP,{us(5)}\t,,2109.6015625,,,NPU:4",
        f"PTA,{us(9)}\t,0.00048828125,2.0,1.0,1162636336,NPU:4",
        f"PTA,{us(1)}\t,954.3701171875,1452.0,954.3701171875,1162636336,NPU:4",
    ]
    trace = read(tmp_path, memory_record=rows)
    app, pta = trace.memory.curves
    assert (app.component, pta.component, pta.device) == ("APP", "PTA", 4)
    assert pta.time_ns.tolist() == [0, 8000]
    assert pta.allocated_bytes.tolist() == [1_000_729_600, 512]
    assert app.reserved_bytes.tolist() == [2_212_077_568]
    assert (app.allocated_bytes.tolist(), app.active_bytes.tolist()) == ([-1], [-1])
    assert trace.metadata.device == "NPU 4"


def test_a_table_in_kilobytes_is_not_a_thousand_times_too_large(tmp_path: Path) -> None:
    titles = "Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device"
    trace = read(tmp_path, memory_record=[titles, f"3,PTA,{us(0)},2048,4096.5,NPU:3"])
    (curve,) = trace.memory.curves
    assert curve.reserved_bytes.tolist() == [4096 * 1024 + 512]
    assert curve.active_bytes.tolist() == [-1]


def test_a_table_of_2023_has_neither_active_totals_nor_streams(tmp_path: Path) -> None:
    titles = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type"
    trace = read(tmp_path, memory_record=[titles, f"PTA,{us(0)},1,2,NPU:0"])
    assert trace.memory.curves[0].active_bytes.tolist() == [-1]


def test_the_megabytes_of_mindspore_are_a_thousand_kib(tmp_path: Path) -> None:
    trace = read(tmp_path, memory_record=[RECORD, f"MindSpore,{us(0)},2.048,4.096,,,NPU:0", f"GE,{us(0)},1,1,,,NPU:0"])
    mindspore, graph_engine = trace.memory.curves
    assert mindspore.reserved_bytes.tolist() == [4_194_304]
    assert mindspore.active_bytes.tolist() == [-1]
    assert graph_engine.reserved_bytes.tolist() == [1 << 20]


def test_blocks_keep_three_times_and_exact_sizes(tmp_path: Path) -> None:
    rows = [BLOCKS, block("aten::mm", "32.5", us(9)), block("aten::add", "0.5", us(0), us(7.25), us(7))]
    table = read(tmp_path, operator_memory=rows).memory.allocations
    assert table.size_bytes.tolist() == [512, 33_280]
    assert table.allocated_at_ns.tolist() == [0, 9000]
    assert table.freed_at_ns.tolist() == [7250, -1]
    assert table.released_at_ns.tolist() == [7000, -1]
    assert table.stream.tolist() == [2, 2]
    assert table.device.tolist() == [4, 4]


def test_a_block_allocated_before_the_capture_has_no_birth(tmp_path: Path) -> None:
    rows = [BLOCKS, block("a", "1", us(9), us(2)), block("b", "1", "", us(5)), block("c", "1", us(1), us(3))]
    trace = read(tmp_path, operator_memory=rows)
    table = trace.memory.allocations
    assert sorted(table.allocated_at_ns.tolist()) == [-1, -1, 0]
    assert found(trace, "freed-before-allocated") is not None
    assert found(trace, "allocated-before-capture") is not None


def test_blocks_belong_to_the_innermost_operator_of_their_name(tmp_path: Path) -> None:
    events = [
        *layer("Python", 1, {1: "Thread 1"}, "CPU"),
        slice_event("aten::empty", 1, 1, 0, 100, cat="cpu_op"),
        slice_event("aten::zero_", 1, 1, 10, 50, cat="cpu_op"),
        slice_event("aten::empty", 1, 1, 20, 10, cat="cpu_op"),
        slice_event("aten::empty", 1, 1, 200, 10, cat="cpu_op"),
    ]
    rows = [
        BLOCKS,
        block("aten::empty", "1", us(25)),
        block("aten::empty", "2", us(60)),
        block("aten::empty", "3", us(150)),
        block("cann::Conv2D", "4", us(25)),
    ]
    trace = read_files(tmp_path, {"trace_view.json": events, "operator_memory.csv": "\n".join(rows)})
    table = trace.memory.allocations
    linked = {
        int(size): int(trace.events.start_ns[event]) if event >= 0 else None
        for size, event in zip(table.size_bytes // 1024, table.event.tolist(), strict=True)
    }
    assert linked == {1: 20_000, 2: 0, 3: None, 4: None}


def test_bad_rows_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = [BLOCKS, block("a", "N/A", us(0)), block("b", "x", us(0)), block("c", "1", us(0)), "cut"]
    trace = read(tmp_path, operator_memory=rows)
    assert len(trace.memory.allocations) == 1
    counted = {item.code: item.count for item in trace.diagnostics}
    assert counted == {"incomplete-table-row": 2, "unreadable-table-cell": 1, "broken-table-row": 1}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=30),
    st.lists(st.tuples(st.integers(0, 5), st.integers(-2, 22)), min_size=1, max_size=10),
)
def test_a_grouped_search_is_a_search_in_each_group(
    entries: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    entries = sorted(entries)
    groups = np.array([group for group, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=np.int64)
    wanted = np.array([group for group, _ in queries], dtype=np.int64)
    limit = np.array([value for _, value in queries], dtype=np.int64)
    low, high = group_bounds(groups, wanted)
    found_at = last_not_after(values, low, high, limit)
    for index, (group, value) in enumerate(queries):
        matching = [place for place, entry in enumerate(entries) if entry[0] == group and entry[1] <= value]
        assert found_at[index] == (matching[-1] if matching else low[index] - 1)


def test_a_device_number_no_machine_has_is_none(tmp_path):
    rows = "".join(f"PTA,{us(1)},1,2,{device}\n" for device in ("NPU:99999999999999999999", "NPU:3"))
    trace = read_files(
        tmp_path,
        {"memory_record.csv": f"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n{rows}"},
    )
    assert [curve.device for curve in trace.memory.curves] == [-1, 3]
