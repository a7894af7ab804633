"""What transfers and the computing beside them cost on a capture's own device."""

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.devices.catalogue import topology_of
from engine.devices.spec import DeviceSpec
from engine.graph.collective_kinds import CollectiveKind
from engine.graph.task_graph import TaskGraph
from engine.optimizations.communication.calls import Calls
from engine.optimizations.interface import CapturePlan
from engine.runtime.collectives import Algorithm, Network, collective_durations, network_of
from engine.runtime.cost import load_parameters
from engine.runtime.scheduler import contention

CONTENTION = "transfer_contention_ratio"


def plan_network(plan: CapturePlan) -> Network | None:
    """Returns the links the capture's device usually has, None where the device is not known."""
    return network_of(topology_of(plan.device)) if plan.device is not None else None


def modelled_ns(
    graph: TaskGraph,
    calls: Calls,
    network: Network,
    size_bytes: AnyArray,
    algorithm: Algorithm | None = None,
) -> Int64Array:
    """Returns what the model of the links gives for collectives, int64, shape (calls,); 0 where a group is unknown.

    Args:
        graph: The tasks.
        calls: Collectives of it.
        network: The links.
        size_bytes: The whole tensor of each (see ``payload.whole_bytes``).
        algorithm: Forces one.
    """
    size = np.asarray(size_bytes, dtype=np.float64)
    price_ns = np.zeros(len(calls), dtype=np.int64)
    keys = calls.group.astype(np.int64) * len(CollectiveKind) + calls.kind
    # A loop over kinds and groups, of which a job has a handful.
    for key in np.unique(keys[calls.group >= 0]).tolist():
        rows = np.flatnonzero(keys == key)
        ranks = graph.groups[int(calls.group[rows[0]])].ranks
        kind = CollectiveKind(int(calls.kind[rows[0]]))
        price_ns[rows] = collective_durations(kind, size[rows], ranks, network, algorithm)
    return price_ns


def fixed_ns(graph: TaskGraph, calls: Calls, network: Network | None) -> Int64Array:
    """Returns the part of each collective's time that does not depend on its size, int64, shape (calls,).

    It is what the model gives for no bytes, but no more than the collective itself took; 0 where the links are not
    known.
    """
    if network is None or len(calls) == 0:
        return np.zeros(len(calls), dtype=np.int64)
    known_ns = modelled_ns(graph, calls, network, np.zeros(len(calls), dtype=np.int64))
    return np.minimum(known_ns, graph.duration_ns[calls.task])


def slowed_ns(graph: TaskGraph, task: Int32Array, hidden_ns: float, device: DeviceSpec | None) -> Int64Array:
    """Returns the durations of computing tasks beside which transfers now run, int64, shape (tasks chosen,).

    A task bound by memory takes longer by the stated contention (see ``scheduler.interference``), one whose bytes are
    not known is taken for such a task. Transfers that last for a part of the stretch slow that part of it.

    Args:
        graph: The tasks.
        task: The computing tasks of the stretch.
        hidden_ns: How long transfers run beside it.
        device: Whose memory it is; None where unknown.
    """
    duration_ns = graph.duration_ns[task]
    total_ns = float(duration_ns.sum())
    if total_ns == 0 or hidden_ns <= 0:
        return duration_ns
    ratio = contention_ratio()
    slowdown = np.full(len(task), ratio)
    if device is not None:
        known = graph.bytes[task] > 0
        by_memory = contention(duration_ns, graph.bytes[task], _stream_bytes_per_s(device), ratio)
        slowdown[known] = by_memory[known]
    share = min(1.0, hidden_ns / total_ns)
    return np.rint(duration_ns * (1 + slowdown * share)).astype(np.int64)


def _stream_bytes_per_s(device: DeviceSpec) -> float:
    return device.hbm_bytes_per_s * device.value("hbm_stream_ratio")


def contention_ratio() -> float:
    """Returns how much longer computing bound by memory takes beside a transfer (``devices/data/efficiency.json``)."""
    return load_parameters().shared_value(CONTENTION)
