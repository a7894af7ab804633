"""The same job in another layout: devices, model and sequences stay, and what does not fit says what would."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ScenarioError
from engine.workloads.relayout import relaid, with_layout
from engine.workloads.scenario import Recompute, Scenario, Schedule, TensorMode
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

MODEL = {"layers": 8, "hidden": 1024, "ffn": 4096, "heads": 16, "vocab": 32000}
DIVISORS = st.sampled_from([0, 1, 2, 4, 8])


def job(**tables: Any) -> Scenario:
    document: dict[str, Any] = {
        "model": MODEL,
        "device": {"preset": "910b2", "count": 16, "per_node": 8},
        "parallel": {"tensor": 2},
        "batch": {"micro": 1, "global": 16, "sequence_length": 512},
    }
    return scenario_from_document({**document, **tables}, Path())


def test_replicas_are_what_the_devices_leave() -> None:
    changed = relaid(job(), tensor=4, pipeline=2)
    assert (changed.parallel.data, changed.parallel.tensor, changed.parallel.pipeline) == (2, 4, 2)


def test_everything_of_a_layout_can_be_changed() -> None:
    changed = relaid(
        job(), pipeline=2, context=2, virtual_pipeline=2, schedule="interleaved", micro=2, tensor_mode="column_split",
        recompute="full",
    )  # fmt: skip
    assert changed.parallel.schedule is Schedule.INTERLEAVED
    assert changed.parallel.tensor_mode is TensorMode.COLUMN_SPLIT
    assert changed.memory.recompute is Recompute.FULL
    assert (changed.parallel.data, changed.parallel.context, changed.batch.micro) == (2, 2, 2)


def test_nothing_given_changes_nothing() -> None:
    assert relaid(job()) == job()


@pytest.mark.parametrize(
    ("layout", "what"),
    [
        ({"tensor": 3}, "nearest that fit: 2 or 4"),
        ({"tensor": 4, "pipeline": 4, "data": 2}, "parallel.data = 1 would fit"),
        ({"pipeline": 16}, "devices per replica, nearest that fit: 16"),
        ({"tensor": 1, "pipeline": 16}, "leaves stages unequal"),
        ({"schedule": "zb"}, "known: 1f1b, gpipe, interleaved"),
        ({"virtual_pipeline": 2, "pipeline": 2}, 'needs parallel.schedule = "interleaved"'),
        ({"expert": 2}, "has no experts"),
        ({"micro": 4, "tensor": 1}, "not divisible by micro 4 × data 16"),
        ({"recompute": "some"}, "parallel.layout.recompute is 'some'"),
    ],
)
def test_what_does_not_fit_says_what_would(layout: dict[str, Any], what: str) -> None:
    with pytest.raises(ScenarioError, match=what.replace("(", r"\(")):
        relaid(job(), **layout)


@given(DIVISORS, DIVISORS, DIVISORS)
def test_a_layout_always_fills_the_devices(tensor: int, pipeline: int, context: int) -> None:
    try:
        changed = relaid(job(), tensor=tensor, pipeline=pipeline, context=context)
    except ScenarioError:
        return
    assert changed.parallel.world_size == 16
    assert changed.batch.global_sequences == 16
    assert relaid(changed) == changed


def test_a_run_acts_on_the_layout_its_scenario_asks_for() -> None:
    asked = replace(job(), optimizations={"parallel.layout": {"tensor": 4, "pipeline": 2}})
    assert with_layout(asked) == relaid(job(), tensor=4, pipeline=2)
    result = simulate(asked)
    assert result.step_ns[2] == simulate(relaid(job(), tensor=4, pipeline=2)).step_ns[2]
    assert sorted(rank for memory in result.memory for rank in memory.ranks) == list(range(16))


def test_a_layout_names_its_unknown_keys() -> None:
    with pytest.raises(ScenarioError, match=r"parallel\.layout\.tensors"):
        with_layout(replace(job(), optimizations={"parallel.layout": {"tensors": 4}}))
