"""Allocator snapshots of PyTorch and torch_npu (``memory._dump_snapshot``): segments, blocks and the log of events."""

import io
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import SourcePosition, TraceReadError, TraceSyntaxError
from engine.formats.snapshots.pickle_check import check_pickle
from engine.trace.diagnostics import Diagnostic, DiagnosticLog, Severity

MAX_SNAPSHOT_BYTES = 2 << 30
_BROKEN_PICKLE = (
    *(pickle.UnpicklingError, EOFError, AttributeError, LookupError, TypeError, ValueError, OverflowError),
    *(MemoryError, RecursionError),
)
"""What the standard unpickler raises for broken data."""
_ADVICE = "open a file written by torch.cuda.memory._dump_snapshot or torch_npu.npu.memory._dump_snapshot"


class SnapshotAction(IntEnum):
    """Events of the log, as the allocator names them."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    SNAPSHOT = 7
    OOM = 8


class BlockState(IntEnum):
    """What a block is used for."""

    INACTIVE = 0
    ALLOCATED = 1
    AWAITING_FREE = 2


_STATES = {
    "inactive": BlockState.INACTIVE,
    "active_allocated": BlockState.ALLOCATED,
    "active_awaiting_free": BlockState.AWAITING_FREE,
    "active_pending_free": BlockState.AWAITING_FREE,
}
_ACTIONS = {action.name.lower(): action for action in SnapshotAction}


@dataclass(frozen=True, slots=True)
class SnapshotBlock:
    """One block of a segment."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: BlockState


@dataclass(frozen=True, slots=True)
class SnapshotSegment:
    """One segment, or one run of mapped pages of an expandable segment. ``blocks`` are in address order."""

    device: int
    address: int
    size_bytes: int
    stream: int
    large: bool
    expandable: bool
    blocks: tuple[SnapshotBlock, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotLog:
    """The events of one device, oldest first. int64 columns, shape (n,).

    Attributes:
        action: SnapshotAction.
        address: Of the block or segment; for OOM the free bytes the device reported.
        size_bytes: As requested for blocks, whole for segments and pages.
        stream: Stream pointer.
        time_us: Since the epoch, −1 where not recorded.
    """

    action: Int64Array
    address: Int64Array
    size_bytes: Int64Array
    stream: Int64Array
    time_us: Int64Array

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True, slots=True, eq=False)
class AllocatorSnapshot:
    """A snapshot file.

    Attributes:
        path: The file.
        segments: Of all devices, in file order.
        logs: Device → its events; devices without an event are left out.
        settings: The allocator's settings; empty where the file has none (torch_npu writes none).
        layout_errors: Blocks that do not tile their segment.
        diagnostics: What could not be used.
    """

    path: Path
    segments: tuple[SnapshotSegment, ...]
    logs: Mapping[int, SnapshotLog]
    settings: Mapping[str, Any] = field(default_factory=dict)
    layout_errors: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


class _PlainUnpickler(pickle.Unpickler):
    """Admits builtin containers, numbers and text; refuses every name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuses."""
        message = f"the pickle wants {module}.{name}"
        raise pickle.UnpicklingError(message)

    def persistent_load(self, _: object) -> NoReturn:
        """Refuses."""
        message = "the pickle wants an object from outside"
        raise pickle.UnpicklingError(message)


