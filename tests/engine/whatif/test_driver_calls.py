"""Driver calls a recording shows: how much of its tasks they are, and who spares them."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.selection import enabled_from_texts
from engine.replay.replay_time import replay_time
from engine.whatif.driver_calls import driver_call_ns, without_calls
from engine.whatif.run import what_if
from engine.whatif.scenario_side import scenario_side
from engine.whatif.subject import capture_subject
from engine.workloads.scenario import RunSettings
from engine.workloads.scenario_file import read_scenario, scenario_from_document
from tests.support.closed_loop import recorded

REGISTRY = optimization_registry()


@pytest.fixture(scope="module")
def warming_up():
    """A job recorded in its first step, which asks the driver for everything."""
    document = {
        "model": {"layers": 2, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 8000},
        "device": {"preset": "910b2"},
        "batch": {"micro": 1, "global": 1, "sequence_length": 2048},
    }
    return recorded(scenario_from_document(document, Path()), RunSettings(steps=2, profile_steps=(0,)))


def test_recorded_calls_are_found_in_the_tasks_they_are_part_of(warming_up):
    replayed = capture_subject(warming_up.job).baseline_run().replayed

    found = driver_call_ns(replayed)

    trace = warming_up.job.ranks[0].trace
    calls = [index for index in range(len(trace.events)) if "aclrtMalloc" in trace.name(index)]
    assert int(found.sum()) == int(trace.events.duration_ns[calls].sum()) > 0
    assert np.all(found <= replayed.graph.duration_ns)


def test_without_its_calls_a_step_is_as_long_as_the_next_one_that_makes_none(warming_up):
    subject = capture_subject(warming_up.job)
    replayed = subject.baseline_run().replayed
    later_ns = int(warming_up.result.step_ns[1])

    spared = without_calls(replayed.graph, replayed.graph, driver_call_ns(replayed))

    assert warming_up.result.memory[0].stall_ns[1] == 0
    assert replay_time(subject.capture, spared).step_ns[0] == pytest.approx(later_ns, rel=0.02)


def test_a_recording_without_calls_spares_none():
    document = {
        "model": {"layers": 2, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 8000},
        "device": {"preset": "910b2"},
        "batch": {"micro": 1, "global": 1, "sequence_length": 2048},
    }
    replayed = capture_subject(recorded(scenario_from_document(document, Path())).job).baseline_run().replayed

    assert not driver_call_ns(replayed).any()


@pytest.mark.slow
def test_another_allocator_on_the_recording_of_a_slow_step_is_that_step_simulated_with_it():
    with resources.as_file(
        resources.files("engine.workloads").joinpath("scenarios", "fragmentation_slowdown.toml")
    ) as path:
        scenario = read_scenario(path)
    recording = recorded(scenario, scenario.run)
    identifier = "memory.expandable_segments"
    with_it = scenario_side(replace(scenario, optimizations={**scenario.optimizations, identifier: {}}))
    truth_ns = float(with_it.step_ns[list(scenario.run.profile_steps)].mean())

    result = what_if(capture_subject(recording.job), enabled_from_texts([identifier], REGISTRY), REGISTRY)

    assert recording.step_ns > 1.2 * truth_ns
    assert result.candidate.mean_step_ns == pytest.approx(truth_ns, rel=0.05)
    assert result.gain.low_ns == 0
    assert "spares the driver's calls" in " ".join(result.assumptions)


def test_the_allocators_share_of_a_recorded_step_is_what_its_calls_keep_the_device_waiting(warming_up):
    side = capture_subject(warming_up.job).baseline()

    assert 0 < side.shares.allocator_ratio <= 14e6 / side.mean_step_ns
    assert sum(getattr(side.shares, name) for name in side.shares.__slots__) == pytest.approx(1)
