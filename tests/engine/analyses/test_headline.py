from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.communication import Arrival, Collective, JobCommunication, communication, split_waiting
from engine.analyses.headline import headline
from engine.analyses.memory import memory_analysis
from engine.analyses.steps import Step, steps
from engine.analyses.summary import JobSummary, RankSummary
from engine.core.units import NS_PER_MS
from engine.trace.job import Job
from engine.trace.trace import TimeRange
from tests.support.opened import opened_job


def step_of_ms(
    length: float,
    computing: float | None = None,
    communication: float | None = None,
    overlapped: float | None = None,
    *,
    number: int | None = 1,
    start: float = 0,
    wait: float | None = None,
) -> Step:
    def ns(value: float | None) -> float | None:
        return None if value is None else value * NS_PER_MS

    exposed = None if communication is None else communication - (overlapped or 0)
    free = None if computing is None else max(0.0, length - computing - (exposed or 0))
    return Step(
        step=number,
        range=TimeRange(round(start * NS_PER_MS), round((start + length) * NS_PER_MS)),
        computing_ns=ns(computing),
        communication_ns=ns(communication),
        communication_not_overlapped_ns=ns(exposed),
        overlapped_ns=ns(overlapped),
        free_ns=ns(free),
        stage_ns=None,
        bubble_ns=None,
        preparing_ns=None,
        wait_ns=ns(wait),
        transfer_ns=None if wait is None or communication is None else ns(communication - wait),
    )


def collective(elapsed: float, wait: float | None, late: int | None, *, start: float = 0, covered: float = 0):
    wait_ns = None if wait is None else round(wait * NS_PER_MS)
    elapsed_ns = round(elapsed * NS_PER_MS)
    return Collective(
        name="hcom_allReduce__1_1_1",
        group="1",
        group_name="",
        event=-1,
        start_ns=round(start * NS_PER_MS),
        elapsed_ns=elapsed_ns,
        bytes=None,
        wait_ns=wait_ns,
        transfer_ns=None if wait_ns is None else elapsed_ns - wait_ns,
        exposed_ns=elapsed_ns - round(covered * NS_PER_MS),
        exposed_wait_ns=wait_ns,
        hideable_ns=None,
        late_rank=late,
        members=() if wait is None else (Arrival(0, 0, 1), Arrival(1, 0, 1)),
        missing_ranks=(),
        vendor_transit_ns=None,
        vendor_wait_ns=None,
        vendor_idle_ns=None,
        bandwidth_bytes_per_s=None,
        step=None,
    )


def summary_of(
    *rank_steps: Step, collectives: tuple[Collective, ...] = (), stages: dict[int, int] | None = None, **values
) -> JobSummary:
    empty = RankSummary(0, rank_steps, None, None, (), (), (), ())
    return JobSummary((replace(empty, **values),), JobCommunication({0: collectives}, {}, (), stages or {}))


def sentence(*rank_steps: Step, **values) -> str:
    return headline(summary_of(*rank_steps, **values), 0).sentence


def test_waiting_is_named_by_the_stage_of_the_pipeline_it_is_for():
    text = sentence(
        step_of_ms(100, 30, 50, 0, wait=40),
        collectives=(collective(45, 39, 2), collective(5, 1, 1, start=45)),
        stages={0: 0, 1: 0, 2: 1},
    )
    assert text == (
        "Step 100 ms: rank 0 waits 40 % for the second stage, computes 30 %, is idle 20 %, transfers 10 %, overlaps 0 %"
    )


@pytest.mark.parametrize(
    ("waits", "whom"),
    [
        ({1: 40}, "for rank 1"),
        ({1: 30, 2: 10}, "mostly for rank 1"),
        ({1: 20, 2: 20}, "for other ranks"),
    ],
)
def test_waiting_is_named_by_the_rank_it_is_for(waits, whom):
    parts = tuple(collective(wait, wait, rank, start=index * 40) for index, (rank, wait) in enumerate(waits.items()))
    assert f"waits 40 % {whom}," in sentence(step_of_ms(100, 30, 40, 0, wait=40), collectives=parts)


def test_unsplit_communication_stays_whole_and_says_how_to_split_it():
    text = sentence(step_of_ms(810, 231, 420, 0), collectives=(collective(420, None, None),))
    assert text.startswith("Step 810 ms: rank 0 has 52 % communication, unsplit (open its peers to split it), computes")


