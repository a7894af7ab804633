"""Device time by phase, layer, module and source line."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.analyses.distinct_rows import distinct_rows
from engine.analyses.launches import operator_events
from engine.analyses.modules.host_context import (
    BACKWARD,
    COMMUNICATION,
    FORWARD,
    OPTIMIZER,
    PHASES,
    HostContext,
    host_context,
    module_paths,
    source_lines,
)
from engine.analyses.modules.kernel_phases import phases_of_kernels
from engine.analyses.modules.periodic import Repetition, repetitions
from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

OUTSIDE_MODULES = "(outside modules)"
OUTSIDE_LAYERS = "(outside layers)"


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """Device time under one path.

    Attributes:
        path: From the outermost, joined with ``"/"``: module names, or ``"layer 3"`` found by periodicity (numbered
            within this rank); ``"(outside modules)"`` or ``"(outside layers)"`` for the rest.
        phase: ``"forward"``, ``"backward"``, ``"optimizer"``, ``"communication"`` (computing for communication, such as
            filling gradient buckets) or "" where unknown.
        source: ``"file.py(91): fn"`` where the capture has call stacks, else "".
        count: Device tasks.
        total_ns: Sum of their durations.
        inferred: Whether the path was inferred from the periodic sequence of kernels.
    """

    path: str
    phase: str
    source: str
    count: int
    total_ns: int
    inferred: bool


def module_times(trace: Trace) -> tuple[ModuleTime, ...]:
    """Returns the times, the largest first. Every computing task is counted in exactly one row.

    Communication is not computing, so the sum over all rows is the sum over the operator statistics.
    """
    rows = np.flatnonzero(activities(trace) == Activity.COMPUTING).astype(np.int32)
    if len(rows) == 0:
        return ()
    context = host_context(trace, operator_events(trace)[rows])
    phase = _phases(trace, rows, context)
    has_modules = bool(np.any(context.module >= 0))
    if has_modules:
        paths = [path or OUTSIDE_MODULES for path in module_paths(trace, context.module)]
        inferred = np.zeros(len(rows), dtype=np.bool_)
    else:
        layer, phase = _layers(trace, rows, context, phase)
        paths = [f"layer {index}" if index >= 0 else OUTSIDE_LAYERS for index in layer.tolist()]
        inferred = layer >= 0
    sources = source_lines(trace, context.origin, trace.events.duration_ns[rows])
    return _rows(paths, phase, sources, inferred, trace.events.duration_ns[rows])


@dataclass(frozen=True, slots=True, eq=False)
class KernelPlaces:
    """Where in the model each computing task stands. Columns of shape (n,).

    Attributes:
        event: int32 event row, ascending.
        phase: int64 index into ``PHASES``; 0 where unknown.
        layer: int64 number within the rank, found by periodicity; −1 outside layers and where modules are recorded.
    """

    event: Int32Array
    phase: Int64Array
    layer: Int64Array


def kernel_places(trace: Trace, operator: Int32Array, kinds: UInt8Array | None = None) -> KernelPlaces:
    """Returns the place of every computing task.

    Where neither host nor kernels show a backward pass or an optimizer, every phase is unknown.

    Args:
        trace: The trace.
        operator: ``operator_events(trace)``.
        kinds: ``activities(trace)`` where the caller has it already.
    """
    rows = np.flatnonzero((activities(trace) if kinds is None else kinds) == Activity.COMPUTING).astype(np.int32)
    if len(rows) == 0:
        nothing = np.empty(0, dtype=np.int64)
        return KernelPlaces(rows, nothing, nothing)
    context = host_context(trace, operator[rows])
    phase = _phases(trace, rows, context)
    layer = np.full(len(rows), ABSENT, dtype=np.int64)
    if not np.any(context.module >= 0):
        layer, phase = _layers(trace, rows, context, phase)
    told = np.any(phase > PHASES.index(FORWARD))
    return KernelPlaces(rows, phase if told else np.zeros(len(rows), dtype=np.int64), layer)


def _rows(
    paths: list[str], phase: Int64Array, sources: list[str], inferred: BoolArray, duration_ns: Int64Array
) -> tuple[ModuleTime, ...]:
    path_ids: dict[str, int] = {}
    source_ids: dict[str, int] = {}
    path_index = np.array([path_ids.setdefault(path, len(path_ids)) for path in paths])
    source_index = np.array([source_ids.setdefault(source, len(source_ids)) for source in sources])
    first, group = distinct_rows((path_index, phase, source_index))
    total_ns = np.zeros(len(first), dtype=np.int64)
    np.add.at(total_ns, group, duration_ns)
    count = np.bincount(group)
    path_names, source_names = list(path_ids), list(source_ids)
    times = [
        ModuleTime(
            path=path_names[path_index[row]],
            phase=PHASES[phase[row]],
            source=source_names[source_index[row]],
            count=int(count[index]),
            total_ns=int(total_ns[index]),
            inferred=bool(inferred[row]),
        )
        for index, row in enumerate(first.tolist())
    ]
    return tuple(sorted(times, key=lambda time: (-time.total_ns, time.path, time.phase, time.source)))


def _types(trace: Trace, rows: Int32Array) -> Int32Array:
    """Returns the string id of each task's operator type, its name where the capture has no types."""
    kernel = trace.kernel_row_of_event[rows]
    names = trace.events.name[rows]
    if len(trace.kernels) == 0:
        return names
    op_type = np.where(kernel >= 0, trace.kernels.op_type[kernel], np.int32(ABSENT))
    unnamed = (op_type < 0) | (op_type == trace.strings.id_of("N/A"))
    return np.where(unnamed, names, op_type)


