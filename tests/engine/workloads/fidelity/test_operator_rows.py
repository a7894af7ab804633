"""Reading tables of measured operators, on tables written here."""

import csv
import json

import numpy as np
import pytest

from engine.core.errors import TraceReadError
from engine.devices import DType, load_device
from engine.workloads.fidelity.matmul_rows import DECODE_FILE, MICRO_FILE, read_matmul_rows
from engine.workloads.fidelity.operator_cases import Case
from engine.workloads.fidelity.operator_kernels import KERNELS, case_kernels
from engine.workloads.fidelity.operator_rows import read_operator_rows

COLUMNS = (
    "hw", "bench", "level", "operator", "case_id", "input_shape", "dtype", "attrs", "baseline_us", "roofline_t_hw_us",
    "ratio", "status", "note", "source",
)  # fmt: skip


def row(operator, shapes, dtypes, *, device="910b2", attributes=None, time_us=10, roofline="", note=""):
    values = {"hw": device, "operator": operator, "case_id": "1", "status": "measured", "note": note}
    values |= {"input_shape": json.dumps(shapes), "dtype": json.dumps(dtypes), "attrs": json.dumps(attributes or {})}
    return values | {"baseline_us": str(time_us), "roofline_t_hw_us": roofline}


@pytest.fixture
def table(tmp_path):
    def write(*rows):
        path = tmp_path / "operators.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


def test_rows_are_grouped_by_device_and_foreign_devices_left_out(table):
    path = table(
        row("gelu", [[8, 64]], ["float16"], roofline="1.5"),
        row("gelu", [[8, 64]], ["float32"], device="910b3"),
        row("gelu", [[8, 64]], ["float32"], device="950pr"),
    )
    first, second = read_operator_rows(path)
    assert (first.measured.device.id, second.measured.device.id) == ("910b2", "910b3")
    assert first.measured.kernels.read_bytes.tolist() == [8 * 64 * 2]
    assert first.measured.measured_ns.tolist() == [10_000]
    assert first.authors_ns.tolist() == [1500]
    assert np.isnan(second.authors_ns[0])


def test_an_operator_of_several_kernels_is_priced_as_their_sum(table):
    note = "x | baseline_kernels: Add×2 + RmsNorm×1 + DynamicQuant×1"
    inputs = [[[4, 64], [4, 64]], [4, 64], [64]]
    (rows,) = read_operator_rows(table(row("multi_add_rms_norm_dynamic_quant", inputs, ["float16"] * 3, note=note)))
    assert len(rows) == 1
    assert [rows.measured.kernels.families[code] for code in rows.measured.kernels.family] == [
        "elementwise", "elementwise", "rms_norm", "dynamic_quant",
    ]  # fmt: skip
    assert rows.measured.row.tolist() == [0, 0, 0, 0]


def test_an_operator_nobody_described_is_priced_by_its_bytes(table):
    (rows,) = read_operator_rows(table(row("brand_new", [[10, 100], None, [10]], ["float32", None, "int64"])))
    assert rows.measured.kernels.families == ("default",)
    assert rows.measured.kernels.read_bytes.tolist() == [10 * 100 * 4 + 10 * 8]


def test_one_bad_row_is_counted_and_the_others_are_used(table):
    good, bad = row("gelu", [[8]], ["float16"]), row("gelu", [["x"]], ["float16"])
    odd = row("grouped_matmul", [[8, 8]], ["float16"])
    single_quotes = row("gelu", [[8]], []) | {"dtype": "['float32']"}
    (rows,) = read_operator_rows(table(good, bad, odd, single_quotes, row("gelu", [[8]], ["float16"], time_us="x")))
    assert rows.names == ("gelu", "grouped_matmul", "gelu")
    assert (rows.by_bytes_count, rows.unreadable_count) == (1, 2)
    assert rows.measured.kernels.read_bytes.tolist() == [16, 128, 32]


