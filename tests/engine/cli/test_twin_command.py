"""``twin`` as scripts use it."""

import json

from engine.formats.ascend_writer import write_ascend_text
from engine.workloads.scenario_file import read_scenario
from tests.support.closed_loop import recorded

JOB = """
name = "small"
[model]
layers = 2
hidden = 2048
ffn = 5632
heads = 16
vocab = 8000
[device]
preset = "910b2"
[batch]
micro = 1
global = 2
sequence_length = 2048
[optimizations]
"fusion.attention" = {}
"fusion.rope" = {}
"""


def written(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(JOB, encoding="utf-8")
    return write_ascend_text(recorded(read_scenario(path)).job.ranks[0].trace, tmp_path / "captures")


def test_twin_writes_a_scenario_that_can_be_asked(cannscope, tmp_path):
    capture, path = written(tmp_path), tmp_path / "twin.toml"

    code, out, err = cannscope("twin", capture, "-o", path, "--json")
    document = json.loads(out)

    assert (code, err, document["schema"]) == (0, "", "cannscope.twin/1")
    assert abs(document["step_time_us"]["error_ratio"]) < 0.05
    scenario = read_scenario(path)
    assert (scenario.model.layers, scenario.model.hidden, scenario.model.vocab) == (2, 2048, 8000)
    assert scenario.batch.global_sequences == 2
    assert cannscope("whatif", path, "--json")[0] == 0


def test_the_text_says_how_well_it_matches_and_what_was_read(cannscope, tmp_path):
    _, out, _ = cannscope("twin", written(tmp_path))

    assert "the step takes" in out
    assert "2 layers of width 2048" in out
    assert "[model]" in out


def test_a_capture_without_kernels_is_one_line_that_names_what_is_missing(cannscope, tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text('[{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]', encoding="utf-8")

    code, out, err = cannscope("twin", trace)

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
