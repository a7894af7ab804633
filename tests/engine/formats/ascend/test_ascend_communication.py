from pathlib import Path
from typing import Any

import pytest

from engine.trace import Trace, TrackKind
from tests.support.ascend_capture import EPOCH_US, KERNEL_TITLES, found, kernel_row, layer, read_files, slice_event, us

GROUP = "90.91.105.46%enp189s0f0_60000_0_1736410538306028"


def operator(start: float, elapsed_ms: float, hccs_mb: float = 0.0, **more: Any) -> dict[str, Any]:
    def link(size_mb: float) -> dict[str, Any]:
        return {
            "Transit Size(MB)": size_mb,
            "Transit Time(ms)": size_mb / 20,
            "Bandwidth(GB/s)": 20,
            "Large Packet Ratio": 0.25,
            "Size Distribution": {},
        }

    return {
        "Communication Time Info": {
            "Start Timestamp(us)": EPOCH_US + start,
            "Elapse Time(ms)": elapsed_ms,
            "Transit Time(ms)": 0.25,
            "Wait Time(ms)": 0.5,
            "Synchronization Time(ms)": 0.125,
            "Idle Time(ms)": elapsed_ms - 0.75,
            "Wait Time Ratio": 0.66,
            "Synchronization Time Ratio": 0.1,
        },
        "Communication Bandwidth Info": {
            "RDMA": link(0),
            "HCCS": link(hccs_mb),
            "PCIE": link(0),
            "SDMA": link(hccs_mb),
            "SIO": link(0),
        },
        **more,
    }


def communication(*operators: tuple[str, dict[str, Any]], step: str = "step13") -> dict[str, Any]:
    return {step: {"p2p": {}, "collective": {**dict(operators), "Total Op Info": {"Communication Time Info": {}}}}}


def texts(trace: Trace, column: str) -> list[str]:
    return trace.strings.texts(getattr(trace.collectives, column))


def test_operators_alone_make_a_timeline_of_their_groups(tmp_path: Path) -> None:
    content = communication(
        (f"hcom_allReduce__1_0_1@{GROUP}", operator(0.25, 2.0, 8.388608)), ("hcom_allGather__2_0_1@77", operator(9, 1))
    )
    trace = read_files(tmp_path, {"communication.json": content})
    tracks = [trace.tracks[index] for index in trace.tracks_of(TrackKind.COMMUNICATION_GROUP).tolist()]
    assert [track.group for track in tracks] == [GROUP, "77"]
    assert trace.events.start_ns.tolist() == [0, 8750]
    assert trace.events.duration_ns.tolist() == [2_000_000, 1_000_000]
    notice = found(trace, "rounded-starts")
    assert notice is not None
    assert notice.count == 2
    assert trace.arguments(0)["Communication Time Info"]["Wait Time(ms)"] == 0.5


def test_the_group_is_what_stands_after_the_last_at(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("hcom_x@y__1_0_1@7%@9", operator(0, 1)))})
    assert texts(trace, "name") == ["hcom_x@y__1_0_1@7%"]
    assert texts(trace, "group") == ["9"]


def test_times_are_milliseconds_and_sizes_are_millions_of_bytes(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("op@7", operator(0, 2.0, 8.388608)))})
    table = trace.collectives
    assert table.elapsed_ns.tolist() == [2_000_000]
    assert table.vendor_transit_ns.tolist() == [250_000]
    assert table.vendor_wait_ns.tolist() == [500_000]
    assert table.vendor_synchronization_ns.tolist() == [125_000]
    assert table.vendor_idle_ns.tolist() == [1_250_000]
    assert table.bytes.tolist() == [8_388_608]
    assert table.step.tolist() == [13]


def test_links_add_up_without_the_sum_beside_them(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("op@7", operator(0, 2.0, 8.388608)))})
    assert trace.strings.texts(trace.links.link) == ["HCCS"]
    assert trace.links.bytes.tolist() == [8_388_608]
    assert trace.links.transit_ns.tolist() == [419_430]
    assert trace.links.large_packet_ratio.tolist() == [0.25]


def test_an_operator_that_moved_nothing_has_no_payload(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("op@7", operator(0, 2.0)))})
    assert trace.collectives.bytes.tolist() == [-1]
    assert len(trace.links) == 0


def test_a_capture_without_steps_has_the_key_step(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("op@7", operator(0, 1)), step="step")})
    assert trace.collectives.step.tolist() == [-1]


def test_the_kernel_tables_exact_times_win_over_rounded_ones(tmp_path: Path) -> None:
    rows = f"{KERNEL_TITLES}\n{kernel_row('op', us(0.063), '2000.001', 'N/A', 'COMMUNICATION')}\n"
    content = communication(("op@7", operator(0.0, 2.0, 1.0)))
    trace = read_files(tmp_path, {"kernel_details.csv": rows, "communication.json": content})
    assert len(trace.events) == len(trace.collectives) == 1
    assert trace.metadata.epoch_ns == EPOCH_US * 1000 + 63
    assert trace.collectives.elapsed_ns.tolist() == [2_000_001]
    assert trace.collectives.vendor_wait_ns.tolist() == [500_000]
    assert trace.tracks[1].group == "7"


