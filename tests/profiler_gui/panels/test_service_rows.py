import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler_gui.panels.serving.load import column_maxima, point_maxima
from profiler_gui.panels.serving.rows import Order, request_rows, shown_rows, slices_of
from tests.support.services import served, service_document


@pytest.fixture(scope="module")
def run():
    return served(service_document())[0].run


@pytest.mark.parametrize("order", list(Order))
def test_every_request_has_one_row_with_all_it_did(run, order):
    rows = request_rows(run, order)
    assert sorted(rows.order.tolist()) == list(range(len(run.requests)))
    assert np.array_equal(rows.order[rows.row], np.arange(len(rows)))
    spent = np.bincount(run.phases.request, weights=run.phases.end_ns - run.phases.start_ns)
    again = np.add.reduceat(rows.end_ns - rows.start_ns, rows.first[:-1])
    assert np.array_equal(spent, again)


def test_the_longest_wait_stands_first(run):
    waited_ns = (run.requests.first_token_ns - run.requests.arrival_ns)[request_rows(run, Order.WAIT).order]
    assert np.all(np.diff(waited_ns) <= 0)


def test_as_many_rows_are_drawn_as_there_are_pixels_and_the_slowest_never_vanishes(run):
    rows = request_rows(run, Order.ARRIVAL)
    shown, size = shown_rows(rows, 0, len(rows), 5)
    assert len(shown) <= 5
    assert size == 5.0
    assert int(rows.weight_ns.argmax()) in shown
    every, one = shown_rows(rows, 0, len(rows), 100)
    assert one == 1.0
    assert np.array_equal(every, np.arange(len(rows)))


def test_scrolling_does_not_change_who_stands_for_a_group_of_rows(run):
    rows = request_rows(run, Order.ARRIVAL)
    above, size = shown_rows(rows, 0, 20, 4)
    below, again = shown_rows(rows, 2, 22, 4)
    assert size == again
    common = set((above // int(size)).tolist()) & set((below // int(size)).tolist())
    inner = [group for group in common if (group + 1) * size <= 20]
    assert {row for row in above.tolist() if row // int(size) in inner} == {
        row for row in below.tolist() if row // int(size) in inner
    }


def test_a_slice_is_never_narrower_than_a_pixel_and_what_is_out_of_view_is_left_out(run):
    rows = request_rows(run, Order.ARRIVAL)
    shown, size = shown_rows(rows, 0, len(rows), 100)
    slices = slices_of(rows, shown, size, 0, rows.span_ns, 1e7)
    assert len(slices.top) == len(run.phases)
    assert slices.width_ns.min() >= 1e7
    assert len(slices_of(rows, shown, size, rows.span_ns + 1.0, rows.span_ns + 2.0, 1.0).top) == 0


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), max_size=40),
    st.integers(0, 300),
    st.integers(1, 400),
    st.integers(1, 30),
)
def test_a_column_shows_the_largest_value_that_holds_in_it(steps, view_start, length, count):
    start = np.cumsum([gap for gap, _ in steps], dtype=np.int64)
    values = np.array([value for _, value in steps], dtype=np.int64)
    edges, largest = column_maxima(start, values, view_start, view_start + length, count)
    for column in range(count):
        holding = [0] if not len(start) or start[0] > edges[column] else []
        for number in range(len(start)):
            ends = start[number + 1] if number + 1 < len(start) else np.inf
            if start[number] <= edges[column + 1] and ends > edges[column]:
                holding.append(int(values[number]))
        assert largest[column] == max(holding)


def test_moments_are_joined_by_their_largest_value():
    times = np.array([0, 1, 2, 50, 99], dtype=np.int64)
    values = np.array([3, 9, 4, 7, 1], dtype=np.int64)
    moments, largest = point_maxima(times, values, 0, 100, 10)
    assert moments.tolist() == [5.0, 55.0, 95.0]
    assert largest.tolist() == [9.0, 7.0, 1.0]
    assert point_maxima(times, values, 200, 300, 10)[0].size == 0
