"""Gradients that are changed before they are exchanged: fewer bytes on the wire for work on the vector cores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.core.number_format import format_duration_ns
from engine.devices.spec import DeviceSpec
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.answers import applies, no_effect, unknown
from engine.optimizations.communication.calls import Calls, Role, calls_of
from engine.optimizations.communication.exposure import Exposure, exposed_and_whole_ns, exposure
from engine.optimizations.communication.following import last_on_computing_stream, next_computing
from engine.optimizations.communication.payload import element_bytes, whole_bytes
from engine.optimizations.communication.pricing import fixed_ns, modelled_ns, plan_network
from engine.optimizations.communication.waiting import unsplit_reason, waiting_reason
from engine.optimizations.graph_edits import edges_of, with_names, with_tasks
from engine.optimizations.interface import Applicability, Bound, CapturePlan
from engine.runtime.cost import OperatorTable, concatenate, operator_durations
from engine.runtime.scheduler.interference import COMPUTING

ASSUMPTION = (
    "gradients are exchanged in fp32, as Megatron-LM and MindSpeed accumulate them, unless a kernel names another type"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What becomes of the gradients of one exchange.

    Attributes:
        names: Of the task before the exchange and of the one after it.
        before: Elements → operators that prepare them.
        after: Elements and members → operators that make gradients of what arrived, given whether ranks keep a part.
        payload_bytes: Elements and members → bytes of the tensor that is exchanged.
        kind: What is exchanged with; None for the recorded kind.
    """

    names: tuple[str, str]
    before: Callable[[int], Sequence[OperatorTable]]
    after: Callable[[int, int, bool], Sequence[OperatorTable]]
    payload_bytes: Callable[[int, int], int]
    kind: CollectiveKind | None = None


def compressible(graph: TaskGraph) -> Calls:
    """Returns the gradient exchanges of complete groups whose bytes are known."""
    gradients = calls_of(graph).of(Role.GRADIENTS)
    known = gradients.split & (graph.bytes[gradients.task] > 0) & (gradients.group >= 0)
    return gradients.select(known)


def check_compression(plan: CapturePlan, *, least_bytes: int) -> Applicability:
    """Returns whether fewer bytes per gradient would win anything on a capture.

    Args:
        plan: The capture.
        least_bytes: Gradients of no more bytes are as narrow as the optimization makes them.
    """
    graph = plan.graph
    seen = exposure(graph, calls_of(graph))
    gradients = seen.calls.role == Role.GRADIENTS
    if not gradients.any():
        return no_effect("the capture shows no exchange of gradients between replicas")
    if not np.any(gradients & seen.calls.split):
        return unknown(unsplit_reason(graph, seen, gradients))
    calls = compressible(graph)
    if len(calls) == 0:
        return unknown("the capture does not tell how many bytes the exchanges of gradients carry")
    if plan.device is None:
        return unknown("the capture names no known device, so the work on its vector cores cannot be priced")
    if int(element_bytes(graph, calls).max()) <= least_bytes:
        return no_effect(f"gradients are exchanged in {least_bytes} bytes each already")
    return _worth(graph, seen, calls)


def _worth(graph: TaskGraph, seen: Exposure, calls: Calls) -> Applicability:
    rows = np.isin(seen.calls.task, calls.task)
    exposed_ns, recorded_ns = exposed_and_whole_ns(graph, seen, rows)
    whole_ns = max(exposed_ns, recorded_ns)
    if exposed_ns < 0.01 * whole_ns or exposed_ns == 0:
        return no_effect(
            f"{format_duration_ns(whole_ns)} of gradient transfer per step runs beside computing: nothing is exposed"
        )
    return applies(
        f"{format_duration_ns(exposed_ns)} of {format_duration_ns(whole_ns)} of gradient transfer per step is exposed"
        + waiting_reason(graph, seen)
    )


