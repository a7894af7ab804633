from dataclasses import fields, replace

import numpy as np

from engine.analyses.step_history import (
    HISTORY_TABLE,
    StepHistory,
    history_table,
    rolling_mean,
    rolling_median,
    step_history,
)
from tests.support.histories import made_history
from tests.support.trace_text import trace_from_text


def with_table(table):
    return replace(trace_from_text("gpu 7 | AA |"), tables={HISTORY_TABLE: table})


def test_a_history_comes_back_from_the_table_a_trace_carries():
    history = made_history(50, slower_from=20)
    read = step_history(with_table(history_table(history)))
    for item in fields(StepHistory):
        np.testing.assert_array_equal(getattr(read, item.name), getattr(history, item.name))


def test_a_trace_without_a_table_or_with_a_damaged_one_has_no_history():
    table = history_table(made_history(5))
    numbers = {title: column for title, column in table.numbers.items() if title != "Retries"}
    assert step_history(trace_from_text("gpu 7 | AA |")) is None
    assert step_history(with_table(replace(table, numbers=numbers))) is None
    broken = dict(table.numbers) | {"Retries": np.full(5, np.nan)}
    assert step_history(with_table(replace(table, numbers=broken))) is None


def test_a_rolling_median_keeps_the_shape_and_ignores_a_spike():
    values = np.array([1, 1, 1, 90, 1, 1, 2, 2, 2, 2])
    assert rolling_median(values, 5).tolist() == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert rolling_median(values, 1).tolist() == values.tolist()


def test_a_rolling_mean_sees_a_spike_and_takes_fewer_values_at_the_ends():
    assert rolling_mean(np.array([0, 0, 9, 0, 0]), 3).tolist() == [0, 3, 3, 3, 0]
    assert rolling_mean(np.array([4, 8]), 3).tolist() == [6, 6]