def test_overlap_is_a_part_of_its_own():
    found = headline(
        summary_of(step_of_ms(100, 60, 40, 20, wait=0), collectives=(collective(40, 0, None, covered=20),)), 0
    )
    assert {share.id: round(share.ratio, 6) for share in found.shares} == {
        "computing": 0.4,
        "transfer": 0.2,
        "overlap": 0.2,
        "idle": 0.2,
        "waiting": 0.0,
    }
    assert found.shares[-1].text == "overlaps 20 %"


def test_of_many_steps_the_median_one_speaks_and_says_so():
    rank_steps = [step_of_ms(length, length / 2, number=n, start=n * 1000) for n, length in enumerate((300, 100, 200))]
    assert sentence(*rank_steps) == ("Step 200 ms (step 2, the median of 3): rank 0 computes 50 %, is idle 50 %")


def test_a_capture_without_steps_speaks_of_its_device_span():
    assert sentence(step_of_ms(16, 12, number=None)) == "Device span 16 ms: rank 0 computes 75 %, is idle 25 %"


def test_a_trace_without_device_work_says_what_it_has():
    found = headline(summary_of(step_of_ms(5), event_count=1234, duration_ns=23_400_000), 0)
    assert found.sentence == "No device work: 1,234 host events in 23.4 ms"
    assert (found.step_ns, found.shares, found.memory_sentence) == (None, (), "")


def test_overlapping_waits_of_host_collectives_count_once():
    waits = (collective(10, 8, 2), collective(10, 8, 2, start=4))
    text = sentence(collectives=waits, event_count=1, duration_ns=20_000_000)
    assert text == "No device work: 1 host event in 20 ms; rank 0 waits 12 ms for rank 2"


def test_an_unknown_rank_is_refused():
    with pytest.raises(KeyError):
        headline(summary_of(), 7)


def job_summary(job: Job) -> JobSummary:
    """Returns the parts of a summary that the headline speaks of."""
    joined = communication(job)
    ranks = []
    for entry in job.ranks:
        rank_steps = split_waiting(steps(entry.trace), joined.collectives[entry.rank])
        memory = memory_analysis(entry.trace, rank_steps)
        ranks.append(RankSummary(entry.rank, rank_steps, None, memory, (), (), (), ()))
    return JobSummary(tuple(ranks), joined)


def test_the_qwen3_job_says_its_first_sentence(captures):
    found = headline(job_summary(opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2")), 0)
    assert found.sentence == (
        "Step 810 ms: rank 0 waits 39 % for the second stage, computes 29 %, is idle 20 %, transfers 13 %, overlaps 0 %"
    )
    assert found.memory_sentence == "Memory: 10,282.75 MiB allocated of 10,372 MiB reserved"


def test_qwen3_rank_0_alone_says_that_communication_is_unsplit(captures):
    found = headline(job_summary(opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2/rank_0_ascend_pt")), 0)
    assert "52 % communication, unsplit" in found.sentence
    assert sum(share.ratio for share in found.shares) == pytest.approx(1)


def test_a_host_only_job_waits_for_the_rank_with_the_triple_batch(captures):
    found = headline(job_summary(opened_job(captures / "pytorch/gpt-cpu/ddp4_gloo")), 3)
    assert found.sentence.startswith("No device work: ")
    assert found.sentence.endswith(" for rank 2")


@given(
    st.floats(1, 1e4),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.booleans(),
)
def test_shares_never_exceed_the_whole(length, computing, communicating, overlap, waiting, split):
    overlapped = length * min(computing, communicating) * overlap
    both = computing + communicating - min(computing, communicating) * overlap
    scale = min(1.0, 1 / both) if both > 0 else 1.0
    computing_ms, communication_ms = length * computing * scale, length * communicating * scale
    wait = communication_ms * waiting if split else None
    step = step_of_ms(length, computing_ms, communication_ms, overlapped * scale, wait=wait)
    found = headline(summary_of(step, collectives=(collective(communication_ms, wait, 1 if split else None),)), 0)
    assert all(share.ratio >= 0 for share in found.shares)
    assert sum(share.ratio for share in found.shares) <= 1 + 1e-6
