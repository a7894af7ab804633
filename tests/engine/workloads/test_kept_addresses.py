"""Addresses of a profiled step, as its captures carry them."""

from dataclasses import replace

import numpy as np
import pytest

from engine.core.units import GIB
from engine.graph.task_graph import BufferTag
from engine.replay.capture_addresses import capture_addresses
from engine.runtime.addresses.address_map import Basis
from engine.runtime.allocators.interface import DriverAction
from engine.workloads.recording import record_run
from engine.workloads.scenario_file import scenario_from_document
from engine.workloads.simulate import simulate

SCENARIO = {
    "seed": 1,
    "model": {"layers": 4, "hidden": 1024, "ffn": 4096, "heads": 8, "vocab": 8000},
    "device": {"preset": "910b2", "count": 1},
    "batch": {
        "micro": 4,
        "global": 8,
        "sequence_length": {"distribution": "lognormal", "mean": 2048, "sigma": 0.5, "max": 4096},
    },
    "memory": {"on_out_of_memory": "split", "long_lived": {"per_step": 6.0, "lifetime_steps": 20}},
    "run": {"steps": 12, "profile_steps": [9]},
}


def scenario(**memory):
    document = SCENARIO | {"memory": SCENARIO["memory"] | memory}
    return scenario_from_document(document, None)


def map_of(result):
    return capture_addresses(record_run(result.profiled, result.histories, 1).ranks[0].trace)


@pytest.fixture(scope="module")
def roomy():
    return simulate(scenario())


def test_the_map_is_of_the_profiled_step_only(roomy):
    mapped = map_of(roomy)
    assert mapped.basis is Basis.SIMULATED
    kept = roomy.profiled.state.memories[0].kept
    assert mapped.event_count == sum(run.served for _, run in kept.served)
    served = roomy.profiled.steps[0].served[0]
    in_program = sum(stretch.run.served for _, stretch in served)
    # Beside the program only blocks that died at the step's begin.
    assert in_program <= mapped.event_count < in_program + 20


def test_old_and_new_blocks_add_up_to_what_the_step_held(roomy):
    mapped = map_of(roomy)
    blocks, history = mapped.blocks, roomy.histories[0]
    moments = np.arange(0, mapped.event_count)
    held = np.zeros(mapped.event_count + 1, dtype=np.int64)
    np.add.at(held, np.maximum(blocks.first_event, 0), blocks.size_bytes)
    np.add.at(held, blocks.last_event, -blocks.size_bytes)
    assert np.cumsum(held)[moments].max() == history.peak_allocated_bytes[9]
    old = blocks.tag[blocks.first_event < 0]
    assert {int(BufferTag.PERSISTENT), int(BufferTag.LONG_LIVED)} <= set(old.tolist())
    persistent = blocks.size_bytes[(blocks.first_event < 0) & (blocks.tag == BufferTag.PERSISTENT)].sum()
    assert persistent == pytest.approx(roomy.memory[0].persistent_bytes, rel=0.001)
    assert int(BufferTag.LONG_LIVED) in blocks.tag.tolist()


def test_retries_under_a_limit_are_misses_of_the_map(roomy):
    peak = int(roomy.histories[0].peak_reserved_bytes.max())
    lowest = int(roomy.histories[0].end_allocated_bytes.max())
    for share in (0.95, 0.9, 0.85, 0.8):
        tight = simulate(scenario(limit_bytes=int(lowest + share * (peak - lowest))))
        if tight.profiled.steps and tight.histories[0].retries[9]:
            break
    mapped = map_of(tight)
    grave = np.isin(mapped.misses.action, (DriverAction.RETRY, DriverAction.OUT_OF_MEMORY))
    assert grave.sum() == tight.histories[0].retries[9]
    assert mapped.segments.size_bytes.max() < 64 * GIB


def test_without_a_profiled_step_nothing_is_kept():
    short = scenario()
    result = simulate(replace(short, run=replace(short.run, steps=2, profile_steps=())))
    assert result.profiled.state.memories[0].kept is None
