import csv
from dataclasses import replace

import pytest

from engine.core.errors import MissingDataError
from engine.formats.snapshots.allocator_snapshot import read_snapshot
from engine.replay.snapshot_replay import replay_snapshot
from engine.report.replay import snapshot_document
from engine.runtime.allocators.catalogue import ALLOCATOR_POLICIES

EXACT = {
    "snapshot_1768383987920985470.pkl": ("caching", 3216, 52, 0),
    "snapshot_with_empty_cache.pkl": ("caching", 2899, 79, 3),
    "snapshot_expandable.pkl": ("expandable", 2899, 45, 0),
    "snapshot_with_empty_cache_expandable.pkl": ("expandable", 2899, 75, 3),
    "medium_1024_training_memory_snapshot.pickle": ("caching-cuda", 7591, 0, 0),
    "medium_128_training_memory_snapshot.pickle": ("caching-cuda", 6526, 0, 0),
    "medium_512_inference_memory_snapshot.pickle": ("caching-cuda", 1666, 0, 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_every_recorded_address_driver_call_and_release_is_reproduced(captures, name):
    policy, addresses, driver, releases = EXACT[name]
    found = replay_snapshot(read_snapshot(captures / "snapshots" / name))
    assert found.policy.id == policy
    assert (found.addresses_matched, found.addresses_total) == (addresses, addresses)
    assert (found.driver_events_matched, found.driver_events_total, found.driver_events_replayed) == (driver,) * 3
    assert (found.releases_matched, found.releases_total) == (releases, releases)
    assert found.replayed_peak_reserved_bytes == found.recorded_peak_reserved_bytes
    assert found.divergence is None
    assert found.diagnostics == ()


def test_a_log_whose_start_is_ambiguous_is_reproduced_for_the_most_part(captures):
    found = replay_snapshot(read_snapshot(captures / "snapshots" / "medium_512_training_memory_snapshot.pickle"))
    assert found.addresses_total == 7591
    assert found.addresses_matched >= 0.88 * 7591
    assert (found.driver_events_matched, found.driver_events_total) == (1, 1)
    assert found.divergence.recorded_address != found.divergence.replayed_address


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("snapshot_1768383987920985470.pkl", {"pad_bytes": 0}),
        ("snapshot_expandable.pkl", {"base_alignment_bytes": 1}),
        ("medium_128_training_memory_snapshot.pickle", {"pad_bytes": 32}),
    ],
)
def test_rules_of_one_framework_do_not_reproduce_the_other(captures, name, change):
    snapshot = read_snapshot(captures / "snapshots" / name)
    policy = replay_snapshot(snapshot).policy
    wrong = replace(policy, settings=replace(policy.settings, **change))
    found = replay_snapshot(snapshot, wrong)
    assert found.addresses_matched < found.addresses_total
    assert found.divergence.event < 200


def test_statistics_are_those_of_the_reference(captures, expected):
    with (expected / "cuda-snapshots.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    for row in rows:
        path = captures.parent / row.pop("file")
        document = snapshot_document(path, replay_snapshot(read_snapshot(path)))["snapshot"]
        for column, value in row.items():
            found = document[column]
            if value == "":
                assert found is None
            elif column in ("replay_errors", "monotonic"):
                assert str(found) == value
            else:
                assert found == pytest.approx(float(value), abs=0), column


@pytest.mark.parametrize("policy", ALLOCATOR_POLICIES, ids=lambda policy: policy.id)
def test_any_policy_can_be_tried_on_any_snapshot(captures, policy):
    found = replay_snapshot(read_snapshot(captures / "snapshots" / "snapshot_with_empty_cache.pkl"), policy)
    assert found.policy is policy
    assert found.replayed_peak_reserved_bytes >= found.replayed_peak_allocated_bytes > 0


def test_a_snapshot_without_a_log_cannot_be_replayed(captures):
    snapshot = replace(read_snapshot(captures / "snapshots" / "snapshot_expandable.pkl"), logs={})
    with pytest.raises(MissingDataError, match="record_memory_history"):
        replay_snapshot(snapshot)
