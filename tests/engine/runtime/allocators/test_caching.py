from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.units import GIB, KIB, MIB
from engine.runtime.allocators.block_store import FREE, UNMAPPED
from engine.runtime.allocators.caching import CACHING, CACHING_CUDA, EXPANDABLE, CachingAllocator
from engine.runtime.allocators.caching_rules import rounded_size, rules_of
from engine.runtime.allocators.interface import DriverAction, RequestKind, RequestLog
from tests.support.request_text import requests


def calls(run, *actions):
    driver = run.driver
    return [
        (DriverAction(action).name, size)
        for action, size in zip(driver.action.tolist(), driver.size_bytes.tolist(), strict=True)
        if not actions or action in actions
    ]


@pytest.mark.parametrize(
    ("settings", "requested", "size"),
    [
        (CACHING, 0, 512),
        (CACHING, 480, 512),
        (CACHING, 481, 1024),
        (CACHING_CUDA, 512, 512),
        (CACHING_CUDA, 513, 1024),
        (CACHING, 1 * MIB, 1 * MIB + 512),
        (replace(CACHING_CUDA, roundup_power2_divisions={8: 4}), 9 * MIB, 10 * MIB),
        (replace(CACHING_CUDA, roundup_power2_divisions={8: 4}), 8 * MIB, 8 * MIB),
        (replace(CACHING_CUDA, roundup_power2_divisions={8: 4}), 5 * MIB + 1, 5 * MIB + 512),
    ],
)
def test_a_request_is_padded_and_rounded(settings, requested, size):
    assert rounded_size(rules_of(settings), requested) == size


def test_segments_are_two_twenty_or_the_rounded_size():
    run = CachingAllocator(CACHING_CUDA).run(requests("a = 1M\nb = 11M\nc = 10M\nd = 1.5M"))
    assert calls(run) == [
        ("SEGMENT_ALLOCATE", 2 * MIB),
        ("SEGMENT_ALLOCATE", 12 * MIB),
        ("SEGMENT_ALLOCATE", 10 * MIB),
        ("SEGMENT_ALLOCATE", 20 * MIB),
    ]


def test_the_smallest_sufficient_hole_is_taken_the_lowest_among_equals():
    program = """
        a = 2M
        p = 2M
        b = 3M
        q = 2M
        c = 2M
        r = 2M
        free a
        free b
        free c
        x = 1.5M
        y = 2.5M
        z = 2M
    """
    run = CachingAllocator(CACHING_CUDA).run(requests(program))
    a, b, c, x, y, z = run.address[[0, 2, 4, 9, 10, 11]]
    assert (x, y, z) == (a, b, c)


def test_a_large_block_is_split_only_if_more_than_one_mib_is_left():
    allocator = CachingAllocator(CACHING_CUDA)
    allocator.run(requests("a = 12M\nfree a\nb = 11M"))
    assert allocator.state.allocated_bytes == 12 * MIB
    assert allocator.state.requested_bytes == 11 * MIB


def test_small_and_large_requests_and_streams_do_not_share_segments():
    run = CachingAllocator(CACHING, stream_count=2).run(requests("a = 8M\nfree a\nb = 100K\nc = 8M @1"))
    assert len(run.driver) == 3


def test_tags_of_other_classes_get_segments_of_their_own():
    allocator = CachingAllocator(CACHING, class_of_tag=(0, 1))
    run = allocator.run(requests("a = 8M #0\nb = 8M #1\nc = 2M #0"))
    assert len(run.driver) == 2
    assert run.address[2] - run.address[0] == 8 * MIB + 512


def test_a_dropped_block_is_active_until_it_is_freed():
    allocator = CachingAllocator(CACHING_CUDA)
    run = allocator.run(requests("a = 8M\ndrop a\nb = 8M"))
    assert run.address[2] != run.address[0]
    assert (allocator.state.allocated_bytes, allocator.state.active_bytes) == (8 * MIB, 16 * MIB)


def test_out_of_memory_first_waits_and_gives_the_cache_back():
    allocator = CachingAllocator(replace(CACHING_CUDA, limit_bytes=60 * MIB))
    run = allocator.run(requests("a = 40M\nb = 20M\ndrop a\nfree b\nc = 50M\nfree a\nd = 20M"))
    assert calls(run)[2:] == [
        ("SYNCHRONIZE", 0),
        ("SEGMENT_FREE", 20 * MIB),
        ("SEGMENT_FREE", 40 * MIB),
        ("RETRY", 50 * MIB),
        ("SEGMENT_ALLOCATE", 50 * MIB),
        ("SYNCHRONIZE", 0),
        ("RETRY", 20 * MIB),
        ("OUT_OF_MEMORY", 20 * MIB),
    ]
    assert run.address[-1] == -1


def test_serving_can_stop_at_the_failed_request():
    allocator = CachingAllocator(replace(CACHING_CUDA, limit_bytes=60 * MIB))
    run = allocator.run(requests("a = 50M\nb = 20M\nfree a"), stop_when_out=True)
    assert (run.served, len(run.address)) == (2, 2)
    assert allocator.state.allocated_bytes == 50 * MIB


