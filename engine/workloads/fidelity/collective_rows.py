"""Collectives of the validation tables beside what the runtime says of them.

The constants of NVLink and of the tables' own networks were fitted on these rows (``measured.json`` says which), so
their scores say how well the formulas can follow a machine; ascend_micro_comm was not fitted, except for one rate of
its six, and no row of the A800 was.
"""

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.core.arrays import Float64Array
from engine.core.errors import SourcePosition, TraceReadError
from engine.devices.catalogue import load_topology
from engine.graph.collective_kinds import CollectiveKind, collective_kind
from engine.runtime.collectives.durations import collective_durations
from engine.runtime.collectives.network import Network, measured_system, network_of
from engine.workloads.fidelity.collective_fit import MeasuredGroup

LUT_DIRECTORY = "nccl_lut"
VIDUR_FILE = "comm_vidur_a100_h100.csv"
MICRO_FILE = "ascend_micro_comm.csv"
LARGE_BYTES = 1e9
"""What the micro-benchmarks' word "large" is taken for: rates no longer depend on the size there."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCollectives:
    """A table: predictions beside measurements. float64 columns, shape (n,), ns.

    Attributes:
        name: Of the table.
        parts: What each row is of: machine, operation and number of ranks.
        predicted_ns: What the runtime says.
        measured_ns: What was measured.
        data_sheet_ns: The naive answer: the bytes every member sends over the data sheet's rate, nothing else.
    """

    name: str
    parts: tuple[str, ...]
    predicted_ns: Float64Array
    measured_ns: Float64Array
    data_sheet_ns: Float64Array


Part = tuple[str, Float64Array, Float64Array, Float64Array]
"""Name of a part; predicted, measured and data-sheet times of its rows."""


def read_lut(directory: Path) -> MeasuredCollectives:
    """Returns the look-up table of NCCL all-reduces. Raises TraceReadError."""
    parts = []
    for path in sorted((directory / LUT_DIRECTORY).glob("*_allreduce_gpu*.csv")):
        system, _, count = path.stem.partition("_allreduce_gpu")
        rows = [row for row in _lines(path)[1:] if len(row) > 3]
        size = np.array([float(row[0]) for row in rows])
        measured = np.array([float(row[3]) for row in rows])
        network = measured_system(system)
        parts.append(_part(system, CollectiveKind.ALL_REDUCE, size, measured, range(int(count)), network))
    if not parts:
        raise TraceReadError("no look-up table of collectives", SourcePosition(directory / LUT_DIRECTORY))
    return _joined("nccl_lut", parts)


def vidur_groups(directory: Path) -> list[MeasuredGroup]:
    """Returns the rows of vidur's profile by system, operation and group. Raises TraceReadError."""
    groups: defaultdict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    keys = ("system", "collective", "workers", "devices_per_node")
    for row in _rows(directory / VIDUR_FILE):
        groups[tuple(row[key] for key in keys)].append((float(row["bytes"]), float(row["median_ms"]) * 1e6))
    found = []
    for (system, collective, workers, per_node), rows in groups.items():
        node, used = measured_system(system).devices_per_node, int(per_node)
        ranks = [node * (worker // used) + worker % used for worker in range(int(workers))]
        size, measured = np.array(rows).T
        found.append(MeasuredGroup(system, collective_kind(collective), ranks, size, measured))
    return found


def read_vidur(directory: Path, predicted: Sequence[Float64Array] | None = None) -> MeasuredCollectives:
    """Returns vidur's profile of NCCL, with predictions of one's own per group in place of the shipped constants'.

    Raises:
        TraceReadError: The table cannot be read.
    """
    parts = []
    for index, group in enumerate(vidur_groups(directory)):
        network = measured_system(group.system)
        name, ours, measured, data_sheet = _part(
            group.system, group.kind, group.size_bytes, group.measured_ns, group.ranks, network
        )
        parts.append((name, ours if predicted is None else predicted[index], measured, data_sheet))
    return _joined("comm_vidur", parts)


def read_micro(directory: Path) -> MeasuredCollectives:
    """Returns the micro-benchmarks of large collectives. Raises TraceReadError."""
    networks = {"910B": network_of(load_topology("a2")), "A800": measured_system("a800")}
    parts = []
    for row in _rows(directory / MICRO_FILE):
        size = np.array([LARGE_BYTES])
        measured = size / float(row["algbw_GBps"])
        kind = collective_kind(row["collective"])
        parts.append(_part(row["device"], kind, size, measured, range(int(row["ranks"])), networks[row["device"]]))
    return _joined("ascend_micro_comm", parts)


def _part(
    system: str,
    kind: CollectiveKind,
    size: Float64Array,
    measured: Float64Array,
    ranks: Sequence[int],
    network: Network,
) -> Part:
    predicted = collective_durations(kind, size, ranks, network).astype(np.float64)
    link, _ = network.link_between(ranks)
    count, servers = len(ranks), len(network.by_node(ranks))
    share = {CollectiveKind.ALL_REDUCE: 2 * (count - 1) / count, CollectiveKind.ALL_GATHER: (count - 1) / count}
    rate_bytes_per_s = link.group_bytes_per_s(count)
    name = f"{system} {kind.name.lower().replace('_', '-')} {count} ranks"
    name += f" on {servers} servers" if servers > 1 else ""
    return name, predicted, measured, size * share.get(kind, 1.0) / rate_bytes_per_s * 1e9


def _joined(name: str, parts: Sequence[Part]) -> MeasuredCollectives:
    names = tuple(title for title, column, *_ in parts for _ in range(len(column)))
    _, *columns = zip(*parts, strict=True)
    predicted, measured, data_sheet = (np.concatenate(column) for column in columns)
    return MeasuredCollectives(name, names, predicted, measured, data_sheet)


def _lines(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TraceReadError(f"not a validation table: {error}", SourcePosition(path)) from error


def _rows(path: Path) -> list[dict[str, str]]:
    titles, *rows = _lines(path)
    return [dict(zip(titles, row, strict=False)) for row in rows]
