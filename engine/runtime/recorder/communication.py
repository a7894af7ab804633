"""Collectives of one rank: group and plane lanes, the collective table and what moved over which link."""

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.graph.collective_kinds import CollectiveKind, collective_kind
from engine.runtime.recorder.rank_tasks import collective_numbers
from engine.runtime.recorder.timeline import COMMUNICATION, Recording
from engine.trace.strings import ABSENT
from engine.trace.tables import CollectiveTable, LinkTable
from engine.trace.tracks import TrackKind

_WAIT, _TRANSFER = "Notify_Wait", "Memcpy"
_ELEMENT_BYTES = 2
_PARTS = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
"""HCCL counts what one rank puts in or gets out of these, not the whole tensor."""
_LARGE_PACKET_BYTES = {"RDMA": 500_000}
_LARGE_PACKET_OTHERWISE_BYTES = 32_000_000
"""The profiler's thresholds of a large packet."""


def add_communication(recording: Recording, connection: Int64Array) -> None:
    """Adds the lanes of every group the rank talks in, ``builder.collectives`` and, from level 1, ``builder.links``."""
    header = recording.add_layer(COMMUNICATION)
    graph, tasks = recording.graph, recording.tasks.collectives
    groups = np.unique(graph.group[tasks]).tolist()
    track = np.empty(len(tasks), dtype=np.int32)
    planes: list[tuple[int, Int32Array]] = []
    for place, group in enumerate(groups):
        title = f"Group {place} Communication"
        named = recording.groups[graph.strings.text(group)].id if recording.settings.level > 0 else title
        kind = TrackKind.COMMUNICATION_GROUP
        track[graph.group[tasks] == group] = recording.add_lane(header, kind, title, 2 * place, group=named)
        if recording.settings.level > 0:
            plane = recording.add_lane(header, TrackKind.COMMUNICATION_PLANE, "Plane 0", 2 * place + 1)
            planes.append((plane, tasks[graph.group[tasks] == group]))
    names = _names(recording, tasks)
    first = recording.builder.add_events(
        start_ns=recording.start_ns(tasks),
        duration_ns=recording.duration_ns(tasks),
        track=track,
        name=names,
        correlation=connection[tasks] if recording.settings.level > 0 else ABSENT,
    )
    recording.event_of_task[tasks] = first + np.arange(len(tasks))
    for plane, members in planes:
        _add_plane(recording, plane, members)
    _add_tables(recording, tasks, names)


def _names(recording: Recording, tasks: Int32Array) -> Int32Array:
    """Returns the names HCCL gives its calls: operation, group, which call of the group, and 1; as interned ids.

    Names that are numbered already stay as they are.
    """
    graph = recording.graph
    numbers = collective_numbers(graph, tasks)
    titles = []
    # A Python loop: one turn per collective, not per event.
    for name, group, number in zip(
        graph.strings.texts(graph.name[tasks]),
        graph.strings.texts(graph.group[tasks]),
        numbers.tolist(),
        strict=True,
    ):
        digits = recording.groups[group].digits
        titles.append(name if "__" in name else f"{name.rstrip('_')}__{digits}_{number}_1")
    return recording.builder.strings.intern_all(titles)


def _add_plane(recording: Recording, plane: int, tasks: Int32Array) -> None:
    """Adds the wait for the last member and the transfer of each collective, in order."""
    schedule, epoch_ns = recording.schedule, recording.settings.epoch_ns
    arrival, transfer, end = schedule.start_ns[tasks], schedule.transfer_ns[tasks], schedule.end_ns[tasks]
    waited = transfer > arrival
    start_ns = np.concatenate((arrival[waited], transfer))
    order = np.argsort(start_ns, kind="stable")
    wait, move = (recording.builder.strings.intern(word) for word in (_WAIT, _TRANSFER))
    recording.builder.add_events(
        start_ns=start_ns[order] + epoch_ns,
        duration_ns=np.concatenate(((transfer - arrival)[waited], end - transfer))[order],
        track=plane,
        name=np.concatenate((np.full(int(waited.sum()), wait), np.full(len(tasks), move)))[order].astype(np.int32),
    )


def _kinds(recording: Recording, tasks: Int32Array) -> list[CollectiveKind]:
    names = recording.graph.strings.texts(recording.graph.name[tasks])
    known = {name: collective_kind(name) for name in set(names)}
    return [known[name] for name in names]


def _payload_bytes(recording: Recording, tasks: Int32Array) -> Int64Array:
    """Returns what HCCL would call the payload of each collective: whole elements of two bytes."""
    graph = recording.graph
    sizes = {group.id: len(group.ranks) for group in graph.groups}
    groups = graph.strings.texts(graph.group[tasks])
    parts = [
        sizes.get(group, 1) if kind in _PARTS else 1
        for kind, group in zip(_kinds(recording, tasks), groups, strict=True)
    ]
    share = graph.bytes[tasks] / np.maximum(np.array(parts, dtype=np.float64), 1.0)
    payload: Int64Array = (share // _ELEMENT_BYTES).astype(np.int64) * _ELEMENT_BYTES
    return payload


def _add_tables(recording: Recording, tasks: Int32Array, names: Int32Array) -> None:
    schedule, builder, graph = recording.schedule, recording.builder, recording.graph
    order = np.argsort(schedule.start_ns[tasks], kind="stable")
    tasks, names = tasks[order], names[order]
    transit = schedule.end_ns[tasks] - schedule.transfer_ns[tasks]
    wait = schedule.transfer_ns[tasks] - schedule.start_ns[tasks]
    described = recording.settings.level > 0
    absent = np.full(len(tasks), ABSENT, dtype=np.int64)
    payload = _payload_bytes(recording, tasks)
    lanes = {index: track.group for index, track in enumerate(builder.tracks)}
    columns = builder.columns()
    groups = [lanes[track] for track in columns["track"][recording.event_of_task[tasks]].tolist()]
    builder.collectives = CollectiveTable(
        event=recording.event_of_task[tasks].astype(np.int32),
        name=names,
        group=builder.strings.intern_all(groups),
        start_ns=recording.start_ns(tasks),
        elapsed_ns=recording.duration_ns(tasks),
        bytes=payload if described else absent,
        vendor_transit_ns=transit if described else absent,
        vendor_wait_ns=wait if described else absent,
        vendor_synchronization_ns=wait if described else absent,
        vendor_idle_ns=np.zeros(len(tasks), dtype=np.int64) if described else absent,
        step=graph.step[tasks],
    )
    if not described:
        return
    called = graph.strings.texts(graph.group[tasks])
    words = [recording.settings.link_of_group.get(group, "HCCS") for group in called]
    limits = [_LARGE_PACKET_BYTES.get(word, _LARGE_PACKET_OTHERWISE_BYTES) for word in words]
    moved = np.flatnonzero((payload > 0) | (transit > 0))
    builder.links = LinkTable(
        collective=moved.astype(np.int32),
        link=builder.strings.intern_all([words[row] for row in moved.tolist()]),
        bytes=payload[moved],
        transit_ns=transit[moved],
        large_packet_ratio=(payload > np.array(limits))[moved].astype(np.float64),
    )
