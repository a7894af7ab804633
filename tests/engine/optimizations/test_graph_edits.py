"""Edits of task graphs: what is added stands where it should, and nothing else moves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.checks import topological_order
from engine.optimizations.graph_edits import edges_of, launches_of, with_column, with_edges, with_names, with_tasks
from tests.support.simulated_job import small_job
from tests.support.task_graphs import task_graphs


@given(task_graphs())
def test_putting_the_same_edges_back_changes_nothing(graph):
    same = with_edges(graph, *edges_of(graph))
    assert np.array_equal(same.predecessors, graph.predecessors)
    assert np.array_equal(same.predecessor_offsets, graph.predecessor_offsets)


@given(task_graphs(), st.data())
def test_new_tasks_stand_before_the_tasks_they_are_put_before(graph, data):
    places = data.draw(st.lists(st.integers(0, len(graph)), max_size=5))
    named, (name,) = with_names(graph, ("new",))
    columns = {"name": int(name), "kind": 2, "rank": 0, "stream": 9, "duration_ns": np.arange(len(places))}
    result, position = with_tasks(named, columns, np.array(places, dtype=np.int64), *edges_of(graph))
    assert len(result) == len(graph) + len(places)
    old, new = position[: len(graph)], position[len(graph) :]
    assert np.all(np.diff(old) > 0)
    for place, where in zip(places, new, strict=True):
        assert all(old[:place] < where)
        assert all(old[place:] > where)
    assert np.array_equal(result.duration_ns[old], graph.duration_ns)
    assert [result.operator(task) for task in new] == ["new"] * len(places)
    before, after = edges_of(graph)
    moved = {(int(old[a]), int(old[b])) for a, b in zip(before, after, strict=True)}
    assert moved == set(zip(*(column.tolist() for column in edges_of(result)), strict=True))
    topological_order(result)


def test_the_launch_of_a_device_task_is_its_first_predecessor_on_the_host():
    graph = small_job()
    launch = launches_of(graph)
    known = np.flatnonzero(launch >= 0)
    assert len(known)
    assert np.all(graph.stream[launch[known]] == 0)
    assert np.array_equal(graph.rank[launch[known]], graph.rank[known])
    assert np.all(launch[graph.stream == 0] == -1)


def test_a_column_is_changed_in_a_copy_and_rounded():
    graph = small_job()
    changed = with_column(graph, "duration_ns", np.array([1]), np.array([2.6]))
    assert changed.duration_ns[1] == 3
    assert graph.duration_ns[1] != 3
