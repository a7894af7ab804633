"""Operators as columns and what is counted of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.devices import DType
from engine.runtime.cost import NO_WINDOW, concatenate, grouped_matmul, matmul
from engine.runtime.cost.catalogue import flash_attention, norm, swiglu
from engine.runtime.cost.operators import visible_scores


def scores_by_hand(queries, keys, window, *, causal):
    first = max(keys - queries, 0)
    reach = min(window or keys, keys)
    return sum(min(first + query + 1, reach) if causal else reach for query in range(queries))


@given(
    queries=st.integers(1, 40), extra=st.integers(0, 40), window=st.integers(0, 90), causal=st.booleans()
)  # fmt: skip
def test_visible_scores_are_those_counted_one_by_one(queries, extra, window, causal):
    keys = queries + extra
    operator = flash_attention(1, 1, 1, queries, keys, 64, causal=causal, window=window)
    assert visible_scores(operator).tolist() == [scores_by_hand(queries, keys, window, causal=causal)]


def test_a_matmul_counts_two_operations_per_product_and_each_operand_once():
    table = matmul([16, 32], 64, 128, DType.BF16, batch=3)
    assert table.flop.tolist() == [2 * 3 * 16 * 64 * 128, 2 * 3 * 32 * 64 * 128]
    assert table.read_bytes[0] == 3 * (16 * 128 + 128 * 64) * 2
    assert table.write_bytes[0] == 3 * 16 * 64 * 2


def test_experts_without_tokens_are_neither_computed_nor_read():
    table = grouped_matmul(32, 4, 64, 128)
    assert table.batch.tolist() == [4]
    assert table.read_bytes.tolist() == [(4 * 128 + 4 * 128 * 64) * 2]


def test_tables_join_under_one_list_of_families():
    first, second = norm(8, 64), swiglu([8, 9], 64)
    joined = concatenate([first, second, first])
    assert joined.families == ("rms_norm", "swiglu")
    assert joined.family.tolist() == [0, 1, 1, 0]
    assert joined.m.tolist() == [8, 8, 9, 8]
    assert len(concatenate([])) == 0


def test_columns_cannot_be_written_or_differ_in_length():
    table = matmul(1, 2, 3)
    with pytest.raises(ValueError, match="read-only"):
        table.m[0] = 5
    with pytest.raises(ValueError, match="different lengths"):
        type(table)(**{**{name: getattr(table, name) for name in table.__slots__}, "m": np.zeros(2, np.int64)})


def test_a_window_limits_work_only_where_it_is_shorter_than_the_sequence():
    whole = flash_attention(1, 8, 8, 256, 256, 64, window=NO_WINDOW)
    wide = flash_attention(1, 8, 8, 256, 256, 64, window=1000)
    narrow = flash_attention(1, 8, 8, 256, 256, 64, window=16)
    assert whole.flop[0] == wide.flop[0] > narrow.flop[0]