def test_a_file_that_is_no_table_is_one_clear_error(table):
    with pytest.raises(TraceReadError, match="not the operator table"):
        read_operator_rows(table().parent / "absent.csv")


def test_plain_products_are_read_whichever_way_the_second_operand_lies():
    for second in ([64, 96], [96, 64]):
        case = Case([[32, 64], second], [DType.FP16] * 2, {}, load_device("910b2"), {})
        ((product,), by_bytes) = case_kernels("gemm", case)
        assert (product.m[0], product.n[0], product.k[0], by_bytes) == (32, 96, 64, False)


def test_fused_collectives_move_what_their_name_says():
    shapes, attributes = [[1024, 256], [256, 512]], {"is_trans_b": False, "world_size": 8}
    case = Case(shapes, [DType.FP16] * 2, attributes, load_device("910b2"), {})
    ((scattered,), _), ((summed,), _), ((gathered,), _) = (
        case_kernels(name, case) for name in ("matmul_reduce_scatter", "matmul_all_reduce", "all_gather_matmul")
    )
    assert summed.transfer_ns[0] == pytest.approx(2 * scattered.transfer_ns[0], abs=1)
    assert gathered.m[0] == 8 * 1024
    assert gathered.transfer_ns[0] == pytest.approx(4 * scattered.transfer_ns[0], rel=0.001)


def test_experts_are_counted_from_the_ends_of_their_groups():
    case = Case(
        [[100, 64], [4, 64, 32]], [DType.FP16, DType.FP16], {"group_list": [40, 40, 90, 100]}, load_device("910b2"), {}
    )
    ((product,), _) = case_kernels("grouped_matmul", case)
    assert (product.batch[0], product.m[0], product.n[0], product.k[0]) == (3, 34, 32, 64)


def test_a_convolution_is_the_product_of_its_windows():
    case = Case(
        [[2, 16, 8, 8], [32, 16, 3, 3], [32]], [DType.FP16] * 3,
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1]}, load_device("910b2"), {},
    )  # fmt: skip
    ((_, product), _) = case_kernels("conv_2d", case)
    assert (product.m[0], product.n[0], product.k[0]) == (2 * 4 * 4, 32, 16 * 9)


def test_a_fused_collective_costs_what_its_links_carry():
    shapes, attributes = [[1024, 256], [256, 512]], {"is_trans_b": False, "world_size": 8}
    case = Case(shapes, [DType.FP16] * 2, attributes, load_device("910b2"), {})
    (product,) = KERNELS["matmul_reduce_scatter"](case)
    assert product.transfer_ns[0] == pytest.approx(2 * 1024 * 512 * 7 / 8 / (7 * 28e9 * 0.68) * 1e9, rel=1e-3)


def test_matmul_rates_become_times_and_rows_without_shapes_are_left_out(tmp_path):
    (tmp_path / MICRO_FILE).write_text(
        "device,measurement,value,unit,note,source\n"
        "910B2,torch.matmul fp16 2048^3,250,TFLOPS,,host-timed\n"
        "910B2C,matmul bf16 M128 N256 K512,1,TFLOPS,,x\n"
        "910B2C,matmul bf16 best of sweep,322.5,TFLOPS,,x\n"
        "A800,matmul bf16 M128 N256 K512,1,TFLOPS,,x\n"
    )
    (tmp_path / DECODE_FILE).write_text("kernel,K,N,measured_us,M\nq_proj,5120,1024,18.2,16\n")
    micro, decode = read_matmul_rows(tmp_path)
    stated = [name for name in micro.names if name != "matmul, small"]
    assert stated == ["matmul, host-timed", "matmul"]
    assert micro.measured.measured_ns[0] == pytest.approx(2 * 2048**3 / 250e12 * 1e9)
    assert micro.measured.measured_ns[1] == pytest.approx(2 * 128 * 256 * 512 / 1e12 * 1e9)
    assert decode.measured.device.id == "910c-die"
    assert decode.measured.measured_ns.tolist() == [18_200]
