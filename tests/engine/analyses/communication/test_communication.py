from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.communication import JobCommunication, communication, split_waiting
from engine.analyses.communication.collective_rows import operation_of
from engine.analyses.steps import Step, steps
from engine.trace.job import Job, align
from engine.trace.strings import StringInterner
from engine.trace.tables import CollectiveTable, LinkTable, RecordedTable
from engine.trace.trace import ParallelGroup, TimeRange, Trace
from tests.support.opened import opened_job
from tests.support.trace_text import US, trace_from_text

FIRST = "hcom_allReduce__612_4_1"


def one_step(trace: Trace, **values: float | None) -> tuple[Step, ...]:
    empty = dict.fromkeys(
        (
            "computing_ns",
            "communication_ns",
            "communication_not_overlapped_ns",
            "overlapped_ns",
            "free_ns",
            "stage_ns",
            "bubble_ns",
            "preparing_ns",
        )
    )
    return (Step(step=None, range=trace.time_range, **{**empty, **values}),)


def job_of(
    *pictures: str,
    world_size: int | None = None,
    no_world: bool = False,
    names: dict[str, str] | None = None,
    **metadata,
) -> Job:
    traces = []
    for rank, picture in enumerate(pictures):
        trace = trace_from_text(picture, names or {"R": FIRST}, rank=rank)
        # Pictures begin at their first event; the column of that event is the rank's place on the common clock.
        body = picture.strip().splitlines()
        lead = min(len(line.partition("| ")[2]) - len(line.partition("| ")[2].lstrip(".")) for line in body)
        changes = {"epoch_ns": 10**18 + lead * US, **metadata}
        changes["world_size"] = None if no_world else world_size or len(pictures)
        traces.append(replace(trace, metadata=replace(trace.metadata, **changes)))
    return align("pictures", traces)


def analysed(job: Job, **values: float | None) -> JobCommunication:
    return communication(job, {entry.rank: one_step(entry.trace, **values) for entry in job.ranks})


def test_a_member_waits_until_the_last_one_arrives_and_transfers_after_that():
    result = analysed(job_of("comm 612 | RRRRRRRR |", "comm 612 | .....RRR |"))
    early, late = result.collectives[0][0], result.collectives[1][0]
    assert (early.wait_ns, early.transfer_ns, early.late_rank) == (5 * US, 3 * US, 1)
    assert (late.wait_ns, late.transfer_ns, late.late_rank) == (0, 3 * US, 1)
    assert [arrival.rank for arrival in early.members] == [0, 1]
    assert early.missing_ranks == ()


def test_a_collective_stays_whole_while_a_member_is_missing():
    result = analysed(job_of("comm 612 | RRRRRRRR |", "comm 612 | .....RRR |", world_size=8))
    collective = result.collectives[0][0]
    assert (collective.wait_ns, collective.transfer_ns, collective.hideable_ns) == (None, None, None)
    assert collective.elapsed_ns == 8 * US
    assert collective.missing_ranks == (2, 3, 4, 5, 6, 7)
    assert result.slow_ranks == ()


def test_the_members_of_a_named_group_are_those_of_the_metadata():
    groups = (ParallelGroup("612", "dp_cp", (0, 1)), ParallelGroup("9", "pp", (0, 2)))
    result = analysed(
        job_of("comm 612 | RRRR |", "comm 612 | ..RR |", world_size=4, parallel_groups=groups), computing_ns=0.0
    )
    collective = result.collectives[0][0]
    assert (collective.group_name, collective.wait_ns) == ("dp_cp", 2 * US)


def test_a_group_that_may_have_unopened_members_stays_unsplit():
    groups = (ParallelGroup("a", "dp", (0, 1)), ParallelGroup("b", "default_group", (0, 1, 2, 3)))
    result = analysed(job_of("comm 612 | RRRR |", "comm 612 | ..RR |", world_size=4, parallel_groups=groups))
    collective = result.collectives[0][0]
    assert collective.wait_ns is None
    assert collective.missing_ranks == (2, 3)
    assert collective.group_name == "default_group or dp" or collective.group_name == "dp or default_group"


