"""``whatif`` and ``optimizations`` as scripts use them."""

import json

import pytest

from engine.optimizations.catalogue import optimization_registry

JOB = """
name = "small"
[model]
layers = 2
hidden = 1024
ffn = 2816
heads = 16
vocab = 4000
[device]
preset = "910b2"
[batch]
micro = 1
sequence_length = { distribution = "lognormal", mean = 1024, max = 4096 }
[run]
steps = 3
"""


def test_whatif_is_one_document_with_both_sides(cannscope, job):
    code, out, err = cannscope("whatif", job, "--enable", "memory.recompute", "--json")
    document = json.loads(out)

    assert (code, err, document["schema"]) == (0, "", "cannscope.whatif/1")
    before, after = document["baseline"], document["candidate"]
    assert before["schema"] == after["schema"] == "cannscope.run/1"
    assert after["scenario"]["optimizations"] == {"memory.recompute": {"granularity": "full"}}
    assert len(before["step_time_us"]) == 3
    assert document["speedup_ratio"] < 1
    assert document["step_time_delta_us"] == pytest.approx(-document["gain"]["time_us"]["expected"])
    assert document["peak_reserved_delta_bytes"] < 0
    assert document["replay_error_ratio"] is None
    assert [item["id"] for item in document["contributions"]] == ["memory.recompute"]
    assert document["enabled"][0]["switches"][0]["switch"]
    rows = document["operators"]
    assert {"name", "baseline_us", "candidate_us", "delta_us"} <= rows[0].keys()
    assert abs(rows[0]["delta_us"]) == max(abs(row["delta_us"]) for row in rows)


def test_parameters_and_overrides_reach_the_job(cannscope, job):
    code, out, _ = cannscope(
        "whatif", job, "--enable", "memory.recompute:granularity=selective", "--set", "run.steps=2", "--json"
    )
    document = json.loads(out)

    assert code == 0
    assert len(document["baseline"]["step_time_us"]) == 2
    assert document["candidate"]["scenario"]["optimizations"] == {"memory.recompute": {"granularity": "selective"}}


def test_without_anything_enabled_every_optimization_is_judged(cannscope, job):
    code, out, _ = cannscope("whatif", job, "--json")
    document = json.loads(out)

    assert code == 0
    assert {item["id"] for item in document["applicability"]} == {item.id for item in optimization_registry()}
    assert all(item["reason"] and not item["reason"].endswith(".") for item in document["applicability"])


def test_what_excludes_each_other_is_an_answer_of_no_with_the_reason(cannscope, job):
    both = ("--enable", "memory.expandable_segments", "--enable", "memory.max_split_size")

    code, out, _ = cannscope("whatif", job, *both)
    assert code == 1
    assert "refused: memory.expandable_segments conflicts with memory.max_split_size" in out

    code, out, _ = cannscope("whatif", job, *both, "--json")
    document = json.loads(out)
    assert code == 1
    assert document["refused"]
    assert document["contributions"] == []


def test_both_sides_are_written_as_captures_that_open_again(cannscope, job, tmp_path):
    code, _, _ = cannscope("whatif", job, "--enable", "memory.recompute", "-o", tmp_path / "out")
    assert code == 0

    prediction = json.loads((tmp_path / "out" / "prediction.json").read_text(encoding="utf-8"))
    assert prediction["schema"] == "cannscope.prediction/1"
    assert prediction["enabled"] == ["memory.recompute"]
    assert prediction["provenance"]["scenario_sha256"]
    assert prediction["provenance"]["enable"] == ["memory.recompute"]
    code, out, _ = cannscope("compare", tmp_path / "out" / "baseline", tmp_path / "out" / "candidate", "--json")
    assert code == 0
    compared = json.loads(out)
    assert compared["speedup_ratio"] < 1
    assert compared["steps"][0]["delta_us"] == pytest.approx(compared["step_time_delta_us"])


def test_a_capture_is_replayed_and_both_sides_are_analysed(cannscope, job, tmp_path):
    assert cannscope("simulate", job, "-o", tmp_path / "captures")[0] == 0

    code, out, err = cannscope("whatif", tmp_path / "captures", "--enable", "fusion.attention", "--json")
    document = json.loads(out)

    assert (code, err) == (0, "")
    assert abs(document["replay_error_ratio"]) < 0.03
    assert 0 <= document["inferred_share_ratio"] <= 1
    low, expected, high = (document["gain"]["time_us"][key] for key in ("low", "expected", "high"))
    assert low <= expected <= high
    for side in (document["baseline"], document["candidate"]):
        assert side["schema"] == "cannscope.analysis/1"
        assert side["ranks"][0]["steps"]
        assert len(side["step_time_us"]) == 1


def test_an_unknown_optimization_is_one_line_that_names_the_nearest(cannscope, job):
    code, out, err = cannscope("whatif", job, "--enable", "memory.recompte")

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "memory.recompute" in err


def test_a_scenario_stands_alone(cannscope, job, tmp_path):
    code, _, err = cannscope("whatif", job, tmp_path, "--enable", "memory.recompute")

    assert code == 2
    assert "stands alone" in err


def test_the_text_says_what_it_gives_and_which_switch_does_it(cannscope, job):
    _, out, _ = cannscope("whatif", job, "--enable", "memory.recompute")

    assert "small: step" in out
    assert "--recompute-granularity full" in out


def test_a_long_run_is_shown_at_both_ends_with_what_memory_did(cannscope, job):
    _, out, _ = cannscope("whatif", job, "--enable", "memory.recompute", "--set", "run.steps=20")

    for words in ("step, first eighth", "step, last eighth", "reserved, fullest rank", "driver calls"):
        assert words in out


def test_the_catalogue_lists_every_optimization_with_its_real_switches(cannscope):
    code, out, err = cannscope("optimizations", "--json")
    document = json.loads(out)

    assert (code, err, document["schema"]) == (0, "", "cannscope.optimizations/1")
    assert len(document["optimizations"]) == len(optimization_registry())
    for item in document["optimizations"]:
        assert item["simulator_only"] or all(switch["switch"] for switch in item["switches"]), item["id"]


def test_a_conflict_is_listed_on_both_sides(cannscope):
    def others(identifier):
        document = json.loads(cannscope("optimizations", identifier, "--json")[1])
        return {conflict["with"] for conflict in document["optimizations"][0]["conflicts"]}

    assert "memory.max_split_size" in others("memory.expandable_segments")
    assert "memory.expandable_segments" in others("memory.max_split_size")


def test_one_optimization_prints_a_switch_that_can_be_copied_whole(cannscope):
    _, out, _ = cannscope("optimizations", "memory.expandable_segments")

    assert "      export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True" in out.splitlines()


def test_an_unknown_id_of_the_catalogue_is_one_line(cannscope):
    code, _, err = cannscope("optimizations", "memory.expandable")

    assert code == 2
    assert "memory.expandable_segments" in err
