"""Kernels of a capture as operators, from the texts the profiler writes."""

import pytest

from engine.devices import DType
from engine.workloads.calibration.kernel_shapes import kernel_operator
from engine.workloads.calibration.kernel_texts import kernel_shapes


def operator(op_type, inputs, types, outputs, output_types):
    parsed = kernel_shapes(op_type, inputs, types, outputs, output_types)
    return kernel_operator(parsed) if parsed is not None else None


@pytest.mark.parametrize(
    ("inputs", "outputs", "expected"),
    [
        ('"4096,1024;1024,3072"', '"4096,3072"', (4096, 3072, 1024, False)),
        ('"4096,1024;3072,1024"', '"4096,3072"', (4096, 3072, 1024, False)),
        ('"4096,6144;4096,1024"', '"6144,1024"', (6144, 1024, 4096, True)),
        ('"9496,256,16,16;64,256,16,16"', '"64,9496,16,16"', (151936, 1024, 4096, False)),
    ],
)
def test_a_matmul_is_found_whatever_is_transposed_or_blocked(inputs, outputs, expected):
    found = operator("MatMulV3", inputs, "DT_BF16;DT_BF16", outputs, "DT_BF16")
    assert (found.m[0], found.n[0], found.k[0], found.transposed[0]) == expected
    assert found.batch[0] == 1


def test_batched_products_share_no_dimension():
    found = operator("BatchMatMulV2", "8,64,32;8,32,16", "FLOAT16;FLOAT16", "8,64,16", "FLOAT16")
    assert (found.batch[0], found.m[0], found.n[0], found.k[0]) == (8, 64, 16, 32)


def test_products_that_do_not_fit_together_are_not_priced():
    assert operator("MatMulV3", "4096,1000;999,3072", "DT_BF16;DT_BF16", "4096,3072", "DT_BF16") is None


def test_attention_is_read_from_its_statistics():
    inputs = "4096,1,2048;4096,1,1024;4096,1,1024;;;;2048,2048"
    types = "DT_BF16;DT_BF16;DT_BF16;DT_BF16;UINT8;DT_BF16;BOOL"
    outputs = "1,16,4096,8;1,16,4096,8;;4096,1,2048"
    found = operator("FlashAttentionScore", inputs, types, outputs, "FLOAT;FLOAT;DT_BF16;DT_BF16")
    assert (found.batch[0], found.heads[0], found.kv_heads[0], found.m[0], found.n[0], found.k[0]) == (
        1, 16, 8, 4096, 4096, 128,
    )  # fmt: skip
    assert found.causal[0]
    assert found.families == ("flash_attention",)


def test_bytes_come_from_shapes_and_types():
    found = operator("Cast", "4096,1,151936", "FLOAT", "4096,1,151936", "DT_BF16")
    assert found.read_bytes[0] == 4096 * 151936 * 4
    assert found.write_bytes[0] == 4096 * 151936 * 2


def test_gradients_added_to_accumulators_and_flat_buffers_are_cold():
    assert operator("Add", "6144,1024;6144,1024", "FLOAT;DT_BF16", "6144,1024", "FLOAT").cold[0]
    assert operator("Mul", "6291456;", "FLOAT;FLOAT", "6291456", "FLOAT").cold[0]
    assert not operator("Add", "4096,1,1024;4096,1,1024", "DT_BF16;DT_BF16", "4096,1,1024", "DT_BF16").cold[0]


def test_an_optimizer_writes_what_the_profiler_does_not_list():
    found = operator("ApplyAdamWV2", "1024;1024;1024;1024;1", "FLOAT;FLOAT;FLOAT;FLOAT;INT64", "N/A", "N/A")
    assert (found.read_bytes[0], found.write_bytes[0]) == (4 * 4 * 1024, 3 * 4 * 1024)


def test_values_put_in_place_do_not_count_the_tensor_they_are_put_into():
    found = operator("IndexPutV2", "4096,151936;4096", "FLOAT;FLOAT", "4096,151936", "FLOAT")
    assert (found.n[0], found.write_bytes[0]) == (4096, 4 * 4096)


def test_activations_count_the_elements_they_work_on():
    found = operator("SwiGlu", "4096,6144", "DT_BF16", "4096,3072", "DT_BF16")
    assert (found.m[0], found.n[0]) == (4096, 3072)
    assert found.dtype[0] == DType.BF16


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "expected"),
    [
        ("Conv2D", "32,8,27,27,8;200,12,16,8;192", "32,24,27,27,8", ("conv", 32 * 27 * 27, 192, 1600)),
        (
            "Conv2DBackpropInput", "4;200,12,16,8;32,24,27,27,8", "32,8,27,27,8",
            ("conv_backprop_input", 32 * 27 * 27, 1600, 192),
        ),
        (
            "Conv2DBackpropFilter", "32,8,27,27,8;4;32,24,27,27,8", "200,12,16,8",
            ("conv_backprop_filter", 192, 1600, 32 * 27 * 27),
        ),
    ],
)  # fmt: skip
def test_a_convolution_is_read_from_its_blocked_shapes(op_type, inputs, outputs, expected):
    types = ";".join("INT32" if part == "4" else "FLOAT" for part in inputs.split(";"))
    found = operator(op_type, inputs, types, outputs, "FLOAT")
    assert (found.families[0], found.m[0], found.n[0], found.k[0]) == expected


def test_convolutions_in_other_layouts_are_not_priced():
    assert operator("Conv2D", "32,3,8,8;64,3,3,3", "FLOAT;FLOAT", "32,64,8,8", "FLOAT") is None


@pytest.mark.parametrize(
    ("op_type", "inputs"), [("MemSet", "N/A"), ("BrandNewOp", "8,8"), ("Add", "not,a,shape"), ("Add", "")]
)
def test_what_cannot_be_priced_is_none(op_type, inputs):
    found = operator(op_type, inputs, "FLOAT", "N/A", "N/A")
    assert found is None or found.m[0] * found.n[0] >= 1
