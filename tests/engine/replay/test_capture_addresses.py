from dataclasses import replace

import numpy as np
import pytest

from engine.analyses.memory import main_curve
from engine.core.errors import MissingDataError
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.replay.capture_addresses import capture_addresses
from engine.runtime.addresses.address_map import Basis, columns_of
from engine.runtime.addresses.misses import miss_report
from engine.runtime.addresses.table import ADDRESS_TABLE, address_map_of, address_table
from engine.trace.trace import Origin
from tests.support.trace_text import trace_from_text


@pytest.fixture(scope="module")
def qwen3(captures):
    return open_job([captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"], built_in_readers()).rank_trace(0).trace


@pytest.fixture(scope="module")
def qwen3_map(qwen3):
    return capture_addresses(qwen3)


def test_a_capture_without_blocks_has_no_addresses():
    with pytest.raises(MissingDataError, match="allocated blocks"):
        capture_addresses(trace_from_text("gpu 7 | AA |"))


def test_qwen3_is_reconstructed_with_the_pages_its_policy_maps(qwen3, qwen3_map):
    assert qwen3_map.basis is Basis.RECONSTRUCTED
    assert qwen3_map.joins_segments
    segments = qwen3_map.segments
    highest = 0
    for event in range(0, qwen3_map.event_count, 97):
        live = (segments.first_event <= event) & (segments.last_event > event)
        highest = max(highest, int(segments.size_bytes[live].sum()))
    recorded = main_curve(qwen3).reserved_bytes.max()
    assert highest == pytest.approx(recorded, rel=0.01)


def test_blocks_of_qwen3_carry_the_operators_that_asked_for_them(qwen3, qwen3_map):
    labelled = qwen3_map.blocks.label >= 0
    assert labelled.mean() > 0.9
    names = set(qwen3_map.labels)
    assert any(name.startswith("aten::") for name in names)


def test_every_miss_of_qwen3_can_be_explained(qwen3_map):
    for miss in range(len(qwen3_map.misses)):
        report = miss_report(qwen3_map, miss)
        assert report.largest_usable_bytes < report.size_bytes


def test_a_map_comes_back_from_its_table_and_a_simulated_trace_carries_it(qwen3, qwen3_map):
    table = address_table(qwen3_map)
    read = address_map_of(table, Basis.SIMULATED, "policy")
    for own, other in ((qwen3_map.blocks, read.blocks), (qwen3_map.segments, read.segments)):
        for name, column in columns_of(own).items():
            if name != "label":
                np.testing.assert_array_equal(column, columns_of(other)[name])
    assert read.event_count == qwen3_map.event_count
    assert read.joins_segments
    carrier = replace(trace_from_text("gpu 7 | AA |"), origin=Origin.SIMULATED, tables={ADDRESS_TABLE: table})
    assert capture_addresses(carrier).basis is Basis.SIMULATED


def test_a_damaged_table_is_no_map(qwen3_map):
    table = address_table(qwen3_map)
    assert address_map_of(replace(table, numbers={"Kind": table.numbers["Kind"]}), Basis.SIMULATED, "") is None
    broken = dict(table.numbers) | {"Address": np.full(len(table), np.nan)}
    assert address_map_of(replace(table, numbers=broken), Basis.SIMULATED, "") is None