def looks_like_snapshot(path: Path) -> bool:
    """Tells whether a file begins like a pickle of protocol 2 or later. Never raises."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError:
        return False
    return len(head) == 2 and head[0] == 0x80 and 2 <= head[1] <= 5


def read_snapshot(path: Path) -> AllocatorSnapshot:
    """Returns the snapshot at ``path``. Nothing in the file is ever executed.

    Raises:
        TraceReadError: The file cannot be read, wants more than plain data, or is no snapshot.
    """
    content = _load(path)
    if isinstance(content, list):  # memory_snapshot() returns the bare list of segments
        content = {"segments": content}
    if not isinstance(content, dict) or not isinstance(content.get("segments"), list):
        raise TraceReadError("the pickle is no allocator snapshot: it has no segments", SourcePosition(path), _ADVICE)
    log = DiagnosticLog()
    segments, layout_errors = _segments(content["segments"], log)
    traces = content.get("device_traces")
    logs = {}
    for device, events in enumerate(traces if isinstance(traces, list) else []):
        if isinstance(events, list) and events:
            logs[device] = _log(events, log)
    if not segments and not logs:
        raise TraceReadError("the snapshot holds no segment and no event", SourcePosition(path), _ADVICE)
    settings = content.get("allocator_settings")
    return AllocatorSnapshot(
        path=path,
        segments=segments,
        logs=logs,
        settings=settings if isinstance(settings, dict) else {},
        layout_errors=layout_errors,
        diagnostics=log.diagnostics(),
    )


def _load(path: Path) -> Any:
    try:
        size_bytes = path.stat().st_size
        if size_bytes > MAX_SNAPSHOT_BYTES:
            raise TraceReadError(f"the file is larger than {MAX_SNAPSHOT_BYTES >> 30} GiB", SourcePosition(path))
        data = path.read_bytes()
    except OSError as error:
        raise TraceReadError(error.strerror or str(error), SourcePosition(path), "check the file") from error
    check_pickle(data, path)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _BROKEN_PICKLE as error:
        raise TraceSyntaxError(f"the pickle is broken: {error}", SourcePosition(path), _ADVICE) from error


def _segments(items: list[Any], log: DiagnosticLog) -> tuple[tuple[SnapshotSegment, ...], int]:
    segments = []
    layout_errors = 0
    for index, item in enumerate(items):
        try:
            segment = _segment(item)
        except (TypeError, KeyError, ValueError, AttributeError):
            log.add(
                "broken-segment",
                Severity.DATA_LOSS,
                "segments lack an address, a size or blocks and were left out",
                position=SourcePosition(row=index),
            )
            continue
        segments.append(segment)
        layout_errors += _layout_errors(segment)
    log.add(
        "blocks-do-not-tile",
        Severity.NOTICE,
        "blocks do not follow each other without a gap through their segment",
        count=layout_errors,
    )
    return tuple(segments), layout_errors


def _segment(item: Mapping[str, Any]) -> SnapshotSegment:
    address = _integer(item["address"])
    size_bytes = _integer(item["total_size"])
    blocks = []
    position = address
    for block in item["blocks"]:
        start = _integer(block.get("address", position))  # snapshots before 2.1 leave the address out
        size = _integer(block["size"])
        requested = _integer(block.get("requested_size", size))
        blocks.append(SnapshotBlock(start, size, requested, _STATES[block["state"]]))
        position = start + size
    return SnapshotSegment(
        device=_integer(item.get("device", 0)),
        address=address,
        size_bytes=size_bytes,
        stream=_integer(item.get("stream", 0)),
        large=item.get("segment_type") != "small",
        expandable=bool(item.get("is_expandable", False)),
        blocks=tuple(blocks),
    )


def _layout_errors(segment: SnapshotSegment) -> int:
    errors = 0
    position = segment.address
    for block in segment.blocks:
        errors += block.address != position or block.size_bytes <= 0
        position = block.address + block.size_bytes
    return errors + (position != segment.address + segment.size_bytes)


def _integer(value: Any) -> int:
    """Returns an integer that fits int64; raises TypeError or ValueError for anything else."""
    if not isinstance(value, int) or not -(1 << 62) < value < 1 << 62:
        message = f"not a 62-bit integer: {value!r:.40}"
        raise ValueError(message)
    return int(value)


def _log(events: Iterable[Any], log: DiagnosticLog) -> SnapshotLog:
    """Returns the events as columns; a loop over events, because they are Python objects already."""
    rows: list[tuple[int, int, int, int, int]] = []
    for index, event in enumerate(events):
        try:
            action = _ACTIONS[event["action"]]
            address = event["device_free"] if action is SnapshotAction.OOM else event["addr"]
            row = (int(action), address, event["size"], event.get("stream", 0), event.get("time_us", -1))
            rows.append((int(action), *(_integer(value) for value in row[1:])))  # type: ignore[arg-type]  # five values
        except (TypeError, KeyError, ValueError, AttributeError):
            log.add(
                "unknown-allocator-event",
                Severity.DATA_LOSS,
                "events of the log have an unknown action or lack an address or a size",
                position=SourcePosition(row=index),
            )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy()
    return SnapshotLog(*columns)
