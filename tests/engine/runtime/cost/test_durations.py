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
