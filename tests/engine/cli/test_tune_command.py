"""``tune`` as scripts use it."""

import json

import pytest

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
sequence_length = 2048
[run]
steps = 2
"""


def test_tune_is_one_document_whose_rounds_multiply_to_the_total(cannscope, job):
    code, out, err = cannscope("tune", job, "--rounds", "2", "--json")
    document = json.loads(out)

    assert (code, err, document["schema"]) == (0, "", "cannscope.tune/1")
    first, second = document["rounds"]
    assert first["round"] == 1
    assert first["added"] in first["enabled"]
    assert second["step_time_us"] < first["step_time_us"] < document["baseline"]["step_time_us"]
    total = (1 + first["gain_ratio"]) * (1 + second["gain_ratio"])
    assert document["total_speedup_ratio"] == pytest.approx(total)
    assert {"bottleneck", "tokens_per_s_per_device", "gain_ratio"} <= first.keys()


def test_the_log_names_each_loss_and_what_was_switched_on(cannscope, job):
    _, out, _ = cannscope("tune", job, "--rounds", "1")

    assert "fusion.attention" in out
    assert "kernels between the matrix products" in out


@pytest.mark.parametrize("lossy", [False, True])
def test_what_changes_results_is_told_to_be_left_out_only_where_it_was(cannscope, job, lossy):
    _, out, _ = cannscope("tune", job, "--rounds", "1", *(["--lossy"] if lossy else []))

    assert ("not tried without --lossy" in out) is not lossy
