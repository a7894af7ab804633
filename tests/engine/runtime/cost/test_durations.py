"""What prices must obey whatever the fitted constants are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.devices import DType, device_ids, load_device
from engine.runtime.cost import concatenate, grouped_matmul, host_durations, matmul, operator_durations
from engine.runtime.cost.catalogue import adamw, elementwise, flash_attention, norm, softmax, swiglu

SIZES = st.integers(1, 9000)
DEVICES = st.sampled_from(device_ids())


@given(name=DEVICES, m=SIZES, n=SIZES, k=SIZES)
def test_a_matmul_is_never_faster_than_the_roofline(name, m, n, k):
    device = load_device(name)
    operator = matmul(m, n, k, DType.FP16)
    compute_ns = operator.flop[0] / device.cube_flop_per_s(DType.FP16) * 1e9
    assert operator_durations(device, operator)[0] >= compute_ns


@given(name=DEVICES, rows=SIZES, hidden=SIZES)
def test_an_operator_of_more_rows_is_never_faster(name, rows, hidden):
    device = load_device(name)
    for build in (norm, swiglu, softmax):
        fewer, more = operator_durations(device, build([rows, rows + 1], hidden))
        assert more >= fewer


@given(tokens=SIZES, keys=SIZES)
def test_attention_over_a_window_is_never_slower(tokens, keys):
    device = load_device("910b2")
    whole, narrow = operator_durations(
        device, flash_attention(2, 8, 8, tokens, tokens + keys, 128, window=np.array([0, 128]))
    )
    assert narrow <= whole


def test_a_table_is_priced_as_its_rows_are():
    device = load_device("910b2")
    tables = [
        matmul([64, 4096], 4096, 1024),
        norm(4096, 1024),
        flash_attention(1, 16, 8, 4096, 4096, 128),
        adamw(10**6),
    ]
    together = operator_durations(device, concatenate(tables))
    assert together.tolist() == np.concatenate([operator_durations(device, table) for table in tables]).tolist()
    assert together.dtype == np.int64


def test_a_bigger_sibling_is_faster_at_large_work():
    operators = concatenate([matmul(8192, 8192, 8192), elementwise(10**9), flash_attention(8, 32, 32, 4096, 4096, 128)])
    slow, fast = (operator_durations(load_device(name), operators) for name in ("910b4", "910b2"))
    assert np.all(fast < slow)


def test_host_time_does_not_depend_on_sizes_so_small_work_is_host_bound():
    device = load_device("910b2")
    operators = elementwise([1, 10**9])
    host_ns, device_ns = host_durations(device, operators), operator_durations(device, operators)
    assert host_ns[0] == host_ns[1]
    assert device_ns[0] < host_ns[0] < device_ns[1]


def test_no_operators_cost_nothing():
    assert len(operator_durations(load_device("910b2"), concatenate([]))) == 0


@pytest.mark.parametrize("groups", [1, 8])
def test_experts_read_their_weights_once(groups):
    device = load_device("910b2")
    durations = operator_durations(device, grouped_matmul(groups, groups, 4096, 4096))
    assert durations[0] >= groups * 4096 * 4096 * 2 / device.hbm_bytes_per_s * 1e9


def test_repeated_work_is_priced_once_and_alike():
    device = load_device("910b3")
    order = np.array([2, 0, 1, 2, 2, 0])
    mixed = concatenate([matmul([64, 128, 256], 512, 512), norm([64, 128, 256], 512)])
    once = operator_durations(device, mixed)
    rows = np.concatenate([order, order + 3])
    assert operator_durations(device, mixed.select(rows)).tolist() == once[rows].tolist()


def test_a_kernel_with_nothing_to_do_returns_at_once():
    device = load_device("910b2")
    nothing, little = operator_durations(device, elementwise([0, 1]))
    assert 0 < nothing < little
    assert (
        operator_durations(device, grouped_matmul(8, 0, 64, 64))[0] < operator_durations(device, matmul(1, 64, 64))[0]
    )


def test_a_transposed_operand_and_a_hidden_collective_cost_what_they_take():
    device = load_device("910b2")
    plain = operator_durations(device, matmul(4096, 4096, 4096))[0]
    assert operator_durations(device, matmul(4096, 4096, 4096, transposed=True))[0] > plain
    hidden = operator_durations(device, matmul(4096, 4096, 4096, transfer_ns=10 * plain))[0]
    assert 10 * plain <= hidden < 10.5 * plain


def test_a_cache_keeps_what_was_just_written_and_not_what_is_old():
    device = load_device("910b2")
    fresh, old = operator_durations(device, elementwise(8 << 20, cold=np.array([False, True])))
    assert old > 1.3 * fresh


@pytest.mark.parametrize("name", ["910b2", "a100-80g", "h100"])
def test_large_square_products_keep_near_the_best_published_rate(name):
    device = load_device(name)
    published = max(
        constant.value for key, constant in device.measured.items() if "best_flop" in key and "matmul" in key
    )
    sizes = np.array([4096, 8192, 12288])
    rate = 2.0 * sizes**3 / operator_durations(device, matmul(sizes, sizes, sizes)) * 1e9
    assert np.all(rate > 0.85 * published)
    assert np.all(rate < 1.02 * published)
