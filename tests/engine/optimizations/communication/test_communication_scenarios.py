"""What communication, host and precision toggles say of simulated jobs, and what excludes what."""

from dataclasses import replace

import pytest

from engine.devices.catalogue import load_device
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Group, Verdict
from engine.optimizations.selection import enabled, refusals
from tests.support.toggled_jobs import job, toggle

REGISTRY = optimization_registry()
MINE = [item for item in REGISTRY if item.group in (Group.PARALLEL, Group.PRECISION, Group.COMMUNICATION, Group.HOST)]


def verdict(identifier: str, name: str, base_on: tuple[str, ...] = ()) -> Verdict:
    item = toggle(identifier)
    return item.check_scenario(job(name, base_on), item.defaults).verdict


@pytest.mark.parametrize(
    ("identifier", "name", "expected"),
    [
        ("overlap_gradients", "replicas", Verdict.APPLIES),
        ("overlap_gradients", "tensors", Verdict.NO_EFFECT),
        ("overlap_parameters", "replicas", Verdict.APPLIES),
        ("overlap_parameters", "alone", Verdict.NO_EFFECT),
        ("overlap_tensor_parallel", "tensors", Verdict.APPLIES),
        ("overlap_tensor_parallel", "replicas", Verdict.NO_EFFECT),
        ("chunking", "tensors", Verdict.APPLIES),
        ("chunking", "alone", Verdict.NO_EFFECT),
        ("topk_compression", "replicas", Verdict.APPLIES),
        ("topk_compression", "tensors", Verdict.NO_EFFECT),
        ("quantized_gradients", "replicas", Verdict.APPLIES),
        ("quantized_gradients", "alone", Verdict.NO_EFFECT),
        ("algorithm", "replicas", Verdict.NO_EFFECT),
    ],
)
def test_a_toggle_knows_where_a_job_has_something_to_win(identifier, name, expected):
    assert verdict(f"communication.{identifier}", name) is expected


@pytest.mark.parametrize("identifier", ["communication.overlap_gradients", "communication.topk_compression"])
def test_what_a_scenario_lists_is_already_on(identifier):
    assert verdict(identifier, "replicas", (identifier,)) is Verdict.ALREADY_ON


def test_gpus_overlap_tensor_transfers_and_have_no_task_queue():
    scenario = replace(job("tensors"), device=load_device("a100-80g"))
    overlap, queue = toggle("communication.overlap_tensor_parallel"), toggle("host.async_dispatch")
    assert overlap.check_scenario(scenario, {}).verdict is Verdict.ALREADY_ON
    assert queue.check_scenario(scenario, queue.defaults).verdict is Verdict.NO_EFFECT


@pytest.mark.parametrize(
    ("chosen", "environment", "word"),
    [
        (("communication.chunking", "fusion.matmul_all_reduce"), {}, "CoC and MC2"),
        (("communication.overlap_tensor_parallel", "fusion.matmul_all_reduce"), {}, "MC2 hides"),
        (("communication.topk_compression", "communication.quantized_gradients"), {}, "what the replicas exchange"),
        (
            ("communication.quantized_gradients", "fusion.gradient_accumulation"),
            {},
            "--no-gradient-accumulation-fusion",
        ),
        (("communication.overlap_parameters",), {}, "needs communication.overlap_gradients"),
        (("host.async_dispatch",), {"ASCEND_LAUNCH_BLOCKING": "1"}, "blocking launches"),
        (("host.async_dispatch", "host.graph_mode"), {}, "one launch"),
    ],
)
def test_what_excludes_each_other_is_refused_with_the_reason(chosen, environment, word):
    found = refusals(enabled({identifier: {} for identifier in chosen}, REGISTRY), environment)
    assert any(word in refusal.reason for refusal in found)


@pytest.mark.parametrize("item", MINE, ids=lambda item: item.id)
def test_every_toggle_can_be_switched_on_undone_and_verified_for_real(item):
    assert item.switches
    assert all(switch.switch and switch.documented_in for switch in item.switches)
    assert item.summary.endswith(".")
    assert item.risk
    assert item.undo
    assert item.verify
    assert all(parameter.title for parameter in item.parameters)
    for text in (item.check_scenario(job("replicas"), item.defaults).reason,):
        assert text
        assert not text.endswith(".")


def test_topk_is_labelled_as_a_simulator_feature():
    item = toggle("communication.topk_compression")
    assert item.simulator_only
    assert all("no product switch" in switch.note for switch in item.switches)
    assert "not quantifiable without weights" in item.risk
