from pathlib import Path

import pytest

from engine.core.errors import UnsupportedTraceVersionError
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.reader import Capture, ReadContext
from tests.support.ascend_capture import (
    KERNEL_TITLES,
    found,
    kernel_row,
    layer,
    read_capture,
    slice_event,
    us,
    write_files,
)

KERNELS = f"{KERNEL_TITLES}\n{kernel_row('k', us(0))}\n"
STATISTIC = "OP Type,Core Type,Count,Total Time(us)\nMatMulV3,AI_CORE,1,5.0\n"


def roles(path: Path) -> list[list[str]]:
    return [list(capture.files) for capture in AscendTextReader().find(path)]


def names(capture: Capture) -> list[str]:
    return [path.name for path in capture.files.values()]


def test_a_profiler_directory_is_one_capture(tmp_path: Path) -> None:
    root = write_files(
        tmp_path / "host_1_20250109084754_ascend_pt",
        {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS, "profiler_info_3.json": {"rank_id": "3"}},
    )
    (capture,) = AscendTextReader().find(root)
    assert capture.root == root
    assert list(capture.files) == ["kernel_details", "profiler_info"]


def test_the_output_directory_alone_is_a_capture_that_knows_its_rank(tmp_path: Path) -> None:
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS, "profiler_info_3.json": {}})
    assert read_capture(tmp_path / "ASCEND_PROFILER_OUTPUT").metadata.rank == 3


def test_a_directory_of_ranks_is_one_capture_each_whatever_they_are_called(tmp_path: Path) -> None:
    for name in ("first", "zweiter/tief", "第三"):
        write_files(tmp_path / name, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    captures = AscendTextReader().find(tmp_path)
    assert {capture.root.relative_to(tmp_path).as_posix() for capture in captures} == {"first", "zweiter/tief", "第三"}


def test_files_without_their_directory_are_one_capture(tmp_path: Path) -> None:
    write_files(tmp_path, {"kernel_details.csv": KERNELS, "op_statistic.csv": STATISTIC})
    assert roles(tmp_path) == [["kernel_details", "op_statistic"]]


@pytest.mark.parametrize(
    ("content", "role"),
    [
        (KERNELS, "kernel_details"),
        ("\ufeff" + KERNELS, "kernel_details"),
        ("Device_id,Op Name,Task Start Time(us),Task Duration(us)\n", "kernel_details"),
        ("Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\n", "memory_record"),
        ("Device_id,Component,Timestamp(us),Total Allocated(KB),Total Reserved(KB),Device\n", "memory_record"),
        ("Component,Timestamp(us),Total Reserved(MB),Device\n", "npu_module_mem"),
        ("Name,Size(KB),Allocation Time(us),Release Time(us)\n", "operator_memory"),
        (STATISTIC, "op_statistic"),
        ("Level,API Name,Time(us),Count\n", "api_statistic"),
        ("Name,Input Shapes,Call Stack,Host Self Duration(us)\n", "operator_details"),
        ("Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n", "step_trace_time"),
        ("Stream Id,Task Id,Hit Rate,Victim Rate,Op Name\n", "l2_cache"),
        ('{"step13": {"p2p": {}, "collective": {}}}', "communication"),
        ('{"step": {"collective": {"x-top1@1": {"0-1": {"Transport Type": "HCCS"}}}}}', "communication_matrix"),
        ('[{"name": "a", "pid": 1, "tid": 1, "ts": "1736412474714258.990", "dur": 1, "ph": "X"}]', "trace_view"),
        ('[{"name": "process_name", "pid": 1, "tid": 0, "args": {"name": "CANN"}, "ph": "M"}]', "trace_view"),
    ],
)
def test_a_single_file_is_recognised_by_content_whatever_it_is_called(content: str, role: str, tmp_path: Path) -> None:
    path = tmp_path / "renamed.txt"
    path.write_text(content, encoding="utf-8")
    assert roles(path) == [[role]]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02",
        b"a,b\n1,2\n",
        b'{"traceEvents": [{"name": "a", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}',
        b'{"deviceProperties": [], "traceEvents": [{"name": "CANN", "ph": "X", "ts": "1.0"}]}',
        b'{"session_and_graph_id_0_0": {"graph_fusion": {"Pass": {"effect_times": "1", "match_times": "1"}}}}',
        b"SQLite format 3\0",
    ],
)
def test_other_files_are_not_claimed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    assert AscendTextReader().find(path) == ()


def test_a_missing_path_or_a_directory_of_other_files_holds_no_capture(tmp_path: Path) -> None:
    write_files(tmp_path, {"readme.txt": "x", "trace.json": '{"traceEvents": []}', "table.csv": "a,b\n1,2\n"})
    assert AscendTextReader().find(tmp_path) == ()
    assert AscendTextReader().find(tmp_path / "absent") == ()


