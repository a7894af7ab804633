"""Tracks, slices and arrows of one rank, under the names and in the order the real profiler gives them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.runtime.recorder.group_ids import HcclGroup
from engine.runtime.recorder.rank_tasks import RankTasks
from engine.runtime.recorder.settings import RecorderSettings
from engine.runtime.scheduler.schedule import Schedule
from engine.trace.builder import TraceBuilder
from engine.trace.intervals import Intervals, difference, join, single, union
from engine.trace.strings import ABSENT
from engine.trace.tracks import Track, TrackKind

_FIRST_PID = 100_000
PYTHON, CANN, HARDWARE, COMMUNICATION, OVERLAP = 0, 7, 14, 16, 31
"""Where the profiler sorts its layers; part of the pid it gives them."""
_LAYERS = {
    PYTHON: "Python",
    CANN: "CANN",
    HARDWARE: "Ascend Hardware",
    COMMUNICATION: "Communication",
    OVERLAP: "Overlap Analysis",
}
OVERLAP_LANES = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
TASK_TYPES = {
    TaskKind.CUBE: "AI_CORE",
    TaskKind.VECTOR: "AI_VECTOR_CORE",
    TaskKind.MIX: "MIX_AIC",
    TaskKind.AI_CPU: "AI_CPU",
    TaskKind.COPY: "MEMCPY_ASYNC",
}
_LAUNCH_CALLS = {TaskKind.COPY: "AscendCL@aclrtMemcpyAsync", TaskKind.COLLECTIVE: "Communication@HcclLaunch"}
_KERNEL_LAUNCH = "Node@launch"


@dataclass(eq=False)
class Recording:
    """A trace being made of a rank's tasks; everything in absolute ns.

    Attributes:
        graph: What ran.
        schedule: When.
        tasks: Which of it is shown.
        settings: How.
        builder: Receives it.
        words: int32: graph string id → id in the builder's strings, the last entry −1 for −1.
        groups: Groups as HCCL knows them, by the id the graph calls them.
        event_of_task: int64, shape (tasks,): provisional event of each task (on its own lane), −1 where none.
        call_of_task: int64, shape (tasks,): provisional event of the CANN call a host task makes, −1 where none.
        begin_ns: int64, shape (tasks,): when each task began; a host that waits has called as soon as it could.
    """

    graph: TaskGraph
    schedule: Schedule
    tasks: RankTasks
    settings: RecorderSettings
    builder: TraceBuilder
    words: Int32Array
    groups: Mapping[str, HcclGroup]
    event_of_task: Int64Array
    call_of_task: Int64Array
    begin_ns: Int64Array

    @property
    def device(self) -> int:
        """Number of the rank's device."""
        return self.settings.device_number(self.tasks.rank)

    def start_ns(self, tasks: Int32Array) -> Int64Array:
        """Returns absolute starts."""
        return self.begin_ns[tasks] + self.settings.epoch_ns

    def duration_ns(self, tasks: Int32Array) -> Int64Array:
        """Returns how long tasks held their queue; of a host that waits, with its waiting."""
        return self.schedule.end_ns[tasks] - self.begin_ns[tasks]

    def text(self, ids: AnyArray) -> Int32Array:
        """Returns the builder's ids of the graph's strings, −1 for −1."""
        return self.words[ids]

    def process_id(self, layer: int) -> int:
        """Returns the pid of a layer: the process's own for Python, mixed with layer and device for the others."""
        pid = _FIRST_PID + self.tasks.rank
        return pid if layer == PYTHON else (pid << 10) | (layer << 5) | self.device

    def add_layer(self, layer: int) -> int:
        """Adds the header of a layer and returns its track."""
        device = ABSENT if layer in (PYTHON, CANN) else self.device
        pid = str(self.process_id(layer))
        return self.builder.add_track(
            Track(TrackKind.PROCESS, _LAYERS[layer], sort_key=layer, device=device, process_id=pid)
        )

    def add_lane(
        self, header: int, kind: TrackKind, name: str, thread: int, stream: int = ABSENT, group: str = ""
    ) -> int:
        """Adds a lane under a header and returns its track."""
        layer = self.builder.tracks[header]
        lane = Track(
            kind,
            name,
            parent=header,
            device=layer.device,
            stream=stream,
            process_id=layer.process_id,
            thread_id=str(thread),
            group=group,
        )
        return self.builder.add_track(lane)


def connection_ids(recording: Recording) -> Int64Array:
    """Returns, per task of the graph, the number that joins a launch and what it launched; int64, −1 for none."""
    tasks = recording.tasks
    ids = np.full(len(recording.graph), ABSENT, dtype=np.int64)
    launchers = np.unique(tasks.launcher[tasks.launched])
    ids[launchers] = np.arange(1, len(launchers) + 1)
    ids[tasks.launched] = ids[tasks.launcher[tasks.launched]]
    return ids


def add_host(recording: Recording, connection: Int64Array) -> None:
    """Adds the framework's operators, the steps around them, and (from level 1) the calls into CANN."""
    header = recording.add_layer(PYTHON)
    thread = recording.process_id(PYTHON)
    lane = recording.add_lane(header, TrackKind.HOST_THREAD, f"Thread {thread}", thread)
    _add_steps(recording, lane)
    operators = recording.tasks.operators
    first = recording.builder.add_events(
        start_ns=recording.start_ns(operators),
        duration_ns=recording.duration_ns(operators),
        track=lane,
        name=recording.text(recording.graph.name[operators]),
        category=recording.builder.strings.intern("cpu_op"),
    )
    recording.event_of_task[operators] = first + np.arange(len(operators))
    if recording.settings.level > 0:
        _add_cann(recording, connection, thread)


