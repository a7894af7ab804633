import math
from pathlib import Path

import pytest

from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from engine.core.registry import Registry
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.cache import TraceCache
from engine.formats.opening import open_job
from engine.formats.reader import ReadContext, Reader
from engine.trace import ParallelGroup, Trace
from tests.support.ascend_capture import (
    EPOCH_US,
    KERNEL_TITLES,
    found,
    kernel_row,
    layer,
    read_capture,
    read_files,
    us,
    write_files,
)

KERNELS = f"{KERNEL_TITLES}\n{kernel_row('k', us(0))}\n"
GROUPS = {
    "3985310405473756128": {"group_name": "pp", "group_rank": 0, "global_ranks": [0, 2]},
    "group_name_5": {"group_name": "dp_cp", "group_rank": 0, "global_ranks": [0, 1]},
}


def read_with(tmp_path: Path, **files: object) -> Trace:
    names = {"info": "profiler_info_2.json", "metadata": "profiler_metadata.json"}
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    write_files(tmp_path, {names.get(key, key): content for key, content in files.items()})
    return read_capture(tmp_path)


def test_metadata_says_who_ran_where_with_what(tmp_path: Path) -> None:
    info = {
        "config": {"experimental_config": {"_profiler_level": "Level2"}},
        "torch_npu_version": "2.7.1",
        "cann_version": "8.3.RC1",
        "rank_id": "2",
    }
    metadata = {
        "distributed_args": {"pipeline_model_parallel_size": 2, "sequence_parallel": False, "rank": 2, "world_size": 4},
        "ENV_VARIABLES": {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"},
        "parallel_group_info": GROUPS,
        "mine": [1, 2],
    }
    trace = read_with(tmp_path, info=info, metadata=metadata)
    said = trace.metadata
    assert (said.rank, said.world_size, said.profiler_level, said.device) == (2, 4, "Level2", "NPU 0")
    assert said.software == {"torch_npu_version": "2.7.1", "cann_version": "8.3.RC1"}
    assert said.environment == {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}
    assert said.parallel_sizes["pipeline_model_parallel_size"] == 2
    assert said.parallel_groups == (
        ParallelGroup("3985310405473756128", "pp", (0, 2)),
        ParallelGroup("group_name_5", "dp_cp", (0, 1)),
    )
    assert said.extra["mine"] == [1, 2]


@pytest.mark.parametrize(
    ("stated", "capacity_bytes"),
    [(68719476736, 68719476736), ("68719476736", 68719476736), (0, None), (-5, None), (1e300, None), ("much", None)],
)
def test_a_capture_may_state_the_devices_capacity(stated: object, capacity_bytes: int | None, tmp_path: Path) -> None:
    trace = read_with(tmp_path, metadata={"device_memory_bytes": stated})
    assert trace.metadata.device_memory_bytes == capacity_bytes


@pytest.mark.parametrize("rank", [3, "3"])
def test_the_rank_may_be_a_number_or_text(rank: object, tmp_path: Path) -> None:
    write_files(tmp_path, {"kernel_details.csv": KERNELS, "profiler_info.json": {"rank_id": rank}})
    assert read_capture(tmp_path).metadata.rank == 3


def test_the_rank_of_a_single_process_is_none(tmp_path: Path) -> None:
    write_files(tmp_path / "rank_9", {"kernel_details.csv": KERNELS, "profiler_info.json": {"rank_id": -1}})
    assert read_capture(tmp_path / "rank_9").metadata.rank is None


def test_a_rank_only_the_directory_knows_is_a_notice(tmp_path: Path) -> None:
    write_files(tmp_path / "rank_9_ascend_pt", {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    trace = read_capture(tmp_path / "rank_9_ascend_pt")
    assert trace.metadata.rank == 9
    assert found(trace, "rank-from-name") is not None


def test_a_single_file_in_its_place_still_knows_its_rank(tmp_path: Path) -> None:
    write_files(tmp_path, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS, "profiler_info_3.json": {}})
    trace = read_capture(tmp_path / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv")
    assert trace.metadata.rank == 3
    assert trace.arguments(0)["Name"] == "k"


def test_times_since_the_start_of_the_machine_are_no_epoch(tmp_path: Path) -> None:
    event = {"name": "k", "pid": 2, "tid": 3, "ts": 4699801002.845, "dur": 1, "ph": "X"}
    trace = read_files(tmp_path, {"trace_view.json": [*layer("Ascend Hardware", 2, {3: "Stream 3"}), event]})
    assert trace.metadata.epoch_ns is None
    assert len(trace.events) == 1


def test_rank_and_device_are_different_numbers(tmp_path: Path) -> None:
    row = kernel_row("k", us(0)).replace("13,0,", "13,4,", 1)
    write_files(tmp_path, {"kernel_details.csv": f"{KERNEL_TITLES}\n{row}\n", "profiler_info_2.json": {}})
    trace = read_capture(tmp_path)
    assert (trace.metadata.rank, trace.metadata.device, trace.tracks[1].device) == (2, "NPU 4", 4)


def test_the_host_is_named_by_the_profilers_directory(tmp_path: Path) -> None:
    root = tmp_path / "node-07_3178231_20250109084754123_ascend_pt"
    write_files(root, {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    assert read_capture(root).metadata.host == "node-07"


def test_broken_metadata_costs_only_itself(tmp_path: Path) -> None:
    trace = read_with(tmp_path, info="{", metadata="[1]")
    assert len(trace.events) == 1
    assert trace.metadata.rank == 2
    assert found(trace, "unreadable-file") is not None


def test_summary_tables_are_kept_as_they_stand(tmp_path: Path) -> None:
    statistic = "OP Type,Core Type,Count,Total Time(us)\nMatMul,AI_CORE,3,1.5\nAdd,N/A,,\n"
    trace = read_files(tmp_path, {"kernel_details.csv": KERNELS, "op_statistic.csv": statistic})
    table = trace.tables["op_statistic"]
    assert table.columns == ("OP Type", "Core Type", "Count", "Total Time(us)")
    assert trace.strings.texts(table.texts["Core Type"]) == ["AI_CORE", "N/A"]
    assert table.numbers["Count"][0] == 3.0
    assert math.isnan(table.numbers["Count"][1])
    assert len(table) == 2


def test_tables_whose_lines_end_in_a_comma_have_no_nameless_column(tmp_path: Path) -> None:
    table = read_files(tmp_path, {"soc_pmu.csv": "block_id,ratio,\n0,NA,\n1,0.5,\n"}).tables["soc_pmu"]
    assert table.columns == ("block_id", "ratio")
    assert table.numbers["ratio"][1] == 0.5


def test_call_stacks_over_many_lines_stay_one_cell(tmp_path: Path) -> None:
    details = 'Name,Input Shapes,Call Stack,Host Self Duration(us)\r\na,,"one;\ntwo, ""three""",1.5\r\nb,,,2\r\n'
    table = read_files(tmp_path, {"operator_details.csv": details}).tables["operator_details"]
    assert len(table) == 2
    assert table.numbers["Host Self Duration(us)"].tolist() == [1.5, 2.0]


def test_a_step_column_may_be_blank(tmp_path: Path) -> None:
    titles = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free"
    table = read_files(tmp_path, {"step_trace_time.csv": f"{titles}\n,1.5,2,0,2,3\n"}).tables["step_trace_time"]
    assert math.isnan(table.numbers["Step"][0])
    assert table.numbers["Computing"].tolist() == [1.5]


def test_times_beyond_float64_stay_text_in_tables(tmp_path: Path) -> None:
    rows = f"Component,Timestamp(us),Total Reserved(MB),Device\nSLOG,{us(0.039)}\t,0.0,NPU:0\n"
    trace = read_files(tmp_path, {"npu_module_mem.csv": rows})
    assert trace.strings.texts(trace.tables["npu_module_mem"].texts["Timestamp(us)"]) == [us(0.039)]


def test_a_table_is_called_by_its_file_without_slice_and_time(tmp_path: Path) -> None:
    write_files(
        tmp_path / "mindstudio_profiler_output",
        {
            "l2_cache_slice_0_20250109084754.csv": "Stream Id,Hit Rate\n1,0.5\n",
            "l2_cache_slice_1_20250109084754.csv": "Stream Id,Hit Rate\n2,N/A\n",
        },
    )
    table = read_capture(tmp_path).tables["l2_cache"]
    assert table.numbers["Stream Id"].tolist() == [1.0, 2.0]


def test_a_single_table_is_a_capture(tmp_path: Path) -> None:
    write_files(tmp_path, {"mine.csv": "OP Type,Core Type,Count,Total Time(us)\nMatMul,AI_CORE,3,1.5\n"})
    assert list(read_capture(tmp_path / "mine.csv").tables) == ["op_statistic"]


def test_reading_stops_when_cancelled(tmp_path: Path) -> None:
    write_files(tmp_path, {"kernel_details.csv": KERNELS})
    (capture,) = AscendTextReader().find(tmp_path)
    with pytest.raises(OperationCancelled):
        AscendTextReader().read(capture, ReadContext(cancel=CancelToken(lambda: True)))


def test_a_capture_opened_from_the_cache_still_shows_arguments(tmp_path: Path) -> None:
    write_files(tmp_path / "run", {"ASCEND_PROFILER_OUTPUT/kernel_details.csv": KERNELS})
    readers: Registry[Reader] = Registry([AscendTextReader()])
    cache = TraceCache(tmp_path / "cache")
    for _ in range(2):
        trace = open_job([tmp_path / "run"], readers, cache=cache).ranks[0].trace
        assert trace.arguments(0)["Name"] == "k"


@pytest.mark.parametrize("value", [10**12, -1, 1e300, 1.5e9, "x", [1], {}, None, "9" * 400])
def test_a_number_no_job_has_is_no_rank_and_no_world_size(value: object, tmp_path: Path) -> None:
    group = {"g": {"group_name": "pp", "global_ranks": [0, value, 2]}, "h": {"global_ranks": value}}
    metadata = {"distributed_args": {"rank": value, "world_size": value}, "parallel_group_info": group}
    write_files(
        tmp_path,
        {"kernel_details.csv": KERNELS, "profiler_info.json": {"rank_id": value}, "profiler_metadata.json": metadata},
    )
    said = read_capture(tmp_path).metadata
    assert (said.rank, said.world_size) == (None, None)
    assert said.parallel_groups[0].ranks == (0, 2)


@pytest.mark.parametrize("number", ["4294967296", "65535", "1e300", "inf", "-1"])
def test_a_table_of_a_device_no_machine_has_names_none(number: str, tmp_path: Path) -> None:
    operator = {"Communication Time Info": {"Start Timestamp(us)": EPOCH_US, "Elapse Time(ms)": 1}}
    files = {
        "step_trace_time.csv": f"Device_id,Step,Computing\n{number},1,2\n",
        "communication.json": {"step1": {"collective": {"op@7": operator}}},
    }
    assert read_files(tmp_path, files).metadata.device == "NPU"
