"""Writes one rank's tasks into the graph of the job."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.idle import IdleCause
from engine.analyses.idle.from_host import DEVICE_START_NS
from engine.analyses.modules.host_context import PHASES
from engine.analyses.name_search import names_holding
from engine.core.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskKind
from engine.replay.capture_graph import Gaps
from engine.replay.meetings import RankMeetings
from engine.replay.rank_buffers import add_buffers
from engine.replay.rank_plan import RankPlan
from engine.replay.shadow_ranks import TwinWaits
from engine.replay.task_work import task_work
from engine.trace.strings import ABSENT

_HOST = "dispatch"
_GRAPH_LAUNCHES = ("graphlaunch",)
NOT_RECORDED = "gap: not recorded"
_SHORT, _LONG = f"gap: {IdleCause.DEVICE_SCHEDULING}", f"gap: {IdleCause.UNKNOWN}"
"""Names of gaps. Short ones are the device's own start of tasks, by the measure of the idle analysis."""


@dataclass(eq=False)
class RankWriter:
    """Adds the tasks of one rank.

    Attributes:
        builder: Receives them.
        plan: The rank.
        rank: Its number in the job.
        origin_ns: Trace time of ns 0 of the run.
        gaps: What becomes of device time nothing explains.
    """

    builder: GraphBuilder
    plan: RankPlan
    rank: int
    origin_ns: int
    gaps: Gaps

    def write(self, meetings: RankMeetings, twin: TwinWaits, twin_position: Int32Array) -> Int32Array:
        """Adds host tasks, device tasks with the gaps before them, and all waits.

        Args:
            meetings: Of the rank's collectives.
            twin: Waits for another rank's tasks.
            twin_position: int32: index in the graph of each task of that rank.

        Returns:
            The graph's index of each device task, int32.
        """
        first_host = self._add_host()
        self._add_buffers(first_host)
        position, gap_of = self._add_device(first_host, meetings, twin)
        waits, host_waits = self.plan.waits, self.plan.host_waits
        self.builder.add_edges(position[waits.before], position[waits.after])
        held = gap_of[waits.after] >= 0
        self.builder.add_edges(position[waits.before[held]], gap_of[waits.after[held]])
        self.builder.add_edges(position[host_waits.before], first_host + host_waits.after)
        for waiting in (position, gap_of):
            self.builder.add_edges(twin_position[twin.before], waiting[twin.after])
        return position

    def _add_host(self) -> int:
        plan, dispatch = self.plan, self.plan.dispatch
        start_ns = np.concatenate(([self.origin_ns], dispatch.end_ns[:-1]))[: len(dispatch)]
        # A wait lasts what the call takes once everything it waits for has ended.
        np.maximum.at(start_ns, plan.host_waits.after, plan.tasks.end_ns[plan.host_waits.before])
        return self.builder.add_tasks(
            len(dispatch),
            name=self._host_names(),
            kind=dispatch.kind,
            rank=self.rank,
            stream=Stream.HOST,
            duration_ns=np.maximum(dispatch.end_ns - start_ns, 0),
            step=self._of_launched(plan.step),
            layer=self._of_launched(plan.layer),
            phase=self._of_launched(self._phases()),
            origin_event=dispatch.event,
            inferred=dispatch.inferred,
        )

    def _add_buffers(self, first_host: int) -> None:
        plan = self.plan
        add_buffers(self.builder, plan.trace, plan.dispatch, self._of_launched(self._phases()), first_host, self._texts)

    def _of_launched(self, column: Int32Array) -> Int32Array:
        """Returns for each host task the entry of what it launches next, −1 where it launches nothing more."""
        launched = self.plan.launched
        values: Int32Array = np.where(launched >= 0, column[np.maximum(launched, 0)], ABSENT).astype(np.int32)
        return values

    def _phases(self) -> Int32Array:
        """Returns the builder's string id of each device task's phase, −1 where unknown."""
        words = [ABSENT, *(self.builder.strings.intern(phase) for phase in PHASES[1:])]
        return np.array(words, dtype=np.int32)[self.plan.phase]

    def _host_names(self) -> Int32Array:
        """Returns the names of host tasks: the framework's operator behind the first launch, else the call."""
        plan, trace = self.plan, self.plan.trace
        dispatch = plan.dispatch
        source = dispatch.event.copy()
        told = np.flatnonzero((dispatch.launched_by >= 0) & (plan.operator >= 0))[::-1]
        source[dispatch.launched_by[told]] = plan.operator[told]
        waits = dispatch.kind == TaskKind.SYNCHRONIZE
        source[waits] = dispatch.event[waits]
        named = source >= 0
        names = np.full(len(dispatch), self.builder.strings.intern(_HOST), dtype=np.int32)
        names[named] = self._texts(trace.events.name[source[named]])
        return names

    def _texts(self, ids: Int32Array) -> Int32Array:
        """Returns the builder's ids of the trace's strings, −1 for −1; each distinct one is read once."""
        distinct, inverse = np.unique(ids, return_inverse=True)
        strings = self.plan.trace.strings
        words = [self.builder.strings.intern(strings.text(item)) if item >= 0 else ABSENT for item in distinct.tolist()]
        return np.array(words, dtype=np.int32)[inverse] if len(ids) else ids

    def _add_device(self, first_host: int, meetings: RankMeetings, twin: TwinWaits) -> tuple[Int32Array, Int32Array]:
        """Returns the graph's index of each device task and of the gap before it (−1 for none)."""
        plan, tasks = self.plan, self.plan.tasks
        gap_ns = self._gaps_ns(twin)
        has_gap = gap_ns > 0
        place = np.arange(len(tasks)) + np.cumsum(has_gap)
        count = len(tasks) + int(has_gap.sum())
        of_row = np.empty(count, dtype=np.int64)
        of_row[place] = np.arange(len(tasks))
        of_row[place[has_gap] - 1] = np.flatnonzero(has_gap)
        is_gap = np.ones(count, dtype=np.bool_)
        is_gap[place] = False
        launch = np.where(plan.dispatch.launched_by >= 0, plan.dispatch.launched_by + first_host, ABSENT)
        inferred = np.zeros(len(tasks), dtype=np.uint8)
        inferred[plan.waits.after[plan.waits.inferred > 0]] = 1
        inferred[twin.after] = 1
        columns = self._device_columns(meetings)
        first = self.builder.add_tasks(
            count,
            launch[of_row],
            name=np.where(is_gap, self._gap_names(gap_ns)[of_row], columns["name"][of_row]),
            kind=np.where(is_gap, TaskKind.GAP, plan.kind[of_row]),
            rank=self.rank,
            stream=tasks.queue[of_row],
            duration_ns=np.where(is_gap, gap_ns[of_row], columns["duration_ns"][of_row]),
            rendezvous=np.where(is_gap, ABSENT, columns["rendezvous"][of_row]),
            flops=np.where(is_gap, 0, columns["flops"][of_row]),
            bytes=np.where(is_gap, 0, columns["bytes"][of_row]),
            layer=plan.layer[of_row],
            phase=self._phases()[of_row],
            step=plan.step[of_row],
            shape=np.where(is_gap, ABSENT, columns["shape"][of_row]),
            types=np.where(is_gap, ABSENT, columns["types"][of_row]),
            group=np.where(is_gap, ABSENT, columns["group"][of_row]),
            origin_event=np.where(is_gap, ABSENT, tasks.event[of_row]),
            inferred=inferred[of_row],
        )
        position = (first + place).astype(np.int32)
        return position, np.where(has_gap, position - 1, ABSENT).astype(np.int32)

    def _gap_names(self, gap_ns: Int64Array) -> Int32Array:
        names = self.builder.strings.intern_all((_SHORT, _LONG, NOT_RECORDED))
        short = gap_ns <= DEVICE_START_NS
        shown = np.where(short, names[0], names[1])
        chosen: Int32Array = np.where(self._hides_work(gap_ns), names[2], shown).astype(np.int32)
        return chosen

    def _hides_work(self, gap_ns: Int64Array) -> BoolArray:
        """Returns which gaps are no standing still, because what ran in them was not recorded, bool.

        Between a shadow's collectives lies everything else it did; of a graph that is launched as a whole profilers may
        show a few of its tasks only.
        """
        plan = self.plan
        if plan.is_shadow:
            return np.ones(len(gap_ns), dtype=np.bool_)
        call = np.append(plan.dispatch.event, np.int32(ABSENT))[plan.dispatch.launched_by]
        graphs = names_holding(plan.trace.strings, _GRAPH_LAUNCHES)
        hides: BoolArray = (gap_ns > DEVICE_START_NS) & (call >= 0)
        hides &= np.isin(plan.trace.events.name[np.maximum(call, 0)], graphs) if len(plan.trace.events) else False
        return hides

    def _gaps_ns(self, twin: TwinWaits) -> Int64Array:
        """Returns how long each task's stream stood still although nothing known held the task back, int64."""
        plan, tasks = self.plan, self.plan.tasks
        before_ns = np.where(tasks.is_first, self.origin_ns, tasks.previous_end_ns)
        others_ns = np.maximum(plan.dispatch.ready_ns(), plan.waits.latest_end_ns(tasks))
        others_ns = np.maximum(others_ns, twin.latest_end_ns(len(tasks)))
        gap_ns = np.maximum(tasks.start_ns - np.maximum(before_ns, others_ns), 0)
        if self.gaps is Gaps.KEPT:
            return gap_ns
        queued = np.maximum(before_ns, plan.waits.latest_end_ns(tasks)) > plan.dispatch.ready_ns()
        constant_ns = np.where(queued, np.minimum(gap_ns, plan.dispatch.switch_ns), 0)
        # Where nothing else ties a stream to the run, its first task starts when it did, and so does the first of all:
        # what lies before it is no gap of the device.
        loose: BoolArray = tasks.is_first & (others_ns < self.origin_ns)
        loose[np.argmin(tasks.start_ns)] = True
        return np.where(loose | self._hides_work(gap_ns), gap_ns, constant_ns)

    def _device_columns(self, meetings: RankMeetings) -> dict[str, AnyArray]:
        """Returns name, time, rendezvous, work, shape, types and group per device task."""
        plan, trace, tasks = self.plan, self.plan.trace, self.plan.tasks
        plain = tasks.collective < 0
        events = tasks.event[plain]
        kernel = trace.kernel_row_of_event[events]
        name = np.empty(len(tasks), dtype=np.int32)
        name[plain] = self._texts(trace.events.name[events])
        shape, types = (np.full(len(tasks), ABSENT, dtype=np.int32) for _ in range(2))
        shape[plain] = self._texts(np.append(trace.kernels.input_shapes, np.int32(ABSENT))[kernel])
        types[plain] = self._texts(np.append(trace.kernels.input_types, np.int32(ABSENT))[kernel])
        duration_ns = tasks.end_ns - tasks.start_ns
        flops, size_bytes = (np.zeros(len(tasks), dtype=np.float64) for _ in range(2))
        work = task_work(trace, kernel)
        flops[plain], size_bytes[plain] = work.flops, work.bytes
        meeting, group = (np.full(len(tasks), ABSENT, dtype=np.int32) for _ in range(2))
        talks = np.flatnonzero(~plain)
        index = tasks.collective[talks]
        items = [plan.collectives[place] for place in index.tolist()]
        name[talks] = self.builder.strings.intern_all(item.name for item in items)
        group[talks] = [self.builder.strings.intern(item.group) if item.group else ABSENT for item in items]
        meeting[talks], size_bytes[talks] = meetings.rendezvous[index], meetings.bytes[index]
        met = talks[meeting[talks] >= 0]
        duration_ns[met] = np.minimum(meetings.duration_ns[tasks.collective[met]], duration_ns[met])
        return {
            "name": name,
            "shape": shape,
            "types": types,
            "duration_ns": duration_ns,
            "flops": flops,
            "bytes": size_bytes,
            "rendezvous": meeting,
            "group": group,
        }