def test_a_capture_of_databases_is_recognised_and_refused(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db": b"SQLite format 3\0",
            "ASCEND_PROFILER_OUTPUT/analysis.db": b"SQLite format 3\0",
        },
    )
    (capture,) = AscendTextReader().find(tmp_path)
    with pytest.raises(UnsupportedTraceVersionError, match=r"ascend_pytorch_profiler_0\.db.*not read yet"):
        AscendTextReader().read(capture, ReadContext())


def test_a_database_beside_text_files_is_a_notice(tmp_path: Path) -> None:
    write_files(tmp_path, {"kernel_details.csv": KERNELS, "analysis.db": b"SQLite format 3\0"})
    notice = found(read_capture(tmp_path), "database-not-read")
    assert notice is not None
    assert notice.position.path == tmp_path / "analysis.db"


def test_slices_are_read_one_after_another(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "mindstudio_profiler_output/op_summary_slice_1_20250109084754.csv": (
                f"{KERNEL_TITLES}\n{kernel_row('second', us(10))}\n"
            ),
            "mindstudio_profiler_output/op_summary_slice_0_20250109084754.csv": (
                f"{KERNEL_TITLES}\n{kernel_row('first', us(0))}\n"
            ),
        },
    )
    trace = read_capture(tmp_path)
    assert [trace.name(event) for event in range(2)] == ["first", "second"]
    assert trace.arguments(1)["Name"] == "second"


def test_of_several_exports_the_newest_is_read_and_the_others_are_counted(tmp_path: Path) -> None:
    for timestamp, name in (("20250109084754", "old"), ("20250110084754", "new"), ("20241231235959", "older")):
        content = f"{KERNEL_TITLES}\n{kernel_row(name, us(0))}\n"
        write_files(tmp_path, {f"mindstudio_profiler_output/op_summary_{timestamp}.csv": content})
    trace = read_capture(tmp_path)
    assert [trace.name(event) for event in range(len(trace.events))] == ["new"]
    notice = found(trace, "file-not-read")
    assert notice is not None
    assert notice.count == 2


def test_slices_of_an_older_export_are_not_mixed_in(tmp_path: Path) -> None:
    write_files(
        tmp_path / "mindstudio_profiler_output",
        {
            "op_summary_slice_0_20250109084754.csv": f"{KERNEL_TITLES}\n{kernel_row('old0', us(0))}\n",
            "op_summary_slice_1_20250109084754.csv": f"{KERNEL_TITLES}\n{kernel_row('old1', us(9))}\n",
            "op_summary_20250110084754.csv": f"{KERNEL_TITLES}\n{kernel_row('new', us(0))}\n",
        },
    )
    trace = read_capture(tmp_path)
    assert [trace.name(event) for event in range(len(trace.events))] == ["new"]


def test_a_sliced_trace_is_one_timeline_with_flows_across_slices(tmp_path: Path) -> None:
    cann, device = layer("CANN", 1, {5: "Thread 5"}, "CPU"), layer("Ascend Hardware", 2, {3: "Stream 3"})
    launch = slice_event("Node@launch", 1, 5, 0, 2, args={"connection_id": 7})
    kernel = slice_event("MatMul", 2, 3, 10, 4, args={"Task Type": "AI_CORE", "connection_id": 7})
    start = {"name": "h", "ph": "s", "cat": "HostToDevice", "id": "7", "pid": 1, "tid": 5, "ts": us(0)}
    end = {"name": "h", "ph": "f", "bp": "e", "cat": "HostToDevice", "id": "7", "pid": 2, "tid": 3, "ts": us(10)}
    write_files(
        tmp_path / "mindstudio_profiler_output",
        {
            "msprof_slice_0_20250109084754.json": [*cann, launch, start],
            "msprof_slice_1_20250109084754.json": [*device, kernel, end],
        },
    )
    trace = read_capture(tmp_path)
    (source,), (target,) = trace.flows.source.tolist(), trace.flows.target.tolist()
    assert (trace.name(source), trace.name(target)) == ("Node@launch", "MatMul")
    assert trace.arguments(target)["Task Type"] == "AI_CORE"


def test_a_json_file_of_another_kind_is_counted(tmp_path: Path) -> None:
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/prof_rule_0.json": {}})
    assert found(read_capture(tmp_path), "file-not-read") is not None


def test_files_are_named_relative_to_the_capture(tmp_path: Path) -> None:
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    assert read_capture(tmp_path).source.files == (str(Path("ASCEND_PROFILER_OUTPUT") / "kernel_details.csv"),)


def test_strangers_in_a_directory_of_loose_files_are_left_to_other_readers(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "my kernels.csv": "a,b\n1,2\n",
            "renamed.csv": KERNELS,
            "mine.csv": "x,y\n1,2\n",
            "trace.json": '{"traceEvents": [{"name": "a", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}',
        },
    )
    (capture,) = AscendTextReader().find(tmp_path)
    assert names(capture) == ["renamed.csv"]
    trace = read_capture(tmp_path)
    again = AscendTextReader().argument_decoder(trace.source)
    assert again is not None
    assert again(int(trace.events.args_offset[0]))["Name"] == "k"
