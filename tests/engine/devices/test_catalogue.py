"""The devices and topologies that ship, and what follows from their constants."""

import json
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.devices import DType, Reach, device_ids, load_device, load_topology, topology_ids, topology_of
from engine.devices.catalogue import device_from_document, device_named
from engine.devices.spec import DeviceDataError, Provenance
from tests.support.captures import REPOSITORY

TFLOPS = {
    "910b1": 363.7, "910b2": 353.9, "910b3": 294.9, "910b4": 245.8, "910c-die": 363.7, "910c": 727.4, "910a": 262.1,
    "310p": 69.5, "910c-560t-die": 245.8, "a100-40g": 312.0, "a100-80g": 312.0, "h100": 989.4,
    "rtx-pro-6000": 503.8,
}  # fmt: skip


def test_every_promised_device_ships():
    assert set(device_ids()) == set(TFLOPS)


@pytest.mark.parametrize("device_id", device_ids())
def test_every_constant_says_where_it_comes_from(device_id):
    device = load_device(device_id)
    for constant in (*device.constants.values(), *device.measured.values()):
        assert constant.value > 0
        assert constant.kind in Provenance
        assert len(constant.source) > 5
    assert all(constant.kind is Provenance.MEASURED for constant in device.measured.values())
    assert topology_of(device).host_link.pair_bytes_per_s > 1e9


@pytest.mark.parametrize(("device_id", "tflops"), TFLOPS.items())
def test_the_matrix_rate_follows_from_cores_and_clock(device_id, tflops):
    assert load_device(device_id).cube_flop_per_s(DType.FP16) / 1e12 == pytest.approx(tflops, rel=0.002)


def test_no_measured_rate_exceeds_the_peak_it_is_measured_against():
    for device_id in device_ids():
        device = load_device(device_id)
        for name, constant in device.measured.items():
            if "fp16" in name or "bf16" in name:
                assert constant.value <= device.cube_flop_per_s(DType.FP16), (device_id, name)


def test_cards_without_bf16_say_so_and_compute_it_slowly():
    device = load_device("910a")
    assert not device.supports(DType.BF16)
    assert device.cube_flop_per_s(DType.BF16) < device.cube_flop_per_s(DType.FP16) / 4


def test_an_unknown_device_names_the_nearest():
    with pytest.raises(DeviceDataError, match="910b2"):
        load_device("910b22")
    with pytest.raises(DeviceDataError, match="a3"):
        load_topology("a33")


def test_a_capture_names_its_device_in_its_own_words():
    assert device_named("Ascend910B3").id == "910b3"
    assert device_named("NVIDIA A100-SXM4-80GB").id == "a100-80g"
    assert device_named("NVIDIA A100-SXM4-40GB").id == "a100-40g"
    assert device_named("Ascend910_9391").id == "910c-die"
    assert device_named("NVIDIA A100-PCIE-40GB").id == "a100-40g"
    assert device_named("NVIDIA Tesla T4") is None


def test_a_broken_data_file_is_one_clear_error():
    with pytest.raises(DeviceDataError, match="lacks cube_core_count"):
        device_from_document({
            "id": "x", "title": "x", "vendor": "x", "soc_names": [], "aliases": [], "die_count": 1, "topology": "a2",
            "constants": {}, "measured": {},
        })  # fmt: skip
    with pytest.raises(DeviceDataError, match="bad data file"):
        device_from_document(json.loads('{"id": "x"}'))


def test_a_small_group_of_a_mesh_uses_few_of_its_links():
    hccs = load_topology("a2").link(Reach.NODE)
    assert [hccs.usable_link_count(size) for size in (1, 2, 4, 8)] == [0, 1, 3, 7]
    assert hccs.group_bytes_per_s(4) == 3 * 28e9
    nvlink = load_topology("a100").link(Reach.NODE)
    assert nvlink.group_bytes_per_s(2) == nvlink.group_bytes_per_s(8) == 300e9


def test_a_group_is_carried_by_the_nearest_link_that_holds_it():
    a2, a3 = load_topology("a2"), load_topology("a3")
    assert a2.link_for([0, 7]).kind == "hccs"
    assert a2.link_for([0, 8]).kind == "roce"
    assert a2.link_for([0, 4], devices_per_node=4).kind == "roce"
    assert a3.link_for([0, 1]).kind == "sio"
    assert a3.link_for([0, 2]).reach is Reach.NODE
    assert a3.link_for([0, 16]).reach is Reach.SUPERNODE
    assert a3.link_for([0, 16 * 48]).kind == "roce"


@given(ranks=st.lists(st.integers(0, 2000), min_size=1, max_size=9), name=st.sampled_from(topology_ids()))
def test_a_larger_group_never_reaches_less_far(ranks, name):
    topology = load_topology(name)
    order = [Reach.PACKAGE, Reach.NODE, Reach.SUPERNODE, Reach.CLUSTER]
    reaches = [order.index(topology.reach_of(ranks[:size])) for size in range(1, len(ranks) + 1)]
    assert np.all(np.diff(reaches) >= 0)


def test_data_files_are_part_of_the_package():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["*"]
    packages = [path.parent for path in (REPOSITORY / "engine").rglob("__init__.py")]
    shipped = {file for package in packages for pattern in patterns for file in package.glob(pattern)}
    data = {*(REPOSITORY / "engine").rglob("*.json"), *(REPOSITORY / "engine").rglob("*.toml")}
    assert data <= shipped
