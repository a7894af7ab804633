import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.distinct_rows import distinct_rows


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3), st.integers(0, 10**6)), max_size=60))
def test_rows_are_joined_as_numpy_joins_whole_rows(rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    first, inverse = distinct_rows([columns[:, 0], columns[:, 1], columns[:, 2]])
    expected, first_of_numpy, inverse_of_numpy = np.unique(columns, axis=0, return_index=True, return_inverse=True)
    assert np.array_equal(columns[first], expected)
    assert np.array_equal(first, first_of_numpy)
    assert np.array_equal(inverse, inverse_of_numpy.reshape(-1))
