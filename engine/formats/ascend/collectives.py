"""Collectives of an Ascend capture: events on group tracks joined with what communication.json says of them."""

import bisect
from dataclasses import dataclass, fields

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.core.units import NS_PER_MS
from engine.formats.ascend.communication import CommunicationRows
from engine.trace.builder import TraceBuilder
from engine.trace.diagnostics import Severity
from engine.trace.strings import ABSENT
from engine.trace.tables import CollectiveTable, LinkTable

MAX_START_DIFFERENCE_NS = NS_PER_MS
"""communication.json rounds starts to 0.25 µs and takes them from the first task; equal names further apart than this
are different calls."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveEvents:
    """Communication operators on the timeline. All columns shape (n,).

    Attributes:
        event: int64, provisional event id.
        name: int32 string id.
        group: int32 string id of the group, −1 where unknown.
        start_ns: int64, absolute.
        duration_ns: int64.
        payload_bytes: int64, elements × element size as the trace states them, −1 where it does not.
        step: int32, −1 where unknown.
    """

    event: Int64Array
    name: Int32Array
    group: Int32Array
    start_ns: Int64Array
    duration_ns: Int64Array
    payload_bytes: Int64Array
    step: Int32Array

    def __len__(self) -> int:
        return len(self.event)


def no_collective_events() -> CollectiveEvents:
    """Returns the events of a capture whose timeline has no communication."""
    wide, narrow = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    return CollectiveEvents(wide, narrow, narrow, wide, wide, wide, narrow)


def both(left: CollectiveEvents, right: CollectiveEvents) -> CollectiveEvents:
    """Returns the events of both."""
    pairs = {item.name: (getattr(left, item.name), getattr(right, item.name)) for item in fields(CollectiveEvents)}
    return CollectiveEvents(**{key: np.concatenate(pair) for key, pair in pairs.items()})


def groups_of_operators(rows: CommunicationRows | None) -> dict[int, int]:
    """Returns operator name → group (string ids) as communication.json pairs them."""
    return {} if rows is None else dict(zip(rows.name.tolist(), rows.group.tolist(), strict=True))


def join_collectives(builder: TraceBuilder, events: CollectiveEvents, rows: CommunicationRows | None) -> None:
    """Fills ``builder.collectives`` and ``builder.links``.

    Times come from the timeline where the operator is on it (the file's own are rounded); the payload is what the
    trace states, else what the operator moved (``CommunicationRows.moved_bytes``).
    """
    partner = _partners(events, rows)
    if rows is None:
        builder.collectives = _by_start(_from_events(events), None)[0]
        return
    alone = np.flatnonzero(np.bincount(partner[partner >= 0], minlength=len(rows)) == 0)
    builder.diagnostics.add(
        "collective-not-on-timeline",
        Severity.NOTICE,
        "collectives of communication.json have no event on the timeline",
        count=len(alone),
    )
    described = np.flatnonzero(partner >= 0)
    builder.diagnostics.add(
        "collective-not-described",
        Severity.NOTICE,
        "communication operators on the timeline are not in communication.json: no vendor split for them",
        count=len(events) - len(described),
    )
    table = {
        key: np.concatenate([column, _from_rows(rows)[key][alone]]) for key, column in _from_events(events).items()
    }
    for key, column in _from_rows(rows).items():
        if key.startswith("vendor_"):
            table[key][described] = column[partner[described]]
    _fill(table, "bytes", described, rows.moved_bytes[partner[described]])
    _fill(table, "group", described, rows.group[partner[described]])
    _fill(table, "step", described, rows.step[partner[described]])
    place_of_row = np.full(len(rows), ABSENT, dtype=np.int64)
    place_of_row[partner[described]] = described
    place_of_row[alone] = len(events) + np.arange(len(alone))
    builder.collectives, place = _by_start(table, place_of_row)
    builder.links = LinkTable(
        collective=place[rows.link_owner].astype(np.int32),
        link=rows.link,
        bytes=rows.link_bytes,
        transit_ns=rows.link_transit_ns,
        large_packet_ratio=rows.link_large_packet_ratio,
    )


def _fill(table: dict[str, AnyArray], key: str, where: Int64Array, values: AnyArray) -> None:
    column = table[key]
    column[where] = np.where(column[where] == ABSENT, values, column[where])


def _partners(events: CollectiveEvents, rows: CommunicationRows | None) -> Int64Array:
    """Returns for each event the row of the same name that starts nearest, int64, −1 where there is none."""
    partner = np.full(len(events), ABSENT, dtype=np.int64)
    if rows is None:
        return partner
    by_name: dict[int, list[tuple[int, int]]] = {}
    for index, (name, start_ns) in enumerate(zip(events.name.tolist(), events.start_ns.tolist(), strict=True)):
        by_name.setdefault(name, []).append((start_ns, index))
    for calls in by_name.values():
        calls.sort()
    # A Python loop: one turn per collective, not per event.
    for row, (name, start_ns) in enumerate(zip(rows.name.tolist(), rows.start_ns.tolist(), strict=True)):
        calls = by_name.get(name, [])
        place = bisect.bisect_left(calls, (start_ns, 0))
        near = [call for call in calls[max(place - 1, 0) : place + 2] if partner[call[1]] == ABSENT]
        if near:
            distance_ns, index = min((abs(moment_ns - start_ns), index) for moment_ns, index in near)
            if distance_ns <= MAX_START_DIFFERENCE_NS or start_ns == ABSENT:
                partner[index] = row
    return partner


def _from_events(events: CollectiveEvents) -> dict[str, AnyArray]:
    absent = np.full(len(events), ABSENT, dtype=np.int64)
    vendor = ("vendor_transit_ns", "vendor_wait_ns", "vendor_synchronization_ns", "vendor_idle_ns")
    return {
        "event": events.event.astype(np.int32),
        "name": events.name,
        "group": events.group.copy(),
        "start_ns": events.start_ns,
        "elapsed_ns": events.duration_ns,
        "bytes": events.payload_bytes.copy(),
        **{key: absent.copy() for key in vendor},
        "step": events.step.copy(),
    }


def _from_rows(rows: CommunicationRows) -> dict[str, AnyArray]:
    return {
        "event": np.full(len(rows), ABSENT, dtype=np.int32),
        "name": rows.name,
        "group": rows.group,
        "start_ns": rows.start_ns,
        "elapsed_ns": rows.elapsed_ns,
        "bytes": rows.moved_bytes,
        "vendor_transit_ns": rows.transit_ns,
        "vendor_wait_ns": rows.wait_ns,
        "vendor_synchronization_ns": rows.synchronization_ns,
        "vendor_idle_ns": rows.idle_ns,
        "step": rows.step,
    }


def _by_start(table: dict[str, AnyArray], place_of_row: Int64Array | None) -> tuple[CollectiveTable, Int64Array]:
    """Returns the table sorted by start, and ``place_of_row`` (file row → table row) after sorting."""
    order = np.argsort(table["start_ns"], kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    moved = place if place_of_row is None else place[place_of_row]
    return CollectiveTable(**{key: column[order] for key, column in table.items()}), moved