def test_a_free_of_a_block_that_never_got_memory_is_ignored():
    allocator = CachingAllocator(replace(CACHING_CUDA, limit_bytes=10 * MIB))
    allocator.run(requests("a = 20M\nfree a\nb = 8M"))
    assert allocator.state.allocated_bytes == 0


def test_blocks_above_the_split_limit_stay_whole_and_are_released_for_a_request():
    settings = replace(CACHING_CUDA, max_split_size_bytes=32 * MIB, limit_bytes=100 * MIB)
    program = """
        a = 60M
        free a
        b = 20M
        c = 36M
    """
    run = CachingAllocator(settings).run(requests(program))
    assert calls(run) == [
        ("SEGMENT_ALLOCATE", 60 * MIB),
        ("SEGMENT_ALLOCATE", 20 * MIB),
        ("SEGMENT_FREE", 60 * MIB),
        ("SEGMENT_ALLOCATE", 36 * MIB),
    ]


def test_garbage_collection_gives_back_the_blocks_unused_for_longest():
    settings = replace(CACHING_CUDA, limit_bytes=100 * MIB, garbage_collection_ratio=0.5)
    program = """
        used = 1.5M
        old = 30M
        new = 26M
        free old
        x = 1.5M
        y = 1.5M
        free new
        z = 40M
    """
    run = CachingAllocator(settings).run(requests(program))
    assert ("SEGMENT_FREE", 30 * MIB) in calls(run)
    assert ("SEGMENT_FREE", 26 * MIB) not in calls(run)
    assert not calls(run, DriverAction.RETRY)


def test_expandable_segments_map_pages_behind_what_is_there():
    run = CachingAllocator(EXPANDABLE).run(requests("a = 30M\nb = 15M\nfree b\nc = 40M"))
    assert calls(run) == [("MAP", 40 * MIB), ("MAP", 20 * MIB), ("MAP", 20 * MIB)]
    assert run.address[3] == run.address[1]


def test_large_blocks_of_expandable_segments_begin_at_sixteen_kib():
    run = CachingAllocator(EXPANDABLE).run(requests("a = 1.5M\nb = 2M\nc = 1.2M"))
    a, b, c = (run.address - run.address[0]).tolist()
    assert (a, b) == (0, 1536 * KIB + 16 * KIB)
    assert c > b


def test_emptying_the_cache_unmaps_whole_pages_only():
    allocator = CachingAllocator(EXPANDABLE)
    run = allocator.run(requests("a = 30M\nb = 30M\nfree b\nempty"))
    assert calls(run, DriverAction.UNMAP) == [("UNMAP", 40 * MIB)]
    assert allocator.state.reserved_bytes == 40 * MIB


def test_a_reserved_range_without_a_page_is_given_up():
    allocator = CachingAllocator(EXPANDABLE)
    allocator.run(requests("a = 30M\nfree a\nempty"))
    assert allocator.state.reserved_bytes == 0
    assert len(allocator.layout().address) == 0


def test_stranded_is_what_is_free_in_used_segments_in_holes_too_small():
    program = """
        a = 4M
        b = 4M
        c = 12M
        d = 30M
        free a
        free c
        free d
        measure 8M
        measure 16M
    """
    run = CachingAllocator(CACHING_CUDA).run(requests(program))
    measured = run.driver.stranded_bytes[run.driver.action == DriverAction.MEASURE]
    # The whole free segment of d is not stranded: it can be given back.
    assert measured.tolist() == [4 * MIB, 16 * MIB]


def test_a_recorded_driver_is_followed_until_it_is_asked_for_something_else():
    recorded = [(1 << 30, 20 * MIB), (2 << 30, 20 * MIB), (3 << 30, 30 * MIB)]
    allocator = CachingAllocator(CACHING_CUDA, recorded=recorded)
    run = allocator.run(requests("a = 8M\nb = 24M\nc = 30M"))
    assert run.address[0] == 1 << 30
    assert not allocator.follows_recording
    assert run.address[1] > 3 << 30
    assert run.address[2] > 3 << 30


SETTINGS = [
    CACHING,
    CACHING_CUDA,
    EXPANDABLE,
    replace(CACHING, limit_bytes=64 * MIB, garbage_collection_ratio=0.6),
    replace(CACHING, max_split_size_bytes=16 * MIB, limit_bytes=100 * MIB),
    replace(EXPANDABLE, limit_bytes=80 * MIB),
    replace(CACHING_CUDA, roundup_power2_divisions={1: 4, 2: 8, 16: 2}),
]
SIZES = st.one_of(
    st.integers(0, 4 * KIB), st.integers(4 * KIB, MIB), st.integers(MIB, 12 * MIB), st.integers(12 * MIB, 40 * MIB)
)


