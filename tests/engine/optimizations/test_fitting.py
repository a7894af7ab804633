from pathlib import Path

import pytest

from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.optimizations.catalogue import in_order, optimization_registry
from engine.optimizations.fitting import Platform, fitting, platform_of_job, platform_of_scenario
from engine.optimizations.interface import Switch
from engine.workloads.scenario_file import scenario_from_document

CATALOGUE = in_order(optimization_registry())
ON_NPU = Platform(is_ascend=True, is_pytorch=True, is_serving=False)
ON_GPU = Platform(is_ascend=False, is_pytorch=True, is_serving=False)
SERVED = Platform(is_ascend=True, is_pytorch=False, is_serving=True)


def scenario(device, kind):
    document = {
        "name": "small",
        "kind": kind,
        "model": {"preset": "qwen2-1.5b"},
        "device": {"preset": device, "count": 1},
    }
    return scenario_from_document(document, Path())


@pytest.mark.parametrize("item", CATALOGUE, ids=lambda item: item.id)
def test_no_switch_of_another_vendor_is_shown(item):
    assert not [switch for switch in fitting(item.switches, ON_NPU) if "cuda" in switch.switch.lower()]
    for switch in fitting(item.switches, ON_GPU):
        assert not any(word in f"{switch.framework} {switch.switch}" for word in ("npu", "NPU", "HCCL", "ascend"))


@pytest.mark.parametrize(
    "identifier",
    [
        "memory.expandable_segments",
        "memory.max_split_size",
        "fusion.attention",
        "fusion.optimizer",
        "precision.mixed",
        "communication.overlap_gradients",
        "communication.quantized_gradients",
        "host.graph_mode",
    ],
)
def test_what_both_vendors_have_is_shown_for_both(identifier):
    switches = optimization_registry()[identifier].switches

    assert fitting(switches, ON_NPU)
    assert fitting(switches, ON_GPU)


def test_servers_switches_are_for_services_and_mindspores_not_for_pytorch():
    served = Switch("vllm-ascend", "", "--enable-prefix-caching", "docs")
    mindspore = Switch("MindSpore", "", "export MS_ALLOC_CONF=enable_vmm:true", "docs")

    assert fitting((served, mindspore), SERVED) == (served, mindspore)
    assert fitting((served, mindspore), ON_NPU) == ()


def test_words_that_only_hold_the_letters_of_npu_do_not_make_a_switch_ascends():
    own = Switch("PyTorch", "", "read the input with more workers", "docs")

    assert fitting((own,), ON_GPU) == (own,)


def test_a_scenario_tells_its_devices_and_its_work():
    assert platform_of_scenario(scenario("910b2", "training")) == Platform(True, False, False)
    assert platform_of_scenario(scenario("h100", "serving")) == Platform(False, False, True)


@pytest.mark.parametrize(
    ("path", "is_ascend"),
    [("pytorch/alexnet.json.gz", False), ("ascend/910b-cnn-ddp2-text/level1/rank0_ascend_pt", True)],
)
def test_a_capture_tells_its_devices(captures, path, is_ascend):
    job = open_job([captures / path], built_in_readers())

    assert platform_of_job(job).is_ascend == is_ascend
