import pytest

from engine.analyses.summary import summarize
from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from engine.trace.job import align
from tests.support.opened import opened_job
from tests.support.trace_text import US, trace_from_text

PICTURE = """
    host 1 | LL.L...  |
    npu 2  | .AAA.BB. |
"""


def two_ranks():
    return align("pictures", [trace_from_text(PICTURE, rank=3), trace_from_text(PICTURE, rank=1)])


def test_every_rank_of_a_job_is_analysed_in_order():
    summary = summarize(two_ranks())
    assert [entry.rank for entry in summary.ranks] == [1, 3]
    entry = summary.rank(3)
    assert (entry.event_count, entry.duration_ns) == (4, 7 * US)
    assert entry.device.compute_ns == 5 * US
    assert entry.memory is None
    assert sum(item.total_ns for item in entry.operators) == 5 * US
    assert set(summary.communication.collectives) == {1, 3}


def test_a_rank_the_job_lacks_is_refused():
    with pytest.raises(KeyError):
        summarize(two_ranks()).rank(0)


def test_progress_rises_to_the_end_and_names_the_work():
    heard = []
    summarize(two_ranks(), progress=lambda ratio, what: heard.append((ratio, what)))
    ratios = [ratio for ratio, _ in heard]
    assert ratios == sorted(ratios)
    assert (ratios[0], heard[-1]) == (0.0, (1.0, "done"))
    assert all(ratio < 1 for ratio in ratios[:-1])
    assert "rank 3: memory" in [what for _, what in heard]


@pytest.mark.parametrize("after", [0, 3, 8, 14])
def test_a_cancelled_summary_stops_at_the_next_stage(after):
    begun = []
    cancel = CancelToken(lambda: len(begun) >= after)
    with pytest.raises(OperationCancelled):
        summarize(two_ranks(), progress=lambda _, what: begun.append(what), cancel=cancel)
    assert len(begun) == after


def test_the_steps_of_a_summary_carry_waiting_and_transfer(captures):
    summary = summarize(opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2"))
    (step,) = summary.rank(0).steps
    assert step.wait_ns == pytest.approx(318.17e6, abs=0.01e6)
    assert step.transfer_ns == pytest.approx(102.0e6, abs=0.01e6)
    assert summary.rank(1).memory is None
