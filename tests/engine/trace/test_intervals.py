import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.trace import intervals

ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=20)


def made(pairs):
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    ends = np.array([start + length for start, length in pairs], dtype=np.int64)
    return intervals.union(starts, ends)


def members(item):
    return {
        ns for start, end in zip(item.start_ns.tolist(), item.end_ns.tolist(), strict=True) for ns in range(start, end)
    }


def points(pairs):
    return {ns for start, length in pairs for ns in range(start, start + length)}


@given(ranges)
def test_union_covers_exactly_the_points_of_its_parts(pairs):
    merged = made(pairs)
    assert members(merged) == points(pairs)
    assert merged.total_ns == len(points(pairs))
    again = intervals.union(merged.start_ns, merged.end_ns)
    assert again.start_ns.tolist() == merged.start_ns.tolist()


@given(ranges, ranges)
def test_set_algebra_agrees_with_sets_of_points(left, right):
    a, b = made(left), made(right)
    assert members(intervals.intersection(a, b)) == points(left) & points(right)
    assert members(intervals.difference(a, b)) == points(left) - points(right)
    assert members(intervals.join(a, b)) == points(left) | points(right)


@given(ranges, ranges)
def test_covered_time_of_windows(pairs, windows):
    covered = intervals.covered_ns(
        made(pairs),
        np.array([start for start, _ in windows], dtype=np.int64),
        np.array([start + length for start, length in windows], dtype=np.int64),
    )
    assert covered.tolist() == [len(points(pairs) & points([window])) for window in windows]


@given(ranges, st.integers(0, 60), st.integers(0, 60))
def test_clip(pairs, low, high):
    assert members(intervals.clip(made(pairs), low, high)) == points(pairs) & set(range(low, high))
