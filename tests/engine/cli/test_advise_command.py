"""``advise`` as scripts and people use it."""

import json
from importlib.metadata import EntryPoint

JOB = """
name = "two stages"
[model]
layers = 4
hidden = 1024
ffn = 2816
heads = 16
vocab = 8000
[device]
preset = "910b2"
count = 2
[parallel]
pipeline = 2
[batch]
micro = 1
global = 2
sequence_length = 1024
[run]
steps = 3
"""


def test_advice_on_a_scenario_is_one_document(cannscope, job):
    code, out, err = cannscope("advise", job, "--json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "cannscope.advice/1")
    assert document["name"] == "two stages"
    first = document["recommendations"][0]
    assert first["gain"]["method"] == "rerun"
    assert first["how_to_apply"][0]["switch"]
    assert document["checked_and_fine"]


def test_a_report_is_written_beside_the_text(cannscope, job, tmp_path):
    report = tmp_path / "advice.html"
    code, out, _ = cannscope("advise", job, "-o", report)
    assert code == 0
    assert out.startswith("Step ")
    assert "Checked and fine: " in out
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_report_of_an_unknown_format_is_one_line_before_anything_runs(cannscope, job, tmp_path):
    code, out, err = cannscope("advise", job, "-o", tmp_path / "advice.pdf")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert ".html, .md, .json, .csv, .xlsx" in err


def test_a_host_only_trace_gets_what_can_be_said(cannscope, captures):
    code, out, _ = cannscope("advise", captures / "pytorch" / "gpt-cpu" / "gpt_cpu_nostack.pt.trace.json.gz", "--json")
    document = json.loads(out)
    assert code == 0
    assert "fusion.unfused" in {item["rule"] for item in document["not_checked"]}
    assert all(item["gain"]["method"] != "rerun" for item in document["recommendations"])


def test_plug_ins_that_cannot_be_loaded_are_named(cannscope, job, monkeypatch):
    broken = [EntryPoint("broken", "no_such_module:thing", "")]
    monkeypatch.setattr("engine.core.registry.entry_points", lambda group: broken)

    code, _, err = cannscope("advise", job)

    assert code == 0
    assert "'broken' of cannscope.rules" in err
    assert "'broken' of cannscope.optimizations" in err