def test_calls_of_one_name_are_told_apart_by_their_start(tmp_path: Path) -> None:
    rows = [kernel_row("op", us(at), "1000", "N/A", "HCCL") for at in (0, 50_000)]
    content = {
        "step1": {"collective": {"op@7": operator(50_000.0, 9.0)}},
        "step0": {"collective": {"op@7": operator(0.0, 3.0)}},
    }
    files = {"kernel_details.csv": "\n".join([KERNEL_TITLES, *rows]), "communication.json": content}
    trace = read_files(tmp_path, files)
    assert trace.collectives.vendor_idle_ns.tolist() == [2_250_000, 8_250_000]
    assert trace.collectives.event.tolist() == [0, 1]


def test_operators_missing_on_either_side_are_counted(tmp_path: Path) -> None:
    rows = f"{KERNEL_TITLES}\n{kernel_row('seen', us(0), '5', 'N/A', 'HCCL')}\n"
    files = {"kernel_details.csv": rows, "communication.json": communication(("described@7", operator(9, 1)))}
    trace = read_files(tmp_path, files)
    assert texts(trace, "name") == ["seen", "described"]
    assert trace.collectives.event.tolist() == [0, -1]
    assert found(trace, "collective-not-on-timeline") is not None
    assert found(trace, "collective-not-described") is not None


def test_the_payload_is_what_the_trace_says_where_it_does(tmp_path: Path) -> None:
    event = slice_event("op", 3, 0, 0, 2000, args={"data_type": "FP16", "count": 4097, "connection_id": 5})
    trace_view = [*layer("HCCL", 3, {0: "Group 0 Communication"}), event]
    content = communication(("op@7", operator(0.0, 2.0, 28.6)))
    trace = read_files(tmp_path, {"trace_view.json": trace_view, "communication.json": content})
    assert trace.collectives.bytes.tolist() == [8194]
    assert texts(trace, "group") == ["7"]
    assert trace.tracks[int(trace.tracks_of(TrackKind.COMMUNICATION_GROUP)[0])].group == "7"


def test_an_unknown_element_type_leaves_the_payload_to_the_file(tmp_path: Path) -> None:
    event = slice_event("op", 3, 0, 0, 2000, args={"data_type": "INVALID_TYPE", "count": 4097})
    trace_view = [*layer("Communication", 3, {0: "Group 0 Communication"}), event]
    content = communication(("op@7", operator(0.0, 2.0, 1.5)))
    trace = read_files(tmp_path, {"trace_view.json": trace_view, "communication.json": content})
    assert trace.collectives.bytes.tolist() == [1_500_000]


def test_an_entry_without_times_is_counted(tmp_path: Path) -> None:
    trace = read_files(tmp_path, {"communication.json": communication(("a@7", {}), ("b@7", operator(0, 1)))})
    assert texts(trace, "name") == ["b"]
    assert found(trace, "unreadable-collective") is not None
    assert trace.arguments(0)["operator"] == "b@7"


def test_a_broken_file_costs_only_itself(tmp_path: Path) -> None:
    rows = f"{KERNEL_TITLES}\n{kernel_row('k', us(0))}\n"
    for content in ('{"step13": {"p2p"', "[]", ""):
        trace = read_files(tmp_path, {"kernel_details.csv": rows, "communication.json": content})
        assert len(trace.events) == 1
        assert found(trace, "unreadable-file") is not None


def test_the_matrix_is_kept_as_a_table(tmp_path: Path) -> None:
    link = {
        "Transport Type": "HCCS",
        "Transit Size(MB)": 8.388608,
        "Transit Time(ms)": 0.4,
        "Bandwidth(GB/s)": 20.9,
        "Op Name": "hcom_allReduce__1_0_1",
    }
    content = {"step13": {"collective": {"allreduce-top1@7@8": {"0-1": link}}}}
    table = read_files(tmp_path, {"communication_matrix.json": content}).tables["communication_matrix"]
    assert len(table) == 1
    assert table.numbers["Transit Size(MB)"].tolist() == [8.388608]
    assert table.columns[:6] == ("Step", "Kind", "Operator", "Group", "Source", "Destination")


@pytest.mark.parametrize("number", [1e300, -1e300, "1" * 400, "Infinity", 10**30])
def test_numbers_beyond_int64_count_as_absent(tmp_path, number):
    times = {"Start Timestamp(us)": EPOCH_US + 0.5, "Elapse Time(ms)": number, "Wait Time(ms)": number}
    bandwidth = {"SDMA": {"Transit Size(MB)": number, "Transit Time(ms)": number}}
    operator = {"Communication Time Info": times, "Communication Bandwidth Info": bandwidth}
    good = {"Communication Time Info": {"Start Timestamp(us)": EPOCH_US + 9, "Elapse Time(ms)": 1}}
    steps = {"step99999999999999": {"collective": {"odd@7": operator, "good@7": good}}}
    trace = read_files(tmp_path, {"communication.json": steps})
    assert [trace.name(event) for event in range(len(trace.events))] == ["good"]
    assert trace.collectives.vendor_wait_ns.tolist() == [-1, -1]
    assert len(trace.links) == 0
    assert found(trace, "collective-not-on-timeline").count == 1
