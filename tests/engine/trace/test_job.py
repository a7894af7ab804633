import pytest

from engine.trace import Alignment, align
from tests.support.trace_text import trace_from_text


def test_ranks_of_one_host_share_a_clock():
    late = trace_from_text("gpu 7 | AA |", epoch_ns=10**18 + 5000, rank=0)
    early = trace_from_text("gpu 7 | AA |", epoch_ns=10**18, rank=1)
    job = align("job", [late, early])
    assert [(entry.rank, entry.offset_ns) for entry in job.ranks] == [(0, 5000), (1, 0)]
    assert Alignment.UNALIGNED not in {entry.alignment for entry in job.ranks}
    assert job.rank_trace(1).trace is early
    with pytest.raises(KeyError):
        job.rank_trace(7)


def test_missing_and_repeated_ranks_get_numbers_of_their_own():
    traces = [trace_from_text("gpu 7 | A |", rank=rank) for rank in (None, 3, 3)]
    job = align("job", traces)
    assert [entry.rank for entry in job.ranks] == [3, 4, 5]
