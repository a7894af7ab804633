"""What-if on real captures: what is known of these jobs holds, and every answer has a reason."""

import pytest

from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Verdict
from engine.optimizations.selection import enabled_from_texts
from engine.whatif.run import applicability, what_if
from engine.whatif.subject import open_subject

REGISTRY = optimization_registry()
ASKED = (
    "memory.expandable_segments",
    "fusion.attention",
    "fusion.optimizer",
    "communication.overlap_gradients",
    "communication.topk_compression",
    "host.graph_mode",
)
"""An allocator, two fusions, overlap, compression, graph mode."""
MS = 1e6


def ask(subject, *texts):
    return what_if(subject, enabled_from_texts(texts, REGISTRY), REGISTRY)


@pytest.fixture(scope="module")
def qwen3(captures):
    return open_subject([captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"])


@pytest.mark.parametrize(
    "name",
    [
        "ascend/910b-cnn-ddp2-text/level1",
        "ascend/910b-qwen3-0.6b-pp2dp2",
        "pytorch/nccl_data.json.gz",
        "pytorch/df_index_resolver.json.gz",
    ],
)
def test_each_kind_of_optimization_is_answered_beside_a_small_replay_error(captures, name):
    result = ask(open_subject([captures / name]), *ASKED)

    assert abs(result.replay_error_ratio) < 0.03
    assert set(result.applicability) == set(ASKED)
    assert all(item.reason for item in result.applicability.values())
    applied = {key for key, item in result.applicability.items() if item.verdict is Verdict.APPLIES}
    assert {item.id for item in result.contributions} == applied
    assert result.gain.low_ns <= result.gain.expected_ns <= result.gain.high_ns
    assert result.candidate.status.value == "done"


def test_fusing_the_loss_of_the_second_stage_shortens_the_whole_qwen3_job(qwen3):
    gain = ask(qwen3, "fusion.cross_entropy").gain

    assert 30 * MS < gain.low_ns < gain.expected_ns < 110 * MS


def test_overlap_wins_at_most_the_transfer_the_qwen3_job_has(qwen3):
    result = ask(qwen3, "communication.overlap_gradients", "communication.overlap_parameters")

    assert 0 < result.gain.expected_ns < 102 * MS
    assert "waiting for rank" in result.applicability["communication.overlap_gradients"].reason


def test_what_the_qwen3_job_has_on_is_known(qwen3):
    found = applicability(qwen3, REGISTRY)

    for identifier in ("memory.expandable_segments", "fusion.attention", "fusion.rms_norm", "fusion.swiglu"):
        assert found[identifier].verdict is Verdict.ALREADY_ON, identifier


def test_shares_of_the_qwen3_step_are_those_of_its_slowest_rank(qwen3):
    shares = qwen3.baseline().shares

    assert shares.communication_ratio * 810 == pytest.approx(102, abs=2)
    assert shares.bubble_ratio * 810 == pytest.approx(312, abs=4)


def test_an_incomplete_group_is_never_scaled_by_bytes(captures):
    result = ask(open_subject([captures / "ascend/910b-cnn-ddp2-text/level1"]), "communication.topk_compression")

    assert result.applicability["communication.topk_compression"].verdict is Verdict.UNKNOWN
    assert "open the peers" in result.applicability["communication.topk_compression"].reason
    assert result.gain.expected_ns == 0
