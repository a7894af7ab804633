"""The device of a served run: operators of the iterations that keep them, one task for each of the others."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.devices.catalogue import topology_of
from engine.graph.task_graph import TaskKind
from engine.runtime.collectives import network_of
from engine.runtime.recorder.timeline import TASK_TYPES
from engine.trace.builder import TraceBuilder, concatenate
from engine.trace.strings import ABSENT
from engine.trace.tables import CollectiveTable, KernelTable
from engine.trace.tracks import Track, TrackKind
from engine.workloads.serving.forward import (
    ATTENTION,
    ForwardOperator,
    embedding_operators,
    head_operators,
    layer_operators,
)
from engine.workloads.serving.pricing import operator_times
from engine.workloads.serving.simulate import ServingResult

UNPROFILED = "forward pass (operators not kept)"
_DEVICE_PID, _COMMUNICATION_PID = "400000", "500000"
_CACHE_WRITE = "ReshapeAndCache"
"""The operator of a layer after which attention runs."""
_GROUP = "tensor group"
_STREAM = 2
_FLOW = "async_npu"
_GRAPH_LAUNCH = "launch of a captured graph"


@dataclass(frozen=True, slots=True, eq=False)
class _Tasks:
    """Tasks of one iteration in order; columns of shape (tasks,).

    Attributes:
        names: What ran.
        kinds: int64 TaskKind.
        dispatch_ns: int64, shape (tasks + 1,): when the host begins with each, and when it is done.
        start_ns: int64, from the start of the service.
        duration_ns: int64.
        payload_bytes: int64, of collectives, −1 of others.
    """

    names: list[str]
    kinds: Int64Array
    dispatch_ns: Int64Array
    start_ns: Int64Array
    duration_ns: Int64Array
    payload_bytes: Int64Array


@dataclass(frozen=True, slots=True)
class EngineLane:
    """The engine's thread in a recording.

    Attributes:
        track: Its track.
        first_iteration: Provisional event of the first iteration; the others follow.
    """

    track: int
    first_iteration: int


def add_device(
    builder: TraceBuilder, result: ServingResult, epoch_ns: int, profiled: Int64Array, engine: EngineLane
) -> None:
    """Adds the device's stream and its collectives, and who dispatched them.

    Args:
        builder: Receives them.
        result: The run.
        epoch_ns: Absolute time of the start of the service.
        profiled: int64, iterations whose operators are kept.
        engine: The engine's thread, which dispatches.
    """
    header = builder.add_track(
        Track(TrackKind.PROCESS, "Ascend Hardware", sort_key=14, device=0, process_id=_DEVICE_PID)
    )
    stream = builder.add_track(
        Track(
            TrackKind.DEVICE_STREAM,
            f"Stream {_STREAM}",
            parent=header,
            device=0,
            stream=_STREAM,
            process_id=_DEVICE_PID,
            thread_id=str(_STREAM),
        )
    )
    kernels = [_add_whole_passes(builder, result, epoch_ns, profiled, stream, engine)]
    group = ABSENT
    collectives: list[CollectiveTable] = []
    for iteration in profiled.tolist():  # as many as the scenario numbers
        tasks = _tasks(result, iteration)
        dispatched = _add_dispatch(builder, tasks, epoch_ns, engine.track)
        computing = np.flatnonzero(tasks.kinds != TaskKind.COLLECTIVE)
        kernels.append(_add_kernels(builder, tasks, computing, epoch_ns, iteration, stream))
        builder.add_flows(dispatched[computing], kernels[-1].event.astype(np.int64), _FLOW)
        exchanged = np.flatnonzero(tasks.kinds == TaskKind.COLLECTIVE)
        if len(exchanged):
            group = _group_track(builder) if group == ABSENT else group
            first = sum(len(table) for table in collectives)
            collectives.append(_add_collectives(builder, tasks, exchanged, epoch_ns, iteration, group, first))
            builder.add_flows(dispatched[exchanged], collectives[-1].event.astype(np.int64), _FLOW)
    builder.kernels = concatenate(kernels)
    if collectives:
        builder.collectives = concatenate(collectives)


def _add_whole_passes(
    builder: TraceBuilder,
    result: ServingResult,
    epoch_ns: int,
    profiled: Int64Array,
    stream: int,
    engine: EngineLane,
) -> KernelTable:
    """Adds one task per iteration without operators, launched by the iteration."""
    steps = result.run.iterations
    others = np.setdiff1d(np.arange(len(steps)), profiled)
    others = others[steps.device_ns[others] > 0]
    length_ns = steps.end_ns[others] - steps.start_ns[others]
    duration_ns = np.minimum(steps.device_ns[others], length_ns)
    word = builder.strings.intern(TASK_TYPES[TaskKind.MIX])
    name = builder.strings.intern(UNPROFILED)
    first = builder.add_events(
        start_ns=steps.start_ns[others] + epoch_ns, duration_ns=duration_ns, track=stream, name=name, category=word
    )
    count = len(others)
    builder.add_flows(engine.first_iteration + others, first + np.arange(count), _FLOW)
    return _kernel_table(first, np.full(count, name, np.int32), np.full(count, word, np.int32), ABSENT)


def _kernel_table(first: int, names: Int32Array, words: Int32Array, step: int) -> KernelTable:
    count = len(names)
    absent = np.full(count, ABSENT, dtype=np.int32)
    return KernelTable(
        event=(first + np.arange(count)).astype(np.int32),
        op_type=names,
        core_type=words,
        input_shapes=absent,
        input_types=absent,
        output_shapes=absent,
        output_types=absent,
        block_count=absent,
        step=np.full(count, step, dtype=np.int32),
    )


def _add_kernels(
    builder: TraceBuilder, tasks: _Tasks, chosen: Int64Array, epoch_ns: int, iteration: int, stream: int
) -> KernelTable:
    names = builder.strings.intern_all([tasks.names[at] for at in chosen.tolist()])
    words = builder.strings.intern_all([TASK_TYPES[TaskKind(kind)] for kind in tasks.kinds[chosen].tolist()])
    first = builder.add_events(
        start_ns=tasks.start_ns[chosen] + epoch_ns,
        duration_ns=tasks.duration_ns[chosen],
        track=stream,
        name=names,
        category=words,
    )
    return _kernel_table(first, names, words, iteration)


def _add_dispatch(builder: TraceBuilder, tasks: _Tasks, epoch_ns: int, engine: int) -> Int64Array:
    """Adds what the host does for the tasks of an iteration; returns the event that dispatched each, int64."""
    count = len(tasks.names)
    category = builder.strings.intern("cpu_op")
    starts = tasks.dispatch_ns[:-1]
    if count > 1 and starts[1] == tasks.dispatch_ns[-1]:
        launch = builder.add_events(
            start_ns=starts[:1] + epoch_ns,
            duration_ns=tasks.dispatch_ns[1:2] - starts[:1],
            track=engine,
            name=builder.strings.intern(_GRAPH_LAUNCH),
            category=category,
        )
        return np.full(count, launch, dtype=np.int64)
    first = builder.add_events(
        start_ns=starts + epoch_ns,
        duration_ns=np.diff(tasks.dispatch_ns),
        track=engine,
        name=builder.strings.intern_all(tasks.names),
        category=category,
    )
    return first + np.arange(count)


def _group_track(builder: TraceBuilder) -> int:
    header = builder.add_track(
        Track(TrackKind.PROCESS, "Communication", sort_key=16, device=0, process_id=_COMMUNICATION_PID)
    )
    return builder.add_track(
        Track(
            TrackKind.COMMUNICATION_GROUP,
            f"Group {_GROUP} Communication",
            parent=header,
            device=0,
            process_id=_COMMUNICATION_PID,
            thread_id="0",
            group=_GROUP,
        )
    )


def _add_collectives(
    builder: TraceBuilder,
    tasks: _Tasks,
    chosen: Int64Array,
    epoch_ns: int,
    iteration: int,
    track: int,
    first_number: int,
) -> CollectiveTable:
    numbered = [f"{tasks.names[at]}_000_{first_number + place}_1" for place, at in enumerate(chosen.tolist())]
    names = builder.strings.intern_all(numbered)
    start_ns = tasks.start_ns[chosen] + epoch_ns
    first = builder.add_events(start_ns=start_ns, duration_ns=tasks.duration_ns[chosen], track=track, name=names)
    count = len(chosen)
    unknown = np.full(count, ABSENT, dtype=np.int64)
    return CollectiveTable(
        event=(first + np.arange(count)).astype(np.int32),
        name=names,
        group=np.full(count, builder.strings.intern(_GROUP), dtype=np.int32),
        start_ns=start_ns,
        elapsed_ns=tasks.duration_ns[chosen],
        bytes=tasks.payload_bytes[chosen],
        vendor_transit_ns=unknown,
        vendor_wait_ns=unknown,
        vendor_synchronization_ns=unknown,
        vendor_idle_ns=unknown,
        step=np.full(count, iteration, dtype=np.int32),
    )


def _tasks(result: ServingResult, iteration: int) -> _Tasks:
    """Returns the operators of an iteration, one after another, each no earlier than the host has dispatched it.

    Their times are those of the cost model for exactly these tokens, stretched to the iteration's device time, which
    was looked up between grid points; attention, whose lengths are not kept, takes what all others leave.
    """
    steps, shard = result.run.iterations, result.shard
    computed = steps.prefill_tokens + steps.decode_sequences + steps.padded_tokens
    tokens, sequences = computed[[iteration]], np.maximum(steps.running[[iteration]], 1)
    device = result.scenario.device
    network = network_of(topology_of(device), result.scenario.devices_per_node)
    layers = shard.model.layers
    layer = layer_operators(shard, tokens)
    place = next(at for at, item in enumerate(layer) if item.name == _CACHE_WRITE) + 1
    first, head = embedding_operators(shard, tokens), head_operators(shard, sequences)
    first_ns, layer_ns, head_ns = (operator_times(part, device, network, shard) for part in (first, layer, head))
    whole_ns = float(steps.device_ns[iteration])
    left_ns = whole_ns - float(first_ns.sum() + layers * layer_ns.sum() + head_ns.sum())
    layer_ns = np.insert(layer_ns, place, max(left_ns, 0.0) / layers)
    duration = np.concatenate((first_ns, np.tile(layer_ns, layers), head_ns))
    dispatch_ns = _dispatch_ns(result, iteration, len(duration))
    start_ns, duration_ns = _placed(result, iteration, duration * (whole_ns / duration.sum()), dispatch_ns)
    attention = (ATTENTION, int(TaskKind.MIX), ABSENT)
    before, after = [_described(item) for item in layer[:place]], [_described(item) for item in layer[place:]]
    listed = [*map(_described, first), *([*before, attention, *after] * layers), *map(_described, head)]
    return _Tasks(
        names=[name for name, _, _ in listed],
        kinds=np.array([kind for _, kind, _ in listed], dtype=np.int64),
        dispatch_ns=dispatch_ns,
        start_ns=start_ns,
        duration_ns=duration_ns,
        payload_bytes=np.array([payload for _, _, payload in listed], dtype=np.int64),
    )


def _described(item: ForwardOperator) -> tuple[str, int, int]:
    payload = ABSENT if item.payload_bytes is None else int(item.payload_bytes[0])
    return item.name, int(item.kind), payload


def _dispatch_ns(result: ServingResult, iteration: int, count: int) -> Int64Array:
    """Returns when the host begins to dispatch each task of an iteration, and when it is done, ns, shape (count + 1,).

    A captured graph is launched once: all of its tasks are dispatched at the end of that.
    """
    steps, prices = result.run.iterations, result.prices
    graph = prices.graph_mode == 1 and steps.prefill_tokens[iteration] == 0
    if graph:
        moments = np.append(np.zeros(1), np.full(count, prices.graph_host_ns))
    else:
        moments = np.arange(count + 1) * (prices.eager_host_ns / count)
    dispatch_ns: Int64Array = np.rint(moments).astype(np.int64) + int(steps.start_ns[iteration])
    return dispatch_ns


def _placed(
    result: ServingResult, iteration: int, duration: Float64Array, dispatch_ns: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Returns starts and durations, ns: a task begins when it is dispatched and the one before it has ended.

    The price of an iteration is the longer of device and dispatch; tasks that would end later, because the host was
    late with the last of them, are drawn together to end with the iteration.
    """
    steps = result.run.iterations
    begin_ns, end_ns = int(steps.start_ns[iteration]), int(steps.end_ns[iteration])
    before = np.concatenate(([0.0], np.cumsum(duration)[:-1]))
    start = before + np.maximum.accumulate(dispatch_ns[1:] - begin_ns - before)
    if start[-1] + duration[-1] > end_ns - begin_ns:
        start *= (end_ns - begin_ns - duration[-1]) / max(start[-1], 1.0)
    start_ns = np.rint(start).astype(np.int64) + begin_ns
    limit_ns = np.append(start_ns[1:], end_ns)
    return start_ns, np.minimum(np.rint(duration).astype(np.int64), limit_ns - start_ns)
