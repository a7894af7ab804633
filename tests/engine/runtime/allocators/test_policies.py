"""What every policy must hold, and what each of the newer ones is for."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import EngineError
from engine.core.units import MIB
from engine.graph.task_graph import BufferTag
from engine.runtime.allocators.amc import amc_allocator, default_amc_rules, parse_amc_rules, read_amc_rules
from engine.runtime.allocators.block_store import ALLOCATED
from engine.runtime.allocators.caching import CACHING, CACHING_CUDA
from engine.runtime.allocators.caching_rules import CachingSettings
from engine.runtime.allocators.catalogue import ALLOCATOR_POLICIES, allocator_policy, new_allocator
from engine.runtime.allocators.interface import DriverAction, RequestKind, RequestLog
from engine.runtime.allocators.planned import PlannedAllocator
from engine.runtime.allocators.stitching import StitchingAllocator, StitchingSettings, stitching_under
from tests.support.request_text import requests

IDS = [policy.id for policy in ALLOCATOR_POLICIES]


def actions(run):
    return [DriverAction(action).name for action in run.driver.action.tolist()]


@st.composite
def programs(draw):
    rows, live, dropped = [], [], []
    for number in range(draw(st.integers(1, 50))):
        choice = draw(st.integers(0, 9))
        if choice < 5 or not (live or dropped):
            size = draw(st.sampled_from([100, 4096, 1 << 20, 3 << 20, 9 << 20, 25 << 20, 60 << 20]))
            rows.append((RequestKind.ALLOCATE, number, size, draw(st.integers(0, 1)), draw(st.integers(0, 3))))
            live.append(number)
        elif choice < 7 and live:
            rows.append((RequestKind.FREE, live.pop(draw(st.integers(0, len(live) - 1))), 0, 0, 0))
        elif choice == 7 and live:
            dropped.append(live.pop(0))
            rows.append((RequestKind.FREE_REQUESTED, dropped[-1], 0, 0, 0))
        elif choice == 8 and dropped:
            rows.append((RequestKind.FREE, dropped.pop(0), 0, 0, 0))
        else:
            rows.append((draw(st.sampled_from([RequestKind.EMPTY_CACHE, RequestKind.SYNCHRONIZE])), -1, 0, 0, 0))
    return RequestLog(*np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy())


def live_ranges_overlap(log, run):
    """Tells whether two blocks in use at once share an address; sizes are the requested ones."""
    live, dropped = {}, set()
    retries = set(run.driver.request[run.driver.action == DriverAction.RETRY].tolist())
    for row in range(run.served):
        block = int(log.block[row])
        if row in retries:  # the device was waited for: what was only dropped is free now
            live = {number: span for number, span in live.items() if number not in dropped}
        if log.kind[row] == RequestKind.ALLOCATE and run.address[row] >= 0:
            start, end = int(run.address[row]), int(run.address[row] + log.size_bytes[row])
            if any(start < other_end and other < end for other, other_end in live.values()):
                return True
            live[block] = (start, end)
        elif log.kind[row] == RequestKind.FREE_REQUESTED:
            dropped.add(block)
        elif log.kind[row] == RequestKind.FREE:
            live.pop(block, None)
    return False


@pytest.mark.parametrize("policy_id", IDS)
@settings(max_examples=30)
@given(log=programs(), limit=st.sampled_from([None, 120 * MIB]))
def test_blocks_never_overlap_and_reserved_covers_them(policy_id, log, limit):
    policy = allocator_policy(policy_id).under(limit)
    allocator = new_allocator(policy, 2)
    run = allocator.run(log)
    assert run.served == len(log) == len(run.address)
    assert not live_ranges_overlap(log, run)
    assert np.all(run.reserved_bytes >= run.allocated_bytes)
    assert np.all(run.allocated_bytes >= 0)
    if limit is None:
        assert np.all(run.address[log.kind == RequestKind.ALLOCATE] >= 0)
    else:
        assert run.reserved_bytes.max() <= limit
    assert np.array_equal(run.address, new_allocator(policy, 2).run(log).address)
    assert allocator.state.reserved_bytes == run.reserved_bytes[-1]


@pytest.mark.parametrize("policy_id", IDS)
def test_serving_stops_at_the_failed_request(policy_id):
    allocator = new_allocator(allocator_policy(policy_id).under(100 * MIB), 1)
    run = allocator.run(requests("a = 60M\nb = 70M\nfree a\nfree b"), stop_when_out=True)
    assert run.address[-1] == -1
    assert run.served < 4
    assert "OUT_OF_MEMORY" in actions(run)


def test_a_plan_overlays_what_is_not_alive_at_once():
    allocator = PlannedAllocator(CACHING_CUDA)
    program = "a = 30M\nb = 10M\nfree a\nc = 30M\nfree b\nfree c\nkept = 5M"
    run = allocator.run(requests(program))
    assert run.reserved_bytes[0] == 40 * MIB
    assert run.address[3] == run.address[0]
    assert allocator.state.allocated_bytes == 5 * MIB
    again = allocator.run(requests(program))
    assert "SEGMENT_FREE" not in actions(again)
    assert again.address[0] == run.address[0]


def test_a_range_grows_for_a_later_log():
    allocator = PlannedAllocator(CACHING_CUDA)
    allocator.run(requests("a = 30M\nfree a"))
    run = allocator.run(requests("a = 50M\nfree a"))
    assert actions(run) == ["SEGMENT_FREE", "SEGMENT_ALLOCATE"]
    assert run.reserved_bytes.tolist() == [50 * MIB] * 2


def test_a_plan_that_does_not_fit_is_tried_again_without_the_cache_beside_it():
    allocator = PlannedAllocator(replace(CACHING_CUDA, limit_bytes=60 * MIB))
    allocator.run(requests("kept = 30M"))
    kept_id = int(requests("kept = 30M").block[0])
    free = RequestLog(*(np.array([value]) for value in (int(RequestKind.FREE), kept_id, 0, 0, 0)))
    allocator.run(free)
    assert allocator.state.reserved_bytes == 30 * MIB
    run = allocator.run(requests("b = 50M\nfree b"))
    assert actions(run)[-2:] == ["RETRY", "SEGMENT_ALLOCATE"]
    assert run.address[0] > 0
    assert allocator.state.reserved_bytes == 50 * MIB
    too_much = allocator.run(requests("b = 70M\nfree b"))
    assert actions(too_much)[-1] == "OUT_OF_MEMORY"


def stitching(**changes):
    return StitchingSettings(small=CACHING_CUDA, **({"stitch_from_bytes": 8 * MIB} | changes))


FRAGMENTED = "a = 20M\nb = 20M\nc = 20M\nfree a\nfree c\nx = 36M"


def test_free_pages_of_several_holes_are_stitched():
    allocator = StitchingAllocator(stitching())
    run = allocator.run(requests(FRAGMENTED))
    assert actions(run) == ["SEGMENT_ALLOCATE"] * 3 + ["STITCH"]
    assert run.reserved_bytes[-1] == 60 * MIB
    assert run.address[-1] not in run.address[:3]


def test_a_stitched_range_is_used_again_without_stitching():
    allocator = StitchingAllocator(stitching())
    first = allocator.run(requests(FRAGMENTED + "\nfree x"))
    again = allocator.run(requests("y = 36M\nfree y"))
    assert actions(again) == []
    assert again.address[0] == first.address[5]


def test_only_what_free_pages_lack_is_asked_of_the_driver():
    allocator = StitchingAllocator(stitching())
    run = allocator.run(requests("a = 20M\nb = 20M\nfree a\nx = 30M"))
    assert run.driver.size_bytes.tolist() == [20 * MIB, 20 * MIB, 10 * MIB, 30 * MIB]
    assert actions(run)[-1] == "STITCH"


def test_below_its_threshold_a_request_is_stitched_only_when_the_driver_refuses():
    calm = StitchingAllocator(stitching(stitch_from_bytes=512 * MIB)).run(requests(FRAGMENTED))
    assert "STITCH" not in actions(calm)
    limited = stitching_under(stitching(stitch_from_bytes=512 * MIB), 70 * MIB)
    run = StitchingAllocator(limited).run(requests(FRAGMENTED))
    assert actions(run)[-1] == "STITCH"
    assert run.address[-1] >= 0


def pinned_program(steps):
    """Steps of varying length, each leaving behind some blocks born among its activations."""
    rng = np.random.default_rng(0)
    lines = []
    for step in range(steps):
        scale = rng.uniform(0.5, 1.5)
        names = [f"s{step}_{part}" for part in range(12)]
        for part, name in enumerate(names):
            lines.append(f"{name} = {(11 + 3 * part) * scale:.3f}M #1")
            if part == rng.integers(12):
                lines.append(f"p{step}_{part} = 1.5M #3")
        lines += [*(f"free {name}" for name in reversed(names)), "sync"]
    return "\n".join(lines)


def test_automatic_management_keeps_long_lived_blocks_out_of_the_way():
    log = requests(pinned_program(200))
    peaks = [
        new_allocator(allocator_policy(name), 1).run(log).reserved_bytes.max()
        for name in ("amc", "expandable", "caching")
    ]
    assert peaks[0] < peaks[1] < peaks[2]


def test_free_pages_are_released_at_synchronisations_when_too_much_is_stranded():
    rules = parse_amc_rules('{"defragmentation": {"release_stranded_mib": 1}}', "test")
    allocator = amc_allocator(rules)
    run = allocator.run(requests("a = 30M\nb = 3M\nc = 60M\nfree a\nfree c\nsync"))
    assert "UNMAP" in actions(run)
    never = parse_amc_rules("{}", "test")
    assert "UNMAP" not in actions(amc_allocator(never).run(requests("a = 60M\nb = 3M\nfree a\nsync")))


REUSE = '{"classes": {"step": 1, "temporary": 1}, "reuse": {"plan": ["step", "temporary"]}}'


def test_a_reuse_rule_overlays_what_steps_free_and_leaves_the_rest_to_its_class():
    text = "a = 30M\nb = 10M\nfree a\nc = 30M\nfree b\nfree c\nkept = 5M"
    log = requests(text)
    tag = np.where(log.block == log.block[-1], int(BufferTag.LONG_LIVED), int(BufferTag.STEP))
    allocator = amc_allocator(parse_amc_rules(REUSE, "test"))
    run = allocator.run(replace(log, tag=tag))
    assert run.address[3] == run.address[0]
    # Two paddings more than 40 MiB, in whole segments.
    assert run.reserved_bytes[0] == 42 * MIB
    assert allocator.state.allocated_bytes == pytest.approx(5 * MIB, abs=1024)
    assert abs(int(run.address[-1]) - int(run.address[0])) > 40 * MIB


def test_tags_that_are_not_planned_are_served_as_without_the_rule():
    log = requests("a = 30M\nb = 10M\nfree a\nc = 20M\nfree b\nfree c")
    only = '{"classes": {"step": 1, "temporary": 1}, "reuse": {"plan": ["temporary"]}}'
    ruled = amc_allocator(parse_amc_rules(only, "test")).run(log)
    plain = amc_allocator(parse_amc_rules('{"classes": {"step": 1, "temporary": 1}}', "test")).run(log)
    assert log.tag.tolist() == [0] * 6
    assert ruled.address.tolist() == plain.address.tolist()


@settings(max_examples=60, deadline=None)
@given(programs(), st.booleans(), st.sampled_from([None, 100 * MIB]))
def test_planned_and_cached_blocks_never_share_an_address(log, searches, limit):
    rules = replace(parse_amc_rules(REUSE, "test"), searches_plan=searches)
    allocator = amc_allocator(rules, stream_count=2, limit_bytes=limit)
    for _ in range(2):
        run = allocator.run(log)
        assert not live_ranges_overlap(log, run)
        assert limit is None or (run.reserved_bytes <= limit).all()


def test_the_same_lifetimes_have_the_same_plan_and_need_no_driver():
    log = requests("a = 30M\nb = 10M\nfree a\nc = 30M\nfree b\nfree c")
    log = replace(log, tag=np.full(len(log), int(BufferTag.STEP)))
    allocator = amc_allocator(parse_amc_rules(REUSE, "test"))
    first, second = allocator.run(log), allocator.run(log)
    assert first.address.tolist() == second.address.tolist()
    assert actions(second) == []


COMPACTING = '{"simulator_only_compaction": true, "defragmentation": {"release_stranded_mib": 0}}'


def test_compaction_closes_the_holes_between_live_blocks_and_gives_back_what_that_frees():
    program = requests("a = 30M\nb = 3M\nc = 30M\nd = 3M\ne = 30M\nf = 3M\nfree a\nfree c\nfree e\nsync")
    compacting, real = amc_allocator(parse_amc_rules(COMPACTING, "test")), amc_allocator(default_amc_rules())
    run = compacting.run(program)
    assert actions(run).count("COMPACT") == 1
    assert compacting.state.reserved_bytes == 20 * MIB
    real.run(program)
    assert real.state.reserved_bytes > compacting.state.reserved_bytes


def test_no_policy_compacts_unless_its_rules_say_so():
    assert not default_amc_rules().simulator_only_compaction
    for policy in ALLOCATOR_POLICIES:
        run = new_allocator(policy, 1).run(requests("a = 30M\nb = 3M\nc = 60M\nfree a\nsync"))
        assert "COMPACT" not in actions(run)


@settings(max_examples=60, deadline=None)
@given(programs(), st.booleans())
def test_compaction_keeps_every_live_block_and_tiles_every_segment(log, expandable):
    rules = replace(parse_amc_rules(COMPACTING, "test"), expandable_segments=expandable)
    allocator = amc_allocator(rules, stream_count=2)
    run = allocator.run(log)
    sync = RequestLog(*(np.array([value]) for value in (int(RequestKind.SYNCHRONIZE), -1, 0, 0, 0)))
    before = allocator.state
    allocator.run(sync)
    after, layout = allocator.state, allocator.layout()
    assert (after.allocated_bytes, after.active_bytes) == (before.allocated_bytes, before.active_bytes)
    assert after.reserved_bytes <= before.reserved_bytes
    ends = layout.address + layout.size_bytes
    inside = ~layout.starts_segment[1:]
    assert (layout.address[1:][inside] == ends[:-1][inside]).all()
    assert (layout.address[1:] >= ends[:-1]).all()
    live = layout.state == ALLOCATED
    assert layout.size_bytes[live].sum() == after.allocated_bytes
    again = allocator.run(log)
    assert again.served == run.served


def test_the_built_in_rules_separate_lifetimes():
    rules = default_amc_rules()
    assert len(set(rules.class_of_tag)) == 3
    assert rules.expandable_segments


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "must be a JSON object"),
        ('{"simulator_only_compaction": true}', "true only with release_stranded_mib"),
        ('{"simulator_only_compaction": 1}', "must be true or false"),
        ('{"clases": {}}', "did you mean 'classes'"),
        ('{"classes": {"step": -1}}', r"classes\.step must be a whole number of at least 0"),
        ('{"reuse": {"plan": ["persistent"]}}', "must be a list of step and temporary"),
        ('{"reuse": {"plan": "step"}}', "must be a list of step and temporary"),
        ('{"reuse": {"search": 1}}', "true or false"),
        ('{"reuse": {"order": 1}}', "unknown key 'order'"),
        ('{"defragmentation": {"interval_synchronizations": 0}}', "at least 1"),
    ],
)
def test_wrong_rules_name_file_and_key(tmp_path, text, words):
    path = tmp_path / "amc.json"
    path.write_text(text)
    with pytest.raises(EngineError, match=words) as caught:
        read_amc_rules(path)
    assert str(path) in str(caught.value)


def test_rules_survive_writing_and_reading(tmp_path):
    path = tmp_path / "amc.json"
    path.write_text(json.dumps({"classes": {"long_lived": 1}, "expandable_segments": False}))
    rules = read_amc_rules(path)
    assert (rules.class_of_tag, rules.expandable_segments) == ((0, 0, 0, 1), False)
    assert isinstance(amc_allocator(rules).settings, CachingSettings)
    assert amc_allocator(rules).settings.expandable_segments == CACHING.expandable_segments
