"""The figures errors are summed up in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.workloads.fidelity.scores import scores, spearman


def test_errors_are_relative_to_the_measurement():
    result = scores(np.array([90.0, 110.0, 200.0]), np.array([100.0, 100.0, 100.0]))
    assert result.rows_count == 3
    assert result.mape_ratio == pytest.approx(0.4)
    assert result.median_ratio == pytest.approx(0.1)
    assert result.bias_ratio == pytest.approx(1 / 3)
    assert result.p90_ratio == pytest.approx(0.82)
    assert result.spearman is None


def test_ties_share_their_mean_rank():
    assert spearman(np.array([1.0, 2.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(0.9487, abs=1e-4)
    assert spearman(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=30, unique=True))
def test_any_growing_function_keeps_the_order(values):
    column = np.array(values, np.float64)
    assert spearman(column, column**3) == pytest.approx(1.0)
    assert spearman(column, -column) == pytest.approx(-1.0)
