import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.allocators.caching import CACHING, CachingAllocator
from engine.runtime.allocators.interface import RequestKind, RequestLog
from engine.runtime.recorder import RankMemory, memory_of_run

ALLOCATE, FREE, LET_GO = RequestKind.ALLOCATE, RequestKind.FREE, RequestKind.FREE_REQUESTED


def memory_of(rows: list[tuple[RequestKind, int, int]]) -> RankMemory:
    kind, block, size = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    zeros = np.zeros(len(rows), dtype=np.int64)
    log = RequestLog(kind, block, size, zeros, zeros)
    run = CachingAllocator(CACHING).run(log)
    return memory_of_run(log, run, 100 * np.arange(len(rows), dtype=np.int64), np.arange(len(rows), dtype=np.int32))


def test_blocks_have_birth_end_and_release() -> None:
    memory = memory_of([(ALLOCATE, 0, 1000), (ALLOCATE, 1, 2000), (LET_GO, 0, 0), (FREE, 1, 0), (FREE, 0, 0)])
    assert memory.allocated_at_ns.tolist() == [0, 100]
    assert memory.freed_at_ns.tolist() == [200, 300]
    assert memory.released_at_ns.tolist() == [400, 300]
    assert memory.requested_bytes.tolist() == [1000, 2000]
    assert np.all(memory.size_bytes >= memory.requested_bytes)
    one, other = memory.size_bytes.tolist()
    assert memory.curve_allocated_bytes.tolist() == [one, one + other, other, 0, 0]
    assert memory.curve_active_bytes.tolist() == [one, one + other, one + other, one, 0]


def test_an_id_may_be_used_again_and_a_block_may_live_on() -> None:
    memory = memory_of([(ALLOCATE, 7, 600), (FREE, 7, 0), (ALLOCATE, 7, 600), (ALLOCATE, 8, 600)])
    assert memory.freed_at_ns.tolist() == [100, -1, -1]
    assert memory.operator.tolist() == [0, 2, 3]
    assert memory.address[0] == memory.address[1]


def test_nothing_asked_is_nothing_held() -> None:
    assert len(memory_of([]).address) == 0


@given(st.lists(st.tuples(st.integers(1, 1 << 22), st.booleans(), st.integers(0, 30)), max_size=60))
def test_totals_are_those_of_the_blocks_alive(program: list[tuple[int, bool, int]]) -> None:
    rows: list[tuple[RequestKind, int, int]] = []
    alive: list[int] = []
    for number, (size, frees, which) in enumerate(program):
        if frees and alive:
            rows.append((FREE, alive.pop(which % len(alive)), 0))
        else:
            rows.append((ALLOCATE, number, size))
            alive.append(number)
    memory = memory_of(rows)
    for moment, total in zip(memory.curve_time_ns.tolist(), memory.curve_allocated_bytes.tolist(), strict=True):
        living = (memory.allocated_at_ns <= moment) & ((memory.freed_at_ns > moment) | (memory.freed_at_ns < 0))
        assert memory.size_bytes[living].sum() == total
    assert np.all(memory.curve_allocated_bytes <= memory.curve_reserved_bytes)
