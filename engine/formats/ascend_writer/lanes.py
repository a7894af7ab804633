"""Which process and thread of the file each track becomes."""

from dataclasses import dataclass

from engine.trace.trace import Trace
from engine.trace.tracks import Track, TrackKind

LAYER_OF_KIND = {
    TrackKind.HOST_THREAD: ("Python", 0),
    TrackKind.CANN_THREAD: ("CANN", 7),
    TrackKind.DEVICE_STREAM: ("Ascend Hardware", 14),
    TrackKind.COMMUNICATION_GROUP: ("Communication", 16),
    TrackKind.COMMUNICATION_PLANE: ("Communication", 16),
    TrackKind.OVERLAP: ("Overlap Analysis", 31),
}
"""Readers know a lane by the name of its layer; the numbers are where the profiler sorts them."""
_OTHER = ("Trace", 40)
_KEPT_NAMES = {
    TrackKind.COMMUNICATION_GROUP: ("HCCL",),
    TrackKind.COMMUNICATION_PLANE: ("HCCL",),
    TrackKind.HOST_THREAD: ("Python GC", "MindSpore", "CPU OP", "PID Name"),
    TrackKind.CANN_THREAD: ("CANN (DPU)",),
    TrackKind.ANNOTATION: ("Ascend Hardware",),
}
_FIRST_PID = 1_000_000


@dataclass(frozen=True, slots=True)
class Layer:
    """A process of the file.

    Attributes:
        pid: Its number.
        name: What readers know it by.
        device: Device number, −1 for the host.
        sort_index: Its place on the screen.
    """

    pid: int
    name: str
    device: int
    sort_index: int

    @property
    def label(self) -> str:
        """``CPU``, or the device."""
        return "CPU" if self.device < 0 else f"NPU {self.device}"


@dataclass(frozen=True, slots=True)
class FileLanes:
    """Where each track is written.

    Attributes:
        layers: Processes of the file, in order.
        layer_of_track: Index into ``layers`` per track.
        thread: tid per track.
        own_process: The process that was profiled.
    """

    layers: tuple[Layer, ...]
    layer_of_track: tuple[int, ...]
    thread: tuple[int, ...]
    own_process: int

    def pid(self, track: int) -> int:
        """Returns the pid a track is written under."""
        return self.layers[self.layer_of_track[track]].pid


def lanes_of(trace: Trace) -> FileLanes:
    """Returns processes and threads; numbers the trace knows are kept where they are free."""
    layers: dict[tuple[str, int], Layer] = {}
    taken: set[int] = set()
    places: list[tuple[str, int]] = []
    threads: list[int] = []
    used: set[tuple[int, int]] = set()
    for index, track in enumerate(trace.tracks):
        name, sort_index = _layer_name(trace, index)
        key = (name, track.device)
        if key not in layers:
            pid = _free(track.process_id, taken, _FIRST_PID + len(layers))
            layers[key] = Layer(pid, name, track.device, sort_index)
        places.append(key)
        wanted = str(track.stream) if track.kind is TrackKind.DEVICE_STREAM else track.thread_id
        threads.append(_free_thread(wanted, layers[key].pid, used) if track.kind is not TrackKind.PROCESS else 0)
    order = list(layers)
    host = next((layer.pid for layer in layers.values() if layer.name == "Python"), _FIRST_PID)
    return FileLanes(tuple(layers.values()), tuple(order.index(key) for key in places), tuple(threads), host)


def _layer_name(trace: Trace, index: int) -> tuple[str, int]:
    track = trace.tracks[index]
    if track.kind is TrackKind.PROCESS:
        child = next((item for item in trace.tracks if item.parent == index), None)
        return _named(trace, child or track, track)
    header = trace.tracks[track.parent] if track.parent >= 0 else track
    return _named(trace, track, header)


def _named(trace: Trace, track: Track, header: Track) -> tuple[str, int]:
    """Returns the name and place of the layer: the header's own where readers know its kind by it."""
    usual = LAYER_OF_KIND.get(track.kind)
    if header.kind is not TrackKind.PROCESS:
        return usual or _OTHER
    known = usual is None or header.name in (*_KEPT_NAMES.get(track.kind, ()), usual[0])
    return (header.name, header.sort_key) if known or usual is None else usual


def _free(wanted: str, taken: set[int], otherwise: int) -> int:
    number = int(wanted) if wanted.isdecimal() else otherwise
    while number in taken:
        number += 1
    taken.add(number)
    return number


def _free_thread(wanted: str, pid: int, used: set[tuple[int, int]]) -> int:
    number = int(wanted) if wanted.isdecimal() else 0
    while (pid, number) in used:
        number += 1
    used.add((pid, number))
    return number
