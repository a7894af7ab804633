"""``fidelity`` as scripts use it."""

import json

import pytest

MICRO = "device,measurement,value,unit,note,source\n910B2,torch.matmul fp16 8192^3,305,TFLOPS,,x\n"
DECODE = "kernel,K,N,measured_us,M\nq_proj,5120,1024,18.2,16\n"


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "ascend_micro_compute_mem.csv").write_text(MICRO)
    (tmp_path / "ascend_a3_decode_kernels.csv").write_text(DECODE)
    return tmp_path


def test_without_tables_it_says_so_in_one_line(cannscope, tmp_path, monkeypatch):
    monkeypatch.setenv("CANNSCOPE_VALIDATION", str(tmp_path / "absent"))
    code, out, err = cannscope("fidelity")
    assert (code, out) == (2, "")
    assert "not part of this repository: set CANNSCOPE_VALIDATION" in err
    assert err.count("\n") == 1


def test_the_document_has_the_keys_of_the_contract_and_names_what_is_missing(cannscope, tables):
    code, out, _ = cannscope("fidelity", "--data", tables, "--json")
    document = json.loads(out)
    assert code == 0
    (table,) = [entry for entry in document["tables"] if entry["table"] == "matmuls"]
    keys = {"rows", "mape_ratio", "median_ratio", "p90_ratio", "bias_ratio", "spearman", "baselines"}
    assert keys <= table.keys()
    assert table["baselines"]["bytes over bandwidth"] > table["mape_ratio"]
    assert "operators" in {entry["table"] for entry in document["missing"]}


def test_one_table_prints_its_kinds_of_rows(cannscope, tables):
    code, out, _ = cannscope("fidelity", "matmuls", "--data", tables)
    assert code == 0
    for words in ("matmul, decode", "baseline: bytes over bandwidth"):
        assert words in out


def test_an_unknown_table_names_the_nearest(cannscope, tables):
    code, _, err = cannscope("fidelity", "matmul", "--data", tables)
    assert code == 2
    assert "nearest: matmuls" in err


def test_help_has_an_example(cannscope):
    assert "Example: cannscope fidelity" in cannscope("fidelity", "--help")[1]