def _phases(trace: Trace, rows: Int32Array, context: HostContext) -> Int64Array:
    """Returns the phase of each task: what the host says, else what the kernels say."""
    if np.any(context.phase > 0):
        return context.phase
    order = np.argsort(trace.events.start_ns[rows], kind="stable")
    distinct, index = np.unique(_types(trace, rows)[order], return_inverse=True)
    phase = np.zeros(len(rows), dtype=np.int64)
    phase[order] = phases_of_kernels([trace.strings.text(text) for text in distinct.tolist()], index)
    return phase


def _layers(trace: Trace, rows: Int32Array, context: HostContext, phase: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Returns the layer of each task (−1 outside) and the phases with every layer in one phase."""
    types = _types(trace, rows)
    duration_ns = trace.events.duration_ns[rows]
    layer = np.full(len(rows), ABSENT, dtype=np.int64)
    settled = phase.copy()
    places: list[Int64Array] = []
    stacks: list[Repetition] = []
    majors: list[int] = []
    # One step per stretch of a stream in one phase, and one per stack of layers in it.
    for stretch in _stretches(trace.events.track[rows], phase if np.any(context.phase > 0) else None):
        for stack in repetitions(types[stretch]):
            where = stretch[stack.start : stack.end]
            if _is_step(phase[where[: stack.period]]):
                continue
            places.append(where)
            stacks.append(stack)
            majors.append(_majority(phase[where], duration_ns[where]))
    for where, stack, major, first in zip(places, stacks, majors, _first_layers(stacks, majors), strict=True):
        direction = -1 if PHASES[major] == BACKWARD else 1
        layer[where] = first + direction * np.repeat(np.arange(stack.copies), stack.period)
        settled[where] = major
    return layer, settled


def _stretches(track: Int32Array, host_phase: Int64Array | None) -> list[Int64Array]:
    """Returns the tasks (indices) of each stretch in which layers may stand.

    A stream is one stretch; where the host says the phases, every phase of every step is one, because a step must not
    be taken for a layer. Computing for communication stands between layers and in none.
    """
    index = np.arange(len(track))
    if host_phase is None:
        cuts = np.flatnonzero(np.diff(track)) + 1
        return np.split(index, cuts)
    index = index[host_phase != PHASES.index(COMMUNICATION)]
    cuts = np.flatnonzero((np.diff(track[index]) != 0) | (np.diff(host_phase[index]) != 0)) + 1
    return np.split(index, cuts)


def _is_step(phase: Int64Array) -> bool:
    """Returns whether one copy holds an optimizer beside other phases: then it is a step."""
    return len(np.unique(phase)) > 1 and bool(np.any(phase == PHASES.index(OPTIMIZER)))


def _majority(phase: Int64Array, duration_ns: Int64Array) -> int:
    """Returns the phase of a stack: backward as soon as it holds gradients, else the one with the most time."""
    if np.any(phase == PHASES.index(BACKWARD)):
        return PHASES.index(BACKWARD)
    return int(np.argmax(np.bincount(phase, weights=duration_ns, minlength=len(PHASES))))


def _first_layers(stacks: list[Repetition], phases: list[int]) -> list[int]:
    """Returns the number of the first copy's layer in each stack.

    Stacks of one phase and period are the same layers in another micro-batch; another period continues the count (dense
    layers, then experts). Backward passes run from the last layer to the first.
    """
    copies: dict[tuple[int, int], int] = {}
    for stack, phase in zip(stacks, phases, strict=True):
        key = (phase, stack.period)
        copies[key] = max(copies.get(key, 0), stack.copies)
    first = []
    for stack, phase in zip(stacks, phases, strict=True):
        keys = [key for key in copies if key[0] == phase]
        before = sum(copies[key] for key in keys[: keys.index((phase, stack.period))])
        if PHASES[phase] == BACKWARD:
            first.append(sum(copies[key] for key in keys) - before - 1)
        else:
            first.append(before)
    return first
