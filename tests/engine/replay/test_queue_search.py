"""Searches in queues and the lanes of overlapping tasks, against the plain way of writing them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.replay.device_tasks import DeviceTasks, lanes
from engine.replay.queue_search import QueueTimes

SPANS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=30)


def tasks_of(spans: list[tuple[int, int, int]]) -> DeviceTasks:
    ordered = sorted(spans)
    queue, start, length = (np.array(column, dtype=np.int64) for column in zip(*ordered, strict=True))
    nothing = np.full(len(queue), -1, dtype=np.int32)
    return DeviceTasks(nothing, start, start + length, queue.astype(np.int32), nothing)


@given(SPANS, st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 60)), min_size=1, max_size=20))
def test_tasks_are_found_as_by_looking_at_each(spans: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    tasks = tasks_of(spans)
    times = QueueTimes.of(tasks, tasks.start_ns)
    queue, moment = (np.array(column) for column in zip(*asked, strict=True))
    before, at, after = (
        times.last_before(queue, moment),
        times.last_before(queue, moment, inclusive=True),
        times.first_from(queue, moment),
    )
    for index, (number, time) in enumerate(asked):
        own = [task for task in range(len(tasks)) if tasks.queue[task] == number]
        assert before[index] == max((task for task in own if tasks.start_ns[task] < time), default=-1)
        assert at[index] == max((task for task in own if tasks.start_ns[task] <= time), default=-1)
        assert after[index] == min((task for task in own if tasks.start_ns[task] >= time), default=-1)


@given(SPANS)
def test_tasks_of_one_lane_overlap_by_no_more_than_allowed(spans: list[tuple[int, int, int]]) -> None:
    tasks = tasks_of(spans)
    lane = lanes(tasks.queue, tasks.start_ns, tasks.end_ns, 2)
    for queue in np.unique(tasks.queue).tolist():
        for number in np.unique(lane[tasks.queue == queue]).tolist():
            own = np.flatnonzero((tasks.queue == queue) & (lane == number))
            assert np.all(tasks.end_ns[own[:-1]] <= tasks.start_ns[own[1:]] + 2)


def test_tasks_one_after_another_stay_in_one_lane() -> None:
    tasks = tasks_of([(1, 0, 5), (1, 5, 5), (1, 9, 3), (2, 0, 20)])
    assert lanes(tasks.queue, tasks.start_ns, tasks.end_ns, 2).tolist() == [0, 0, 0, 0]


def test_a_task_inside_another_gets_a_lane_of_its_own() -> None:
    tasks = tasks_of([(1, 0, 100), (1, 10, 5), (1, 20, 5), (1, 100, 5)])
    assert lanes(tasks.queue, tasks.start_ns, tasks.end_ns, 2).tolist() == [0, 1, 1, 0]
