"""What holds for every optimization of the catalogue, alone and in sets: nothing is changed in place."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.graph.task_graph import TaskGraph
from engine.optimizations.catalogue import in_order, optimization_registry
from engine.optimizations.interface import Verdict
from engine.optimizations.selection import Enabled, refusals
from engine.runtime.scheduler import schedule
from engine.whatif.capture_changes import changed_capture
from engine.whatif.run import applicability, what_if
from engine.whatif.scenario_changes import changed
from engine.whatif.subject import ScenarioSubject, capture_subject
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import recorded

REGISTRY = optimization_registry()
CATALOGUE = in_order(REGISTRY)
SETS = st.lists(st.sampled_from(CATALOGUE), unique_by=lambda item: item.id, max_size=5)


def job():
    document = {
        "name": "small",
        "model": {"preset": "qwen2-1.5b", "layers": 2, "vocab": 8000},
        "device": {"preset": "910b2", "count": 4},
        "parallel": {"data": 2, "tensor": 2},
        "batch": {"micro": 1, "global": 4, "sequence_length": {"distribution": "uniform", "mean": 1024, "max": 2048}},
        "run": {"steps": 3},
    }
    return scenario_from_document(document, Path())


@pytest.fixture(scope="module")
def subject():
    return capture_subject(recorded(job()).job)


def copied(graph: TaskGraph):
    return {
        item.name: np.array(value)
        for item in fields(graph)
        if isinstance(value := getattr(graph, item.name), np.ndarray)
    }


def on(items):
    return [Enabled(item, item.defaults) for item in CATALOGUE if item in items]


@settings(max_examples=20)
@given(items=SETS)
def test_rewriting_a_capture_leaves_it_as_it_was_and_the_result_can_run(subject, items):
    before = copied(subject.capture.graph)

    changes = changed_capture(subject.plan, on(items))

    after = copied(subject.capture.graph)
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert schedule(changes.plan.graph).is_complete
    assert changed_capture(subject.plan, ()).plan.graph is subject.capture.graph


@settings(max_examples=20)
@given(items=SETS)
def test_switching_on_in_a_scenario_leaves_it_as_it_was_and_says_why_not(items):
    scenario = job()

    changes = changed(scenario, on(items))

    assert scenario == job()
    told = {refusal.id for refusal in changes.refused} | set(changes.applicability)
    assert told == {item.id for item in items}
    assert all(refusal.reason for refusal in changes.refused)


@settings(max_examples=40)
@given(items=SETS)
def test_conflicting_sets_are_refused_with_a_reason_whatever_their_order(items):
    chosen = on(items)
    ids = {item.id for item in items}
    clash = {(item.id, conflict.other) for item in items for conflict in item.conflicts if conflict.other in ids}
    missing = {item.id for item in items if not set(item.needs) <= ids}

    found = refusals(chosen, {})

    assert {item.id for item in found} == {pair[0] for pair in clash} | missing
    assert all(item.reason for item in found)
    assert {item.reason for item in refusals(chosen[::-1], {})} == {item.reason for item in found}


def test_every_optimization_is_judged_on_a_job_and_on_its_recording(subject):
    for answers in (applicability(ScenarioSubject(job()), REGISTRY), applicability(subject, REGISTRY)):
        assert list(answers) == [item.id for item in CATALOGUE]
        for identifier, item in answers.items():
            assert item.reason, identifier
            assert not item.reason.endswith("."), identifier


def test_what_does_nothing_alone_changes_nothing_when_asked_for(subject):
    idle = [
        REGISTRY[identifier]
        for identifier, item in applicability(subject, REGISTRY).items()
        if item.verdict in (Verdict.NO_EFFECT, Verdict.ALREADY_ON)
    ]
    clean = [item for item in idle if not refusals(on([item]), {})]

    assert clean
    for item in clean:
        assert what_if(subject, on([item]), REGISTRY).gain.expected_ns == 0, item.id
