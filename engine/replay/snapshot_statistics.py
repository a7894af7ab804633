"""What a snapshot says of memory by itself: totals at the end, and the history its log implies."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Int64Array
from engine.formats.snapshots.allocator_snapshot import AllocatorSnapshot, BlockState, SnapshotAction, SnapshotLog
from engine.replay.snapshot_start import StartState


@dataclass(frozen=True, slots=True)
class SnapshotStatistics:
    """Figures of one snapshot; log figures are of the device with most events.

    Attributes:
        segments: Of all devices.
        blocks: Of all devices.
        layout_errors: Blocks that do not tile their segment.
        reserved_end_bytes: Sum of segments.
        active_end_bytes: Sum of blocks that are not free.
        requested_end_bytes: Sum requested for them.
        inactive_end_bytes: Sum of free blocks.
        largest_inactive_bytes: The largest of them.
        scattered_free_ratio: 1 − largest ÷ all free bytes; 0 where nothing is free.
        internal_fragmentation_bytes: active − requested.
        device: Whose log the rest is of.
        events: Length of the log.
        action_counts: Action name → events.
        requested_start_bytes: Requested by blocks alive before the first event.
        reserved_start_bytes: Reserved before the first event.
        peak_requested_bytes: Most that was requested at once.
        peak_event_index: The event that ended its last stay there.
        peak_reserved_bytes: Most that was reserved.
        replay_errors: Events that contradict the segments: action name → events.
        time_span_us: Last − first time; None where no times are recorded.
        monotonic: Whether times never go back.
        streams: Streams in the log.
    """

    segments: int
    blocks: int
    layout_errors: int
    reserved_end_bytes: int
    active_end_bytes: int
    requested_end_bytes: int
    inactive_end_bytes: int
    largest_inactive_bytes: int
    scattered_free_ratio: float
    internal_fragmentation_bytes: int
    device: int
    events: int
    action_counts: dict[str, int]
    requested_start_bytes: int
    reserved_start_bytes: int
    peak_requested_bytes: int
    peak_event_index: int
    peak_reserved_bytes: int
    replay_errors: dict[str, int]
    time_span_us: int | None
    monotonic: bool
    streams: int


def snapshot_statistics(snapshot: AllocatorSnapshot, device: int, start: StartState) -> SnapshotStatistics:
    """Returns the figures; ``start`` is the state before the log of ``device``."""
    blocks = [block for segment in snapshot.segments for block in segment.blocks]
    active = [block for block in blocks if block.state is not BlockState.INACTIVE]
    free = [block.size_bytes for block in blocks if block.state is BlockState.INACTIVE]
    active_bytes = sum(block.size_bytes for block in active)
    requested_bytes = sum(block.requested_bytes for block in active)
    empty = np.empty(0, dtype=np.int64)
    log = snapshot.logs.get(device, SnapshotLog(empty, empty, empty, empty, empty))
    requested, reserved = _histories(log, start)
    times = log.time_us[log.time_us >= 0]
    actions, counts = np.unique(log.action, return_counts=True)
    return SnapshotStatistics(
        segments=len(snapshot.segments),
        blocks=len(blocks),
        layout_errors=snapshot.layout_errors,
        reserved_end_bytes=sum(segment.size_bytes for segment in snapshot.segments),
        active_end_bytes=active_bytes,
        requested_end_bytes=requested_bytes,
        inactive_end_bytes=sum(free),
        largest_inactive_bytes=max(free, default=0),
        scattered_free_ratio=1 - max(free) / sum(free) if free else 0.0,
        internal_fragmentation_bytes=active_bytes - requested_bytes,
        device=device,
        events=len(log),
        action_counts={
            SnapshotAction(action).name.lower(): count
            for action, count in zip(actions.tolist(), counts.tolist(), strict=True)
        },
        requested_start_bytes=start.requested_bytes,
        reserved_start_bytes=start.reserved_bytes,
        peak_requested_bytes=int(requested.max(initial=start.requested_bytes)),
        peak_event_index=len(requested) - int(np.argmax(requested[::-1])) if len(requested) else -1,
        peak_reserved_bytes=int(reserved.max(initial=start.reserved_bytes)),
        replay_errors=dict(start.errors),
        time_span_us=int(times[-1] - times[0]) if len(times) else None,
        monotonic=bool(np.all(np.diff(times) >= 0)),
        streams=len(np.unique(log.stream)),
    )


def _histories(log: SnapshotLog, start: StartState) -> tuple[Int64Array, Int64Array]:
    """Returns requested and reserved bytes after every event."""
    sign = np.zeros(len(SnapshotAction), dtype=np.int64)
    sign[SnapshotAction.ALLOC], sign[SnapshotAction.FREE_COMPLETED] = 1, -1
    requested = start.requested_bytes + np.cumsum(sign[log.action] * log.size_bytes)
    sign = np.zeros(len(SnapshotAction), dtype=np.int64)
    sign[[SnapshotAction.SEGMENT_ALLOC, SnapshotAction.SEGMENT_MAP]] = 1
    sign[[SnapshotAction.SEGMENT_FREE, SnapshotAction.SEGMENT_UNMAP]] = -1
    return requested, start.reserved_bytes + np.cumsum(sign[log.action] * log.size_bytes)