@st.composite
def programs(draw):
    """Draws requests in which every block is freed at most once, with streams, dropped blocks and emptied caches."""
    rows, live, dropped = [], [], []
    for number in range(draw(st.integers(1, 60))):
        choice = draw(st.integers(0, 9))
        if choice < 5 or not (live or dropped):
            rows.append((RequestKind.ALLOCATE, number, draw(SIZES), draw(st.integers(0, 1)), draw(st.integers(0, 1))))
            live.append(number)
        elif choice < 7 and live:
            rows.append((RequestKind.FREE, live.pop(draw(st.integers(0, len(live) - 1))), 0, 0, 0))
        elif choice == 7 and live:
            dropped.append(live.pop(draw(st.integers(0, len(live) - 1))))
            rows.append((RequestKind.FREE_REQUESTED, dropped[-1], 0, 0, 0))
        elif choice == 8 and dropped:
            rows.append((RequestKind.FREE, dropped.pop(0), 0, 0, 0))
        else:
            rows.append((RequestKind.EMPTY_CACHE, -1, 0, 0, 0))
    rest = [(RequestKind.FREE, number, 0, 0, 0) for number in (*live, *dropped)]
    return np.array(rows, dtype=np.int64).reshape(-1, 5), np.array(rest, dtype=np.int64).reshape(-1, 5)


def log(rows):
    return RequestLog(*rows.T.copy())


@given(st.sampled_from(SETTINGS), programs())
def test_blocks_tile_their_segments_and_never_overlap(settings, program):
    allocator = CachingAllocator(settings, stream_count=2, class_of_tag=(0, 1))
    allocator.run(log(program[0]))
    layout, state = allocator.layout(), allocator.state
    ends = layout.address + layout.size_bytes
    assert np.all(layout.size_bytes > 0)
    assert np.all(ends[:-1] <= layout.address[1:])
    inside = ~layout.starts_segment[1:]
    assert np.all(ends[:-1][inside] == layout.address[1:][inside])
    same_state = layout.state[:-1] == layout.state[1:]
    free = (layout.state[:-1] == FREE) | (layout.state[:-1] == UNMAPPED)
    assert not np.any(same_state & free & inside)
    mapped = layout.state != UNMAPPED
    assert state.reserved_bytes == layout.size_bytes[mapped].sum()
    assert state.active_bytes == layout.size_bytes[mapped & (layout.state != FREE)].sum()
    assert state.requested_bytes == layout.requested_bytes.sum()
    assert state.reserved_bytes >= state.active_bytes >= state.allocated_bytes
    if settings.limit_bytes is not None:
        assert state.reserved_bytes <= settings.limit_bytes


@given(st.sampled_from(SETTINGS), programs())
def test_freeing_everything_merges_everything_back(settings, program):
    allocator = CachingAllocator(settings, stream_count=2, class_of_tag=(0, 1))
    allocator.run(log(np.concatenate(program)))
    layout = allocator.layout()
    assert allocator.state.active_bytes == allocator.state.requested_bytes == allocator.state.allocated_bytes == 0
    if not settings.expandable_segments:
        assert np.all(layout.starts_segment)
    allocator.run(requests("empty"))
    assert allocator.state.reserved_bytes == 0
    # A range that was reserved and could not be mapped for the limit is address space only.
    assert np.all(allocator.layout().state == UNMAPPED)


@given(st.sampled_from(SETTINGS), programs(), st.integers(0, 60))
def test_the_same_requests_give_the_same_addresses_however_they_are_handed_over(settings, program, cut):
    whole = CachingAllocator(settings, stream_count=2, class_of_tag=(0, 1)).run(log(program[0]))
    allocator = CachingAllocator(settings, stream_count=2, class_of_tag=(0, 1))
    parts = [allocator.run(log(part)) for part in (program[0][:cut], program[0][cut:])]
    assert np.array_equal(whole.address, np.concatenate([part.address for part in parts]))
    assert np.array_equal(whole.reserved_bytes, np.concatenate([part.reserved_bytes for part in parts]))


def test_reserved_changes_with_driver_calls_only():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 4 << 20, 900).tolist()
    rows = [(RequestKind.ALLOCATE, number, size, 0, 0) for number, size in enumerate(sizes)]
    run = CachingAllocator(CACHING).run(log(np.array(rows, dtype=np.int64)))
    changed = np.flatnonzero(np.diff(run.reserved_bytes, prepend=0))
    assert changed.tolist() == run.driver.request.tolist()
    assert run.reserved_bytes[-1] == run.driver.size_bytes.sum() < 4 * GIB


def test_many_blocks_make_the_store_grow_without_changing_anything():
    rows = [(RequestKind.ALLOCATE, number, 700 * KIB, 0, 0) for number in range(6000)]
    allocator = CachingAllocator(CACHING)
    run = allocator.run(log(np.array(rows, dtype=np.int64)))
    assert len(np.unique(run.address)) == 6000
    assert allocator.state.reserved_bytes == 3000 * 2 * MIB
