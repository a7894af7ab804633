from dataclasses import replace

import numpy as np
import pytest

from engine.core.errors import MissingDataError
from engine.core.units import MIB
from engine.formats.opening import open_job
from engine.formats.readers import built_in_readers
from engine.replay.capture_policy import capture_policy
from engine.replay.capture_requests import capture_requests
from engine.replay.memory_replay import replay_memory
from engine.runtime.allocators.interface import RequestKind
from engine.trace.tables import AllocationTable, MemoryCurve, MemoryLog
from engine.trace.trace import Source, TraceMetadata
from tests.support.trace_text import trace_from_text


def memory_trace(blocks, totals=(), environment=(), source="ascend-text"):
    """Returns a trace of blocks (size MiB, allocated, freed, released) and curve points (time, allocated MiB)."""
    rows = np.array(blocks, dtype=np.int64).reshape(-1, 4)
    absent = np.full(len(rows), -1, dtype=np.int64)
    table = AllocationTable(
        address=absent,
        size_bytes=rows[:, 0] * MIB,
        requested_bytes=absent,
        allocated_at_ns=rows[:, 1],
        freed_at_ns=rows[:, 2],
        released_at_ns=rows[:, 3],
        operator=absent.astype(np.int32),
        event=absent.astype(np.int32),
        stream=absent + 1,
        device=(absent + 1).astype(np.int32),
    )
    points = np.array(totals, dtype=np.int64).reshape(-1, 2)
    curve = MemoryCurve("PTA", 0, points[:, 0], points[:, 1] * MIB, points[:, 1] * MIB, points[:, 1] * MIB)
    return replace(
        trace_from_text("host 1 | A |"),
        source=Source("made", source),
        metadata=TraceMetadata(environment=dict(environment)),
        memory=MemoryLog(table, (curve,) if len(points) else ()),
    )


def test_a_free_the_table_does_not_list_is_of_a_block_older_than_the_capture():
    trace = memory_trace([(8, 10, 30, 30)], [(10, 108), (20, 88), (30, 80)])
    log = capture_requests(trace, 32)
    assert log.seed_bytes == 100 * MIB
    assert sorted(log.seed.size_bytes.tolist()) == [20 * MIB - 32, 80 * MIB - 32]
    assert log.requests.kind.tolist() == [RequestKind.ALLOCATE, RequestKind.FREE, RequestKind.FREE]
    assert {item.code for item in log.diagnostics} == {"free-of-unlisted-block", "seed-layout-unknown"}


def test_a_rise_the_table_does_not_list_is_an_allocation_and_meets_its_free():
    trace = memory_trace([(8, 10, 40, 40)], [(10, 8), (20, 24), (30, 8), (40, 0)])
    log = capture_requests(trace, 0)
    assert log.seed_bytes == 0
    assert log.requests.size_bytes.tolist() == [8 * MIB, 16 * MIB, 0, 0]
    assert [item.code for item in log.diagnostics] == ["unlisted-allocation"]


def test_a_block_let_go_before_it_may_be_used_again_is_dropped_first():
    log = capture_requests(memory_trace([(8, 10, 20, 50), (4, 15, 31, 30)]), 0)
    assert log.requests.kind.tolist() == [
        RequestKind.ALLOCATE, RequestKind.ALLOCATE, RequestKind.FREE_REQUESTED, RequestKind.FREE, RequestKind.FREE,
    ]  # fmt: skip
    assert log.requests.block.tolist() == [0, 1, 0, 1, 0]


def test_in_one_ns_old_blocks_are_freed_before_new_ones_come_and_go():
    log = capture_requests(memory_trace([(8, 10, 20, 20), (4, 20, 20, 20)]), 0)
    assert list(zip(log.requests.kind.tolist(), log.requests.block.tolist(), strict=True)) == [
        (RequestKind.ALLOCATE, 0), (RequestKind.FREE, 0), (RequestKind.ALLOCATE, 1), (RequestKind.FREE, 1),
    ]  # fmt: skip


def test_a_capture_without_blocks_cannot_be_replayed():
    with pytest.raises(MissingDataError, match="profile_memory"):
        replay_memory(memory_trace([]))


@pytest.mark.parametrize(
    ("environment", "source", "policy", "pad_bytes"),
    [
        ({}, "ascend-text", "caching", 32),
        ({"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}, "ascend-text", "expandable", 32),
        ({}, "kineto", "caching-cuda", 0),
        ({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, "kineto", "expandable", 0),
    ],
)
def test_the_policy_is_the_one_the_environment_names(environment, source, policy, pad_bytes):
    found = capture_policy(memory_trace([], environment=environment, source=source))
    assert (found.id, found.settings.pad_bytes) == (policy, pad_bytes)


def test_options_that_decide_addresses_are_taken_over():
    text = "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4]"
    settings = capture_policy(memory_trace([], environment={"PYTORCH_NPU_ALLOC_CONF": text})).settings
    assert settings.max_split_size_bytes == 128 * MIB
    assert settings.roundup_power2_divisions[512] == 2
    assert settings.roundup_power2_divisions[1024] == 4
    assert 256 not in settings.roundup_power2_divisions


@pytest.mark.parametrize(("rank", "classic_low", "classic_high"), [(0, 1.12, 1.14), (2, 1.22, 1.24)])
def test_qwen3_is_reproduced_and_the_classic_policy_needs_much_more(captures, rank, classic_low, classic_high):
    path = captures / "ascend" / "910b-qwen3-0.6b-pp2dp2" / f"rank_{rank}_ascend_pt"
    (entry,) = open_job([path], built_in_readers()).ranks
    found = replay_memory(entry.trace)
    assert found.outcome.policy.id == "expandable"
    assert abs(found.reserved_error_ratio) <= 0.005
    assert found.outcome.peak_allocated_bytes == found.recorded_peak_allocated_bytes
    classic = next(item for item in found.policies if item.policy.id == "caching")
    assert classic_low <= classic.peak_reserved_bytes / found.recorded_peak_reserved_bytes <= classic_high
    assert classic.stranded_bytes > found.outcome.stranded_bytes


@pytest.mark.parametrize("level", [0, 1, 2])
def test_cnn_captures_are_within_five_percent(captures, level):
    path = captures / "ascend" / "910b-cnn-ddp2-text" / f"level{level}"
    for entry in open_job([path], built_in_readers()).ranks:
        found = replay_memory(entry.trace)
        assert found.outcome.policy.id == "caching"
        assert abs(found.reserved_error_ratio) <= 0.05
        low, high = found.reserved_range_bytes
        assert low <= found.outcome.peak_reserved_bytes <= high
