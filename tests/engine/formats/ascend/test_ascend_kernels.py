from pathlib import Path

import pytest

from engine.core.errors import EmptyTraceError, TraceSyntaxError
from engine.trace import Severity, Trace, TrackKind
from tests.support.ascend_capture import EPOCH_US, KERNEL_TITLES, found, kernel_row, read_files, us

LEVEL0 = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"


def read(tmp_path: Path, titles: str, *rows: str, end: str = "\n") -> Trace:
    return read_files(tmp_path, {"kernel_details.csv": end.join([titles, *rows, ""])})


def kernel_texts(trace: Trace, column: str) -> list[str]:
    return trace.strings.texts(getattr(trace.kernels, column))


def test_a_kernel_table_alone_is_a_device_timeline(tmp_path: Path) -> None:
    rows = [kernel_row("b", us(10.25), "2.5", "3"), kernel_row("a", us(0.001), "4.0", "2")]
    trace = read(tmp_path, KERNEL_TITLES, *rows)
    assert [(track.kind, track.name, track.stream) for track in trace.tracks] == [
        (TrackKind.PROCESS, "Ascend Hardware", -1),
        (TrackKind.DEVICE_STREAM, "Stream 2", 2),
        (TrackKind.DEVICE_STREAM, "Stream 3", 3),
    ]
    assert trace.metadata.epoch_ns == EPOCH_US * 1000 + 1
    assert trace.events.start_ns.tolist() == [0, 10_249]
    assert trace.events.duration_ns.tolist() == [4000, 2500]
    assert [trace.category(event) for event in range(2)] == ["AI_CORE", "AI_CORE"]
    assert trace.metadata.device == "NPU 0"


def test_shapes_lose_the_quotes_the_file_puts_around_them(tmp_path: Path) -> None:
    trace = read(tmp_path, KERNEL_TITLES, kernel_row("a", us(0)))
    assert kernel_texts(trace, "input_shapes") == ["8,16;16,4"]
    assert kernel_texts(trace, "output_shapes") == ["8,4"]
    assert kernel_texts(trace, "input_types") == ["DT_BF16;DT_BF16"]
    assert kernel_texts(trace, "op_type") == ["MatMulV3"]
    assert trace.kernels.block_count.tolist() == [24]
    assert trace.kernels.step.tolist() == [13]


def test_every_column_of_a_row_can_be_inspected(tmp_path: Path) -> None:
    trace = read(tmp_path, KERNEL_TITLES + ",aicore_time(us)", kernel_row("a", us(0)) + ",1.25")
    assert trace.arguments(0)["aicore_time(us)"] == "1.25"
    assert trace.arguments(0)["Start Time(us)"] == us(0)


def test_a_level0_table_has_no_types_no_shapes_and_no_streams(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        LEVEL0,
        f"50,trans_TransData_0,N/A,N/A,{us(0)}\t,50.621,0,0",
        f"50,hcom_allReduce__1_0_1,N/A,HCCL,{us(60)}\t,7.5,0,0",
        end="\r\n",
    )
    assert [track.name for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM] == ["Device tasks"]
    assert trace.kernels.op_type.tolist() == [-1, -1]
    assert trace.kernels.input_shapes.tolist() == [-1, -1]
    assert len(trace.events_of(TrackKind.COMMUNICATION_GROUP)) == 1


@pytest.mark.parametrize(
    ("titles", "row"),
    [
        (
            "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Stream ID",
            "4,k,Add,AI_CORE,{},2,7",
        ),
        ("Op Name,Start Time(us),Task Duration(us)", "k,{},2"),
        ("Step ID,Name,Start Time(us),Duration(us),Block Num,A column nobody knows", "1,k,{},2,8,x"),
    ],
)
def test_column_sets_of_other_releases_are_understood(titles: str, row: str, tmp_path: Path) -> None:
    trace = read(tmp_path, titles, row.format(us(0)))
    assert trace.name(0) == "k"
    assert trace.events.duration_ns.tolist() == [2000]


def test_the_newer_word_for_the_block_count_is_the_same_column(tmp_path: Path) -> None:
    trace = read(tmp_path, "Step ID,Name,Start Time(us),Duration(us),Block Num", f"1,k,{us(0)},2,8")
    assert trace.kernels.block_count.tolist() == [8]
    assert trace.kernels.step.tolist() == [1]


@pytest.mark.parametrize("core", ["HCCL", "COMMUNICATION"])
def test_communication_rows_stand_on_no_stream(core: str, tmp_path: Path) -> None:
    trace = read(tmp_path, KERNEL_TITLES, kernel_row("hcom_send__1_0_1", us(0), stream="N/A", core=core))
    assert [track.name for track in trace.tracks] == ["Communication", "Communication"]
    assert trace.tracks[1].kind is TrackKind.COMMUNICATION_GROUP
    assert trace.collectives.event.tolist() == [0]
    assert trace.collectives.elapsed_ns.tolist() == [5000]


