import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.units import GIB, MIB
from engine.runtime.addresses.address_map import Basis
from engine.runtime.addresses.from_log import Pools, ServedLog, address_map
from engine.runtime.addresses.misses import Refusal, miss_report
from engine.runtime.allocators.block_store import ALLOCATED, FREE, UNMAPPED
from engine.runtime.allocators.caching import CACHING, EXPANDABLE, CachingAllocator, with_limit
from engine.runtime.allocators.interface import DriverAction, RequestKind, RequestLog
from tests.support.request_text import requests

SMALL_ON_LARGE = """
a = 12M
b = 12M
free a
free b
"""


def mapped(allocator, *logs):
    before = allocator.layout()
    served = [ServedLog(log, allocator.run(log)) for log in logs]
    pools = Pools(allocator.stream_count, allocator.class_of_tag)
    return address_map(before, served, allocator.settings, pools, basis=Basis.SIMULATED, policy="test")


def of_text(program, policy=CACHING, limit_bytes=None, **options):
    return mapped(CachingAllocator(with_limit(policy, limit_bytes), **options), requests(program))


def alive_at_end(found):
    blocks = found.blocks
    rows = np.flatnonzero(blocks.last_event == found.event_count)
    return sorted(zip(blocks.address[rows].tolist(), blocks.size_bytes[rows].tolist(), strict=True))


def bytes_behind(found, event):
    segments = found.segments
    live = (segments.first_event <= event) & (segments.last_event > event)
    return int(segments.size_bytes[live].sum())


def random_log(seed, count, tags=4):
    """Allocations and frees of live blocks, ids used again after their free, an emptied cache now and then."""
    generator = np.random.default_rng(seed)
    live, spare, fresh, rows = [], [], 0, []
    for _ in range(count):
        kind = generator.random()
        if live and kind < 0.45:
            block = live.pop(int(generator.integers(len(live))))
            spare.append(block)
            rows.append((RequestKind.FREE, block, 0, 0, 0))
        elif kind < 0.48:
            rows.append((RequestKind.EMPTY_CACHE, -1, 0, 0, 0))
        else:
            block = spare.pop() if spare and generator.random() < 0.5 else fresh
            fresh = max(fresh, block + 1)
            size = int(2 ** generator.uniform(9, 26))
            live.append(block)
            rows.append((RequestKind.ALLOCATE, block, size, int(generator.integers(2)), int(generator.integers(tags))))
    return RequestLog(*np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy())


@pytest.mark.parametrize("policy", [CACHING, EXPANDABLE])
@given(seed=st.integers(0, 10_000), count=st.integers(1, 300), cut=st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_the_map_ends_as_the_allocator_stands_and_never_overlaps(policy, seed, count, cut):
    allocator = CachingAllocator(with_limit(policy, GIB // 4), stream_count=2, class_of_tag=(0, 0, 0, 1))
    log = random_log(seed, count)
    columns = [getattr(log, name) for name in ("kind", "block", "size_bytes", "stream", "tag")]
    first = RequestLog(*(column[:cut] for column in columns))
    second = RequestLog(*(column[cut:] for column in columns))
    allocator.run(first)
    found = mapped(allocator, second)
    layout = allocator.layout()
    taken = layout.state == ALLOCATED
    assert alive_at_end(found) == sorted(
        zip(layout.address[taken].tolist(), layout.size_bytes[taken].tolist(), strict=True)
    )
    assert bytes_behind(found, found.event_count - 1) == layout.size_bytes[layout.state != UNMAPPED].sum()
    for event in range(0, found.event_count, 17):
        live = np.flatnonzero((found.blocks.first_event <= event) & (found.blocks.last_event > event))
        order = live[np.argsort(found.blocks.address[live])]
        ends = found.blocks.address[order] + found.blocks.size_bytes[order]
        assert (found.blocks.address[order][1:] >= ends[:-1]).all()


@pytest.mark.parametrize("policy", [CACHING, EXPANDABLE])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_every_refusal_of_every_miss_has_a_rule_and_holes_add_up(policy, seed):
    allocator = CachingAllocator(with_limit(policy, GIB // 8), stream_count=2, class_of_tag=(0, 0, 0, 1))
    log = random_log(seed, 250)
    found = mapped(allocator, log)
    run = CachingAllocator(with_limit(policy, GIB // 8), stream_count=2, class_of_tag=(0, 0, 0, 1)).run(log)
    for miss in range(len(found.misses)):
        report = miss_report(found, miss)
        before = report.event - 1
        reserved = int(run.reserved_bytes[before]) if before >= 0 else 0
        allocated = int(run.allocated_bytes[before]) if before >= 0 else 0
        assert report.free_bytes == reserved - allocated
        sizes = [hole.size_bytes for hole in report.holes]
        assert sizes == sorted(sizes, reverse=True)
        assert report.largest_usable_bytes < report.size_bytes or report.size_bytes == 0


def test_a_block_in_the_middle_pins_its_segment_and_splits_the_room():
    found = of_text("a = 9M\nb = 1.5M\nc = 9M\nfree a\nfree c\nd = 16M", limit_bytes=20 * MIB)
    assert found.misses.action.tolist() == [DriverAction.SEGMENT_ALLOCATE, DriverAction.OUT_OF_MEMORY]
    report = miss_report(found, 1)
    assert [hole.refusal for hole in report.holes] == [Refusal.TOO_SMALL, Refusal.TOO_SMALL]
    assert report.holes[0].pin_count == 1
    assert found.blocks.size_bytes[report.holes[0].pins[0].block] == pytest.approx(1.5 * MIB, rel=0.01)
    assert report.free_bytes > 16 * MIB > report.largest_bytes


def test_rules_beside_size_are_named():
    pools = of_text("a = 3M\nfree a\nb = 0.5M")
    assert miss_report(pools, 1).holes[0].refusal is Refusal.OTHER_POOL
    streams = of_text("a = 30M\nfree a\nb = 30M @1", stream_count=2)
    assert miss_report(streams, 1).holes[0].refusal is Refusal.OTHER_STREAM
    classes = of_text("a = 30M\nfree a\nb = 30M #1", class_of_tag=(0, 1))
    assert miss_report(classes, 1).holes[0].refusal is Refusal.OTHER_CLASS


def test_a_segment_ends_when_it_is_given_back():
    found = of_text(SMALL_ON_LARGE + "empty")
    assert found.segments.last_event.tolist() == [4, 4]
    assert bytes_behind(found, 4) == 0


def test_ids_used_again_are_blocks_of_their_own():
    log = RequestLog(*np.array([[0, 1, 0, 1], [7, 7, 7, 7], [512, 0, 512, 0], [0] * 4, [0] * 4], dtype=np.int64))
    found = mapped(CachingAllocator(CACHING), log)
    assert found.blocks.first_event.tolist() == [0, 2]
    assert found.blocks.last_event.tolist() == [1, 3]


def test_several_calls_are_one_log():
    allocator = CachingAllocator(CACHING)
    first, second = requests("a = 3M\nb = 3M"), RequestLog(*np.array([[1], [0], [0], [0], [0]], dtype=np.int64))
    found = mapped(allocator, first, second)
    assert found.event_count == 3
    assert found.blocks.last_event.tolist() == [2, 3]
    assert (allocator.layout().state == FREE).sum() == 2