def test_ranks_on_unrelated_clocks_stay_unsplit():
    job = job_of("comm 612 | RRRR |", "comm 612 | ..RR |", epoch_ns=None)
    assert analysed(job).collectives[0][0].wait_ns is None


def test_numbered_names_pair_although_one_capture_began_earlier():
    names = {"A": "hcom_allReduce__612_3_1", "B": "hcom_allReduce__612_4_1"}
    result = analysed(job_of("comm 612 | AAA..BBBB |", "comm 612 | .......BB |", names=names))
    first, second = result.collectives[0]
    assert first.wait_ns is None
    assert (second.wait_ns, second.late_rank) == (2 * US, 1)
    assert [item.code for item in result.diagnostics] == ["unpaired-collectives"]


def test_unnumbered_kernels_pair_by_order_in_their_kind():
    names = {"A": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "G": "ncclKernel_AllGather_RING_LL_Sum_int8_t(...)"}
    result = analysed(job_of("gpu 7 | AAAA.AAAA.GG |", "gpu 7 | ..AA.AAAA.GG |", names=names))
    assert [item.wait_ns for item in result.collectives[0]] == [2 * US, 0, 0]
    assert [item.late_rank for item in result.collectives[0]] == [1, None, None]


def test_kernels_whose_counts_differ_stay_unsplit_and_are_counted():
    names = {"A": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"}
    result = analysed(job_of("gpu 7 | AAAA.AAAA |", "gpu 7 | ..AA |", names=names))
    assert [item.wait_ns for item in result.collectives[0]] == [None, None]
    assert [(item.code, item.count) for item in result.diagnostics] == [("unpaired-collectives", 3)]


def test_a_member_that_left_before_the_last_arrived_proves_the_pairing_wrong():
    names = {"A": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"}
    result = analysed(job_of("gpu 7 | AAAA |", f"gpu 7 | {'.' * 500}AAAA |", names=names))
    assert result.collectives[0][0].wait_ns is None


def test_groups_unnamed_by_the_capture_are_told_apart_by_what_contradicts():
    names = {"A": "gloo:all_reduce"}
    groups = (ParallelGroup("1", "", (0, 1)), ParallelGroup("2", "", (2, 3)))
    later = "." * 300
    result = analysed(
        job_of(
            "host 1 | AAAA |",
            "host 1 | ..AA |",
            f"host 1 | {later}AAAA |",
            f"host 1 | {later}.AAA |",
            names=names,
            parallel_groups=groups,
        )
    )
    assert [result.collectives[rank][0].wait_ns for rank in range(4)] == [2 * US, 0, 1 * US, 0]
    assert [result.collectives[rank][0].late_rank for rank in range(4)] == [1, 1, 3, 3]


def test_a_send_meets_its_receive():
    result = analysed(job_of("host 1 | AAAA |", "host 1 | ...B |", names={"A": "gloo:send", "B": "gloo:recv"}))
    assert (result.collectives[0][0].wait_ns, result.collectives[0][0].late_rank) == (3 * US, 1)


def test_kernels_inside_an_operator_of_a_group_track_are_part_of_it():
    picture = """
        npu 2    | ..VV..VV |
        comm 612 | .RRRR... |
    """
    names = {"R": FIRST, "V": "allreduceAivKernel"}
    found = analysed(job_of(picture, names=names)).collectives[0]
    assert [(item.name, item.elapsed_ns) for item in found] == [(FIRST, 4 * US), ("allreduceAivKernel", 2 * US)]


def test_launches_of_a_device_library_are_no_host_collectives():
    names = {"A": "nccl:all_reduce", "B": "c10d::allreduce_"}
    picture = """
        host 1 | BBBB |
        host 1 | .AA. |
    """
    assert analysed(job_of(picture, names=names)).collectives == {0: ()}


def test_sends_in_a_group_of_three_stay_unsplit_because_nobody_knows_the_peers():
    names = {"R": "hcom_batchSendRecv__612_4_1"}
    result = analysed(job_of("comm 612 | RRRR |", "comm 612 | RRRR |", "comm 612 | ..RR |", names=names))
    assert result.collectives[0][0].wait_ns is None
    assert [(item.code, item.count) for item in result.diagnostics] == [("peers-unknown", 3)]


def test_a_wait_below_the_rounding_of_the_starts_counts_as_none():
    job = job_of("comm 612 | RRRR.R |", "comm 612 | .RRR.R |", names={"R": "hcom_allReduce__612_4_1"})
    result = analysed(job)
    assert result.collectives[0][0].wait_ns == 0
    assert result.collectives[0][0].late_rank is None


def test_clocks_that_are_provably_apart_make_short_waits_meaningless():
    names = {"A": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"}
    result = analysed(job_of("gpu 7 | AA....AAAAAA...AAAAAAAAAA |", "gpu 7 | .....AA.AAAA.......AAAAAA |", names=names))
    assert [item.wait_ns for item in result.collectives[0]] == [0, 0, 4 * US]


def test_exposed_is_what_no_computing_covers():
    picture = """
        npu 2    | ..CC.... |
        comm 612 | RRRRRRRR |
    """
    result = analysed(job_of(picture, "comm 612 | .....RRR |"), computing_ns=2.0 * US, overlapped_ns=2.0 * US)
    collective = result.collectives[0][0]
    assert (collective.exposed_ns, collective.exposed_wait_ns) == (6 * US, 3 * US)
    assert collective.hideable_ns == 0


@pytest.mark.parametrize(("computing_us", "hideable_us"), [(10, 3), (1, 1), (0, 0)])
def test_only_exposed_transfer_can_hide_and_only_behind_computing_of_its_step(computing_us, hideable_us):
    result = analysed(job_of("comm 612 | RRRRRRRR |", "comm 612 | .....RRR |"), computing_ns=computing_us * US)
    assert result.collectives[0][0].hideable_ns == hideable_us * US


def test_a_slow_rank_is_charged_the_union_of_the_waits_and_told_what_it_did():
    slow = """
        npu 2    | CCCC...... |
        comm 612 | .....RRRRR |
    """
    result = analysed(job_of("comm 612 | RRRRRRRRRR |", "comm 612 | .RRRRRRRRR |", slow))
    assert [(item.rank, item.cost_ns) for item in result.slow_ranks] == [(2, 5 * US)]
    assert result.slow_ranks[0].cause == "computing 80 %, idle 20 %"


def test_stages_come_from_the_pipeline_group():
    groups = (ParallelGroup("x", "pp", (0, 1)),)
    assert analysed(job_of("comm 612 | RR |", "comm 612 | RR |", parallel_groups=groups)).stages == {0: 0, 1: 1}


def test_links_are_summed_by_kind_and_empty_ones_left_out():
    job = job_of("comm 612 | RRRR |")
    trace = job.ranks[0].trace
    words = [trace.strings.id_of(FIRST), trace.strings.id_of(FIRST), trace.strings.id_of("612")]
    links = LinkTable(
        collective=np.zeros(3, dtype=np.int32),
        link=np.array([words[0], words[0], words[2]], dtype=np.int32),
        bytes=np.array([100, 300, 0]),
        transit_ns=np.array([10, 20, 0]),
        large_packet_ratio=np.array([1.0, np.nan, 0.5]),
    )
    entry = replace(job.ranks[0], trace=replace(trace, links=links))
    found = analysed(Job("x", (entry,))).links[0]
    assert [(item.link, item.bytes, item.transit_ns, item.large_packet_ratio) for item in found] == [
        (FIRST, 400, 30, 1.0)
    ]


def test_the_profilers_own_split_stands_beside_ours():
    job = job_of("comm 612 | RRRR |", "comm 612 | ..RR |")
    trace = job.ranks[0].trace
    table = CollectiveTable(
        event=np.array([0], dtype=np.int32),
        name=trace.events.name[:1],
        group=np.array([trace.strings.id_of("612")], dtype=np.int32),
        start_ns=np.array([0]),
        elapsed_ns=np.array([4 * US]),
        bytes=np.array([8000]),
        vendor_transit_ns=np.array([0]),
        vendor_wait_ns=np.array([0]),
        vendor_synchronization_ns=np.array([0]),
        vendor_idle_ns=np.array([4 * US]),
        step=np.array([13], dtype=np.int32),
    )
    entry = replace(job.ranks[0], trace=replace(trace, collectives=table))
    result = analysed(Job("x", (entry, job.ranks[1])))
    (collective,) = result.collectives[0]
    assert (collective.vendor_transit_ns, collective.vendor_idle_ns, collective.step) == (0, 4 * US, 13)
    assert collective.wait_ns == 2 * US
    assert collective.bandwidth_bytes_per_s == pytest.approx(8000 / 2e-6)


def test_a_job_without_communication_has_empty_results():
    result = analysed(job_of("npu 2 | CC |"))
    assert result.collectives == {0: ()}
    assert result.slow_ranks == ()


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("hcom_allReduce__612_4_1", "allreduce"),
        ("hcom_batchSendRecv__128_3_1", "batchsendrecv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reducescatter"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long)", "sendrecv"),
        ("gloo:all_reduce", "allreduce"),
        ("c10d::allreduce_", "allreduce"),
        ("c10d::_allgather_base_", "allgatherbase"),
        ("allreduce", "allreduce"),
    ],
)
def test_one_word_for_every_way_of_writing_an_operation(name, operation):
    assert operation_of(name) == operation


def test_split_waiting_leaves_a_step_with_an_unsplit_collective_alone():
    result = analysed(job_of("comm 612 | RRRR |", world_size=2))
    steps = (Step(None, TimeRange(0, 4 * US), 0.0, 4.0 * US, 4.0 * US, 0.0, 0.0, 0.0, 0.0, None),)
    assert split_waiting(steps, result.collectives[0]) == steps


@st.composite
def arrivals(draw):
    """Starts and a common end of one symmetric collective of two to five ranks, in µs."""
    starts = draw(st.lists(st.integers(0, 60), min_size=2, max_size=5))
    return starts, max(starts) + draw(st.integers(1, 20))


@given(st.lists(arrivals(), min_size=1, max_size=3))
def test_waiting_and_transfer_add_up_and_the_late_rank_waits_for_nobody(meetings):
    count = min(len(starts) for starts, _ in meetings)
    lines = [""] * count
    origin = 0
    for starts, end in meetings:
        for rank in range(count):
            lines[rank] += "." * (origin + starts[rank] - len(lines[rank])) + "R" * (end - starts[rank])
        origin += end + 1
    names = {"R": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"}
    job = job_of(*(f"gpu 7 | {line} |" for line in lines), names=names)
    result = analysed(job)
    for rank in range(count):
        entry = job.rank_trace(rank)
        for collective in result.collectives[rank]:
            assert collective.wait_ns >= 0
            assert collective.wait_ns + collective.transfer_ns == collective.elapsed_ns
            if collective.late_rank == rank:
                assert collective.wait_ns == 0
        busy_ns = float(sum(item.elapsed_ns for item in result.collectives[rank]))
        (step,) = split_waiting(one_step(entry.trace, communication_ns=busy_ns), result.collectives[rank])
        assert step.wait_ns + step.transfer_ns == busy_ns


def matrix(trace: Trace, group: str, *links: str) -> Trace:
    """Returns the trace with a ``communication_matrix`` of the given links (``"0-7"``) of one group."""
    interner = StringInterner(trace.strings)
    ends = [link.split("-") for link in links]
    texts = {
        "Group": interner.intern_all([group] * len(links)),
        "Source": interner.intern_all([source for source, _ in ends]),
        "Destination": interner.intern_all([destination for _, destination in ends]),
    }
    table = RecordedTable("communication_matrix", {}, texts, tuple(texts))
    return replace(trace, strings=interner.table(), tables={"communication_matrix": table})


def with_links(job: Job, group: str, *links_of_rank: tuple[str, ...]) -> Job:
    ranks = [
        replace(entry, trace=matrix(entry.trace, group, *links))
        for entry, links in zip(job.ranks, links_of_rank, strict=True)
    ]
    return Job(job.path, tuple(ranks))


PAIR = ("comm 612 | RRRR |", "comm 612 | ..RR |")


def test_links_that_lead_beyond_the_open_ranks_name_the_missing_ones():
    job = with_links(job_of(*PAIR, no_world=True), "612", ("0-0", "0-1", "0-7"), ("1-1", "1-0"))
    assert analysed(job).collectives[0][0].missing_ranks == (2, 3, 4, 5, 6, 7)


def test_links_that_never_lead_beyond_the_open_ranks_prove_the_group_whole():
    job = with_links(job_of(*PAIR, no_world=True), "612", ("0-0", "0-1"), ("1-1", "1-0"))
    assert analysed(job).collectives[0][0].wait_ns == 2 * US


def test_the_root_of_a_star_has_no_links_and_proves_nothing():
    job = with_links(job_of(*PAIR, no_world=True), "612", ("0-0",), ("1-1", "1-0"))
    assert analysed(job).collectives[0][0].wait_ns is None


def test_the_place_in_a_group_tells_groups_of_the_metadata_apart():
    groups = (ParallelGroup("a", "default_group", (0, 1, 2, 3)), ParallelGroup("b", "embd", (3, 1)))
    job = job_of(*PAIR, world_size=4, parallel_groups=groups)
    job = Job(job.path, tuple(replace(entry, rank=rank) for entry, rank in zip(job.ranks, (1, 3), strict=True)))
    job = with_links(job, "612", ("1-1",), ("0-0", "0-1"))
    collective = analysed(job).collectives[1][0]
    assert (collective.group_name, collective.wait_ns) == ("embd", 2 * US)


def test_a_pipeline_group_is_known_by_its_sends():
    groups = (ParallelGroup("a", "default_group", (0, 1, 2, 3)), ParallelGroup("b", "pp", (0, 1)))
    names = {"R": "hcom_batchSendRecv__612_4_1"}
    result = analysed(job_of(*PAIR, world_size=4, parallel_groups=groups, names=names))
    assert (result.collectives[0][0].group_name, result.collectives[0][0].wait_ns) == ("pp", 2 * US)


def test_sequence_numbers_pair_captures_that_begin_at_different_times():
    names = {"A": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"}
    job = job_of("comm 5 | AAAA.AAAA |", "comm 5 | .......AA |", names=names)
    numbers = {(0, 0): 41, (0, 1): 42, (1, 0): 42}

    def numbered(entry):
        count = len(entry.trace.events)
        events = replace(entry.trace.events, args_offset=np.arange(count, dtype=np.int64))
        decoder = lambda offset: {"Seq": numbers[entry.rank, offset]}  # noqa: E731
        return replace(entry, trace=replace(entry.trace, events=events, argument_decoder=decoder))

    result = analysed(Job(job.path, tuple(map(numbered, job.ranks))))
    assert [item.wait_ns for item in result.collectives[0]] == [None, 2 * US]
    assert result.collectives[1][0].wait_ns == 0


def test_host_collectives_are_exposed_where_no_operator_runs():
    names = {"A": "gloo:all_reduce", "C": "aten::mm"}
    picture = """
        host 1 | CCCC.... |
        host 2 | ..AAAAAA |
    """
    collective = analysed(job_of(picture, names=names)).collectives[0][0]
    assert (collective.exposed_ns, collective.elapsed_ns) == (4 * US, 6 * US)


def test_the_four_qwen3_ranks_say_who_waits_for_whom(captures):
    job = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2")
    result = communication(job)
    assert result.stages == {0: 0, 1: 0, 2: 1, 3: 1}
    assert result.diagnostics == ()
    first = result.collectives[0]
    pairs = [item for item in first if "batchSendRecv" in item.name]
    waiting_for_stage = sum(item.wait_ns for item in pairs if item.late_rank == 2)
    assert waiting_for_stage == pytest.approx(312.1e6, abs=0.05e6)
    assert sum(item.wait_ns for item in first if item not in pairs) == pytest.approx(6.07e6, abs=0.01e6)
    assert sum(item.transfer_ns for item in first) == pytest.approx(102.0e6, abs=0.01e6)
    assert sum(item.hideable_ns for item in first) == pytest.approx(102.0e6, abs=0.01e6)
    for rank in range(4):
        transfers = [item.transfer_ns for item in result.collectives[rank] if "batchSendRecv" not in item.name]
        assert 99.95e6 <= sum(transfers) <= 100.25e6
    assert {item.group_name for item in pairs} == {"pp"}
    booked_as_idle = next(item for item in pairs if item.vendor_idle_ns > 150e6)
    assert (booked_as_idle.vendor_transit_ns, booked_as_idle.vendor_wait_ns) == (0, 0)
    assert booked_as_idle.wait_ns == pytest.approx(154.4e6, abs=0.01e6)
    costs = {item.rank: item for item in result.slow_ranks}
    assert costs[2].cause.startswith("computing 94 %")
    assert "lists no kernels" in costs[3].cause


def test_qwen3_waits_and_transfers_add_up_to_the_communication_of_every_step(captures):
    job = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2")
    result = communication(job)
    for entry in job.ranks:
        (step,) = split_waiting(steps(entry.trace), result.collectives[entry.rank])
        assert step.wait_ns + step.transfer_ns == step.communication_ns


def test_one_qwen3_rank_alone_stays_unsplit_and_names_its_peers(captures):
    (entry,) = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2/rank_0_ascend_pt").ranks
    result = communication(Job("x", (entry,)))
    assert all(item.wait_ns is None and item.missing_ranks for item in result.collectives[0])
    assert {item.missing_ranks for item in result.collectives[0] if item.group_name == "pp"} == {(2,)}
    (step,) = split_waiting(steps(entry.trace), result.collectives[0])
    assert (step.wait_ns, step.transfer_ns) == (None, None)


def test_two_ranks_of_eight_stay_unsplit(captures):
    result = communication(opened_job(captures / "ascend/910b-cnn-ddp2-text/level1"))
    for own in result.collectives.values():
        assert len(own) == 4
        assert {item.wait_ns for item in own} == {None}
        assert {item.missing_ranks for item in own} == {(2, 3, 4, 5, 6, 7)}


def test_the_dlrm_straggler_is_rank_seven(captures):
    result = communication(opened_job(captures / "pytorch/dlrm-v100-8ranks"))
    assert result.slow_ranks[0].rank == 7
    # HTA names the last arrivals of the second all-to-all: k = 1 [7], k = 2 [2, 7], k = 3 [2, 7, 6].
    assert [arrival.rank for arrival in result.collectives[0][1].members][-3:] == [6, 2, 7]
    assert all(item.wait_ns is not None for own in result.collectives.values() for item in own)


def test_the_gloo_rank_with_the_triple_batch_is_late(captures):
    result = communication(opened_job(captures / "pytorch/gpt-cpu/ddp4_gloo"))
    assert result.slow_ranks[0].rank == 2
    assert result.slow_ranks[0].cause.startswith("computing")
    gradients = [item for item in result.collectives[1] if item.name == "gloo:all_reduce" and len(item.members) == 4]
    assert [item.late_rank for item in gradients[:6]] == [2] * 6
    pairs = {tuple(sorted(arrival.rank for arrival in item.members)) for item in result.collectives[1]}
    assert pairs == {(0, 1), (0, 1, 2, 3)}


def test_one_rank_of_two_knows_its_peer(captures):
    result = communication(opened_job(captures / "pytorch/nccl_data.json.gz"))
    assert {item.missing_ranks for item in result.collectives[0]} == {(1,)}
    assert all(item.bytes for item in result.collectives[0])


def test_links_to_places_no_group_has_are_no_hint():
    job = with_links(job_of(*PAIR, no_world=True), "612", ("0-0", "0-1", "0-99999999999"), ("1-1", "1-0", "1-²"))
    assert analysed(job).collectives[0][0].wait_ns == 2 * US
