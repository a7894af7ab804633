from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.communication.collective_times import collective_times
from engine.analyses.communication.collectives import Collective
from engine.trace.intervals import intersection, join


def collective(start_ns, elapsed_ns, wait_ns):
    unknown = {
        name: None
        for name in Collective.__dataclass_fields__
        if name not in ("name", "group", "group_name", "event", "start_ns", "elapsed_ns", "wait_ns", "exposed_ns")
    }
    return Collective(
        **{**unknown, "members": (), "missing_ranks": ()},
        name="allReduce",
        group="dp",
        group_name="",
        event=-1,
        start_ns=start_ns,
        elapsed_ns=elapsed_ns,
        wait_ns=wait_ns,
        exposed_ns=elapsed_ns,
    )


@st.composite
def collectives(draw):
    elapsed_ns = draw(st.integers(0, 50))
    wait_ns = draw(st.one_of(st.none(), st.integers(0, elapsed_ns)))
    return collective(draw(st.integers(0, 200)), elapsed_ns, wait_ns)


def bounds(intervals):
    return list(zip(intervals.start_ns.tolist(), intervals.end_ns.tolist(), strict=True))


def test_waiting_comes_before_transfer():
    times = collective_times([collective(10, 30, 20)])
    assert (bounds(times.wait), bounds(times.transfer)) == ([(10, 30)], [(30, 40)])


def test_a_moment_in_which_another_collective_transfers_is_no_waiting():
    times = collective_times([collective(0, 30, 20), collective(5, 10, 0)])
    assert bounds(times.wait) == [(0, 5), (15, 20)]
    assert bounds(times.transfer) == [(5, 15), (20, 30)]


def test_unsplit_time_is_what_no_split_collective_covers():
    times = collective_times([collective(0, 10, None), collective(5, 10, 5)])
    assert bounds(times.unsplit) == [(0, 5)]


@given(st.lists(collectives(), max_size=12))
def test_the_three_sets_are_disjoint_and_cover_every_collective(items):
    times = collective_times(items)
    parts = (times.transfer, times.wait, times.unsplit)
    covered = {moment for item in items for moment in range(item.start_ns, item.start_ns + item.elapsed_ns)}
    assert join(*parts).total_ns == len(covered) == sum(part.total_ns for part in parts)
    assert intersection(times.transfer, times.wait).total_ns == 0
