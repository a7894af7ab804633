"""``devices`` and ``models`` as scripts use them."""

import json

import pytest

from engine.cli.app import build_cli, run


@pytest.fixture
def cannscope(capsys):
    def call(*arguments):
        code = run(build_cli(), list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_devices_is_one_document_in_which_every_constant_has_a_source(cannscope):
    code, out, err = cannscope("devices", "--json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "cannscope.devices/1")
    assert {device["id"] for device in document["devices"]} >= {"910b2", "910c", "310p", "h100"}
    constants = [entry for device in document["devices"] for entry in device["constants"].values()]
    constants += [link["bytes_per_s"] for topology in document["topologies"] for link in topology["links"]]
    constants += document["efficiency"]["shared"].values()
    assert all(entry["kind"] in {"spec", "measured", "assumed"} and entry["source"] for entry in constants)
    assert all(entry["source"] for entry in document["efficiency"]["families"].values())


def test_one_device_prints_every_constant_with_its_source(cannscope):
    code, out, _ = cannscope("devices", "910b4")
    assert code == 0
    for word in ("hbm_bytes_per_s", "hccs", "assumed", "CANN 8.1.RC1"):
        assert word in out


def test_an_unknown_device_is_one_line_that_names_the_nearest(cannscope):
    code, out, err = cannscope("devices", "910b9")
    assert (code, out) == (2, "")
    assert "910b" in err
    assert err.count("\n") == 1


def test_models_is_one_document_with_weights(cannscope):
    code, out, _ = cannscope("models", "--json")
    models = {model["id"]: model for model in json.loads(out)["models"]}
    assert code == 0
    assert models["gpt-oss-20b"]["parameters"]["total_count"] == 20_914_757_184
    assert models["gpt-oss-20b"]["shapes"]["sliding_window"] == 128


@pytest.mark.parametrize("command", ["devices", "models"])
def test_texts_name_everything_and_help_has_an_example(cannscope, command):
    code, out, _ = cannscope(command)
    assert code == 0
    assert ("910c-die" if command == "devices" else "mixtral-8x7b") in out
    assert f"Example: cannscope {command}" in cannscope(command, "--help")[1]