def test_one_bad_row_does_not_cost_the_table(tmp_path: Path) -> None:
    rows = [kernel_row("a", us(0)), "13,0,cut", kernel_row("b", "N/A"), kernel_row("c", us(20))]
    trace = read(tmp_path, KERNEL_TITLES, *rows)
    assert [trace.name(event) for event in range(2)] == ["a", "c"]
    assert {item.code: (item.count, item.severity) for item in trace.diagnostics} == {
        "broken-table-row": (1, Severity.DATA_LOSS),
        "incomplete-table-row": (1, Severity.DATA_LOSS),
    }
    assert trace.arguments(1)["Name"] == "c"


def test_a_comma_in_an_op_name_costs_only_its_row(tmp_path: Path) -> None:
    trace = read(tmp_path, LEVEL0, f"50,with,comma,N/A,N/A,{us(0)},1,0,0", f"50,fine,N/A,N/A,{us(9)},1,0,0")
    assert [trace.name(event) for event in range(len(trace.events))] == ["fine"]
    broken = found(trace, "broken-table-row")
    assert broken is not None
    assert broken.position.byte == len(LEVEL0) + 1


def test_a_table_cut_inside_a_row_gives_the_rows_before(tmp_path: Path) -> None:
    text = f"{KERNEL_TITLES}\n{kernel_row('a', us(0))}\n{kernel_row('b', us(9))}"
    trace = read_files(tmp_path, {"kernel_details.csv": text[:-30]})
    assert [trace.name(event) for event in range(len(trace.events))] == ["a"]
    assert found(trace, "broken-table-row") is not None


def test_times_rounded_by_a_spreadsheet_are_reported(tmp_path: Path) -> None:
    rows = [kernel_row(f"k{index}", "1.73641E+15") for index in range(4)]
    trace = read(tmp_path, KERNEL_TITLES, *rows)
    warning = found(trace, "rounded-times")
    assert warning is not None
    assert (warning.severity, warning.count) == (Severity.DATA_LOSS, 4)
    assert trace.metadata.epoch_ns == 1_736_410_000_000_000_000


def test_a_table_of_titles_only_is_an_empty_capture(tmp_path: Path) -> None:
    with pytest.raises(EmptyTraceError, match="no file of the capture holds anything"):
        read(tmp_path, KERNEL_TITLES)


def test_an_empty_file_alone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TraceSyntaxError, match=r"kernel_details\.csv.*empty"):
        read_files(tmp_path, {"kernel_details.csv": b""})


def test_a_table_without_its_main_columns_costs_only_itself(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"kernel_details.csv": "Name\nx\n", "op_statistic.csv": "OP Type,Count\nAdd,3\n"})
    assert len(trace.events) == 0
    assert trace.tables["op_statistic"].numbers["Count"].tolist() == [3.0]
    error = found(trace, "unreadable-file")
    assert error is not None
    assert "Start Time(us)" in error.message


def test_a_negative_duration_is_counted_and_taken_as_zero(tmp_path: Path) -> None:
    trace = read(tmp_path, KERNEL_TITLES, kernel_row("a", us(0), "-1.5"))
    assert trace.events.duration_ns.tolist() == [0]
    assert found(trace, "negative-duration") is not None


def test_unicode_kernel_names_are_kept(tmp_path: Path) -> None:
    assert read(tmp_path, KERNEL_TITLES, kernel_row("自定义算子", us(0))).name(0) == "自定义算子"


def test_a_duration_longer_than_any_trace_is_counted_and_taken_as_zero(tmp_path):
    trace = read(tmp_path, KERNEL_TITLES, kernel_row("a", us(0), duration="2000000000000000"))
    assert trace.events.duration_ns.tolist() == [0]
    assert found(trace, "unusable-duration").count == 1


@pytest.mark.parametrize("none", ["N/A", "NA", "", "-1", "4294967295"])
def test_every_way_of_writing_none_means_none(tmp_path: Path, none: str) -> None:
    titles = "Step Id,Device_id,Stream ID,Name,Accelerator Core,Start Time(us),Duration(us),Block Dim"
    trace = read(tmp_path, titles, f"{none},{none},{none},k,AI_CORE,{us(1)},5,{none}")
    assert (trace.kernels.step.tolist(), trace.kernels.block_count.tolist()) == ([-1], [-1])
    assert [track.stream for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM] == [-1]
    assert trace.diagnostics == ()


def test_the_all_ones_stream_of_16_bits_is_none(tmp_path: Path) -> None:
    trace = read(tmp_path, "Stream ID,Name,Start Time(us),Duration(us)", f"65535,k,{us(1)},5", f"7,k,{us(9)},5")
    assert [track.stream for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM] == [-1, 7]
