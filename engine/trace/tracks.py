"""The rows of the timeline."""

from dataclasses import dataclass
from enum import StrEnum

from engine.trace.strings import ABSENT


class TrackKind(StrEnum):
    """What a track's events are. Analyses ask for kinds, never for names of processes."""

    HOST_THREAD = "host_thread"
    """Framework operators, Python frames and runtime calls of one host thread."""
    CANN_THREAD = "cann_thread"
    """CANN API calls of one host thread (AscendCL, Runtime, Node, Model, Hccl)."""
    DEVICE_STREAM = "device_stream"
    """Tasks of one device stream."""
    COMMUNICATION_GROUP = "communication_group"
    """Collectives of one communication group, as a whole."""
    COMMUNICATION_PLANE = "communication_plane"
    """Transfers and notifications inside collectives, one link plane."""
    OVERLAP = "overlap"
    """The profiler's own overlap analysis: Computing, Communication, Not Overlapped, Free."""
    ANNOTATION = "annotation"
    """User annotations projected onto the device, steps, spans."""
    COUNTER = "counter"
    """Carries counter series, no events."""
    PROCESS = "process"
    """A group header: carries no events of its own, only child tracks."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Track:
    """One row of the timeline.

    Attributes:
        kind: What its events are.
        name: What a person calls it, e.g. ``"Stream 2"``.
        parent: Index of the enclosing track (usually a PROCESS), or −1.
        sort_key: Order among siblings, ascending; ties keep the order of the list.
        device: Device number, or −1 for the host.
        stream: Stream number, or −1.
        process_id: The file's pid as text ("" where it has none).
        thread_id: The file's tid as text ("" where it has none).
        group: Communication group (its name or hash), "" where it is none.
    """

    kind: TrackKind
    name: str
    parent: int = ABSENT
    sort_key: int = 0
    device: int = ABSENT
    stream: int = ABSENT
    process_id: str = ""
    thread_id: str = ""
    group: str = ""