def _add_steps(recording: Recording, lane: int) -> None:
    """Adds one ``ProfilerStep#N`` per step: from its first host task to the next step's, or to its own last end."""
    host = recording.tasks.host
    step = recording.graph.step[host]
    numbers, first = np.unique(step, return_index=True)
    known = numbers >= 0
    numbers, first = numbers[known], first[known]
    if len(numbers) == 0:
        return
    begins = recording.start_ns(host)[first]
    ends = recording.start_ns(host) + recording.duration_ns(host)
    last = np.array([int(ends[step == number].max()) for number in numbers.tolist()], dtype=np.int64)
    # Steps follow each other on the host: the next one ends this one, whatever ran between.
    following = np.append(begins[1:], last[-1])
    stops = np.where(following >= last, following, last)
    recording.builder.add_events(
        start_ns=begins,
        duration_ns=stops - begins,
        track=lane,
        name=recording.builder.strings.intern_all([f"ProfilerStep#{number}" for number in numbers.tolist()]),
        category=recording.builder.strings.intern("cpu_op"),
    )


def _add_cann(recording: Recording, connection: Int64Array, thread: int) -> None:
    """Adds the launches, which take the whole of their operator's host time, and the runtime's own calls."""
    header = recording.add_layer(CANN)
    lane = recording.add_lane(header, TrackKind.CANN_THREAD, f"Thread {thread}", thread)
    graph, builder, tasks = recording.graph, recording.builder, recording.tasks
    launched = tasks.launched
    # One call per launcher, named after the last thing it launched.
    launchers, place = np.unique(tasks.launcher[launched][::-1], return_index=True)
    kinds = graph.kind[launched[::-1][place]]
    names = np.full(len(launchers), builder.strings.intern(_KERNEL_LAUNCH), dtype=np.int32)
    for kind, call in _LAUNCH_CALLS.items():
        names[kinds == kind] = builder.strings.intern(call)
    own = np.isin(launchers, tasks.runtime_calls)
    calls = np.concatenate((tasks.runtime_calls, launchers[~own])).astype(np.int32)
    titles = [f"AscendCL@{text}" for text in graph.strings.texts(graph.name[tasks.runtime_calls])]
    first = builder.add_events(
        start_ns=recording.start_ns(calls),
        duration_ns=recording.duration_ns(calls),
        track=lane,
        name=np.concatenate((builder.strings.intern_all(titles), names[~own])).astype(np.int32),
        correlation=connection[calls],
    )
    recording.call_of_task[calls] = first + np.arange(len(calls))
    recording.event_of_task[tasks.runtime_calls] = recording.call_of_task[tasks.runtime_calls]


def add_device(recording: Recording, connection: Int64Array) -> None:
    """Adds one lane per device stream with its kernels and copies."""
    header = recording.add_layer(HARDWARE)
    graph, tasks = recording.graph, recording.tasks.device
    track = np.empty(len(tasks), dtype=np.int32)
    for stream in np.unique(graph.stream[tasks]).tolist():
        lane = recording.add_lane(header, TrackKind.DEVICE_STREAM, f"Stream {stream}", stream, stream=stream)
        track[graph.stream[tasks] == stream] = lane
    words = np.full(max(TaskKind) + 1, ABSENT, dtype=np.int32)
    for kind, word in TASK_TYPES.items():
        words[kind] = recording.builder.strings.intern(word)
    first = recording.builder.add_events(
        start_ns=recording.start_ns(tasks),
        duration_ns=recording.duration_ns(tasks),
        track=track,
        name=recording.text(graph.name[tasks]),
        category=words[graph.kind[tasks]],
        correlation=connection[tasks] if recording.settings.level > 0 else ABSENT,
    )
    recording.event_of_task[tasks] = first + np.arange(len(tasks))


def add_overlap(recording: Recording) -> None:
    """Adds the profiler's own lanes: unions of computing and communication, and what lies between."""
    header = recording.add_layer(OVERLAP)
    graph, tasks = recording.graph, recording.tasks
    kernels = tasks.device[graph.kind[tasks.device] != TaskKind.COPY]
    computing, communication = _union(recording, kernels), _union(recording, tasks.collectives)
    covered = join(computing, communication, _union(recording, tasks.device))
    working = join(computing, communication)
    free = difference(single(int(covered.start_ns[0]), int(covered.end_ns[-1])), working) if len(covered) else covered
    sections = (computing, communication, difference(communication, computing), free)
    for thread, (name, part) in enumerate(zip(OVERLAP_LANES, sections, strict=True)):
        lane = recording.add_lane(header, TrackKind.OVERLAP, name, thread)
        recording.builder.add_events(
            start_ns=part.start_ns,
            duration_ns=part.end_ns - part.start_ns,
            track=lane,
            name=recording.builder.strings.intern(name),
        )


def _union(recording: Recording, tasks: Int32Array) -> Intervals:
    start_ns = recording.start_ns(tasks)
    return union(start_ns, start_ns + recording.duration_ns(tasks))