def compressed(plan: CapturePlan, recipe: Recipe, bound: Bound) -> CapturePlan:
    """Returns the plan with every compressible exchange shortened, and its work before and after it.

    A transfer is scaled by what the model of the links gives for the new payload over what it gives for the old one.
    LOW pays the fixed cost of an exchange once more; HIGH takes the model's own time where that is shorter.
    """
    graph, calls = plan.graph, compressible(plan.graph)
    device, network = plan.device, plan_network(plan)
    if len(calls) == 0 or device is None or network is None:
        return plan
    whole = whole_bytes(plan, calls)
    elements = np.rint(whole / element_bytes(graph, calls)).astype(np.int64)
    payload = _per_call(elements, calls, lambda count, members: recipe.payload_bytes(count, members))
    kind = calls.kind if recipe.kind is None else np.full(len(calls), int(recipe.kind), dtype=np.uint8)
    old_ns = modelled_ns(graph, calls, network, whole)
    new_ns = modelled_ns(graph, replace(calls, kind=kind), network, payload)
    recorded_ns = graph.duration_ns[calls.task]
    scaled_ns = np.rint(recorded_ns * np.minimum(new_ns / np.maximum(old_ns, 1), 1.0)).astype(np.int64)
    if bound is Bound.LOW:
        scaled_ns = np.minimum(scaled_ns + fixed_ns(graph, calls, network), recorded_ns)
    elif bound is Bound.HIGH:
        scaled_ns = np.minimum(scaled_ns, new_ns)
    columns = {name: getattr(graph, name).copy() for name in ("duration_ns", "bytes")}
    columns["duration_ns"][calls.task], columns["bytes"][calls.task] = scaled_ns, payload
    shard = calls.kind == CollectiveKind.REDUCE_SCATTER
    before_ns = _per_call(elements, calls, lambda count, _: _time_ns(device, recipe.before(count)))
    after_ns = np.where(
        shard,
        _per_call(elements, calls, lambda count, members: _time_ns(device, recipe.after(count, members, True))),
        _per_call(elements, calls, lambda count, members: _time_ns(device, recipe.after(count, members, False))),
    )
    result = _with_work(replace(graph, **columns), graph, calls, recipe, (before_ns, after_ns))
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _per_call(elements: Int64Array, calls: Calls, price: Callable[[int, int], int]) -> Int64Array:
    """Returns a number per call; each distinct pair of elements and members is asked for once."""
    pairs, inverse = np.unique(np.stack((elements, calls.members)), axis=1, return_inverse=True)
    answers = [price(int(count), int(members)) for count, members in pairs.T]
    return np.array(answers, dtype=np.int64)[inverse.ravel()]


def _time_ns(device: DeviceSpec, tables: Sequence[OperatorTable]) -> int:
    return int(operator_durations(device, concatenate(tables)).sum()) if tables else 0


def _with_work(
    changed: TaskGraph, graph: TaskGraph, calls: Calls, recipe: Recipe, work_ns: tuple[Int64Array, Int64Array]
) -> TaskGraph:
    """Returns ``changed`` with a vector task before and one after each call, on the computing stream of its rank."""
    seen = exposure(graph, calls)
    named, (before_name, after_name) = with_names(changed, recipe.names)
    task, count, size = calls.task, len(calls), len(graph)
    last = last_on_computing_stream(seen, graph, task, seen.schedule.start_ns[task])
    following = next_computing(seen, graph, task, seen.schedule.end_ns[task])
    # A gap behind the last kernel may be held by the call itself, so the work before the call stands ahead of it.
    behind = np.where(last >= 0, last + 1, 0)
    after_call = last_on_computing_stream(seen, graph, task, seen.schedule.end_ns[task])
    ahead = np.where(after_call >= 0, after_call + 1, size)
    place = np.concatenate((behind, ahead))
    both = np.concatenate((task, task))
    new_before, new_after = size + np.arange(count), size + count + np.arange(count)
    before, after = edges_of(graph)
    enters = np.isin(after, task)
    row = np.searchsorted(task, after[enters])
    pairs = (
        (before, after),
        (before[enters], new_before[row]),
        (new_before, task),
        (task, new_after),
        (new_after[following >= 0], following[following >= 0]),
    )
    columns: dict[str, AnyArray | int] = {
        "name": np.repeat((before_name, after_name), count),
        "kind": int(TaskKind.VECTOR),
        "rank": graph.rank[both],
        "stream": _work_streams(graph, task),
        "duration_ns": np.concatenate(work_ns),
        "step": graph.step[both],
        "phase": graph.phase[both],
        "inferred": graph.inferred[both],
    }
    result, _ = with_tasks(
        named, columns, place, np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
    )
    return result


def _work_streams(graph: TaskGraph, task: Int32Array) -> Int32Array:
    """Returns the streams of the work before each call, then of the work after each, int32.

    A rank that lists no kernels has no computing stream with an order to keep: its work gets two streams of its own, so
    that what follows one call does not wait for what precedes the next.
    """
    listed = np.unique(graph.rank[np.isin(graph.kind, COMPUTING) & (graph.stream == Stream.COMPUTE)])
    has_kernels, further = np.isin(graph.rank[task], listed), int(graph.stream.max()) + 1
    streams = [np.where(has_kernels, int(Stream.COMPUTE), further + number) for number in range(2)]
    return np.concatenate(streams).astype(np.int32)
