"""communication.json and communication_matrix.json."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.core.units import NS_PER_MS, NS_PER_US
from engine.graph.collective_kinds import POINT_TO_POINT, collective_kind
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace

BYTES_PER_MB = 1_000_000
"""These files say MB and mean 10^6 bytes."""
LINKS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_IN_SDMA = ("HCCS", "PCIE", "SIO")
TOTALS = "Total Op Info"
_DIGITS = 4
_VENDOR = ("vendor_transit_ns", "vendor_wait_ns", "vendor_synchronization_ns", "vendor_idle_ns")


def communication_document(trace: Trace) -> dict[str, Any] | None:
    """Returns communication.json; None where the trace has no split of collectives (level 0, other formats)."""
    table = trace.collectives
    rows = np.flatnonzero(table.vendor_transit_ns >= 0)
    if len(rows) == 0:
        return None
    names, groups = trace.strings.texts(table.name), trace.strings.texts(table.group)
    links = _links_of(trace)
    document: dict[str, Any] = {}
    # A Python loop: one turn per collective, not per event.
    for row in rows.tolist():
        step = f"step{table.step[row]}" if table.step[row] >= 0 else "step"
        kinds = document.setdefault(step, {"p2p": {}, "collective": {}})
        kind = "p2p" if collective_kind(names[row]) in POINT_TO_POINT else "collective"
        key = f"{names[row]}@{groups[row]}" if groups[row] else names[row]
        kinds[kind][key] = {
            "Communication Time Info": _time_info(trace, row),
            "Communication Bandwidth Info": _bandwidths(links.get(row, [])),
        }
    for kinds in document.values():
        for entries in kinds.values():
            if entries:
                entries[TOTALS] = _total(list(entries.values()))
    return document


def matrix_document(trace: Trace, table: RecordedTable) -> dict[str, Any]:
    """Returns communication_matrix.json from its table: one row per operator and pair of ranks."""
    texts = {title: trace.strings.texts(column) for title, column in table.texts.items()}
    document: dict[str, Any] = {}
    for row in range(len(table)):
        cells = {title: column[row] for title, column in texts.items()}
        numbers = {title: _plain(column[row]) for title, column in table.numbers.items()}
        key = f"{cells['Operator']}@{cells['Group']}" if cells["Group"] else cells["Operator"]
        kinds = document.setdefault(cells["Step"], {"p2p": {}, "collective": {}})
        kinds[cells["Kind"]].setdefault(key, {})[f"{cells['Source']}-{cells['Destination']}"] = {
            "Transport Type": cells["Transport Type"],
            **numbers,
            "Op Name": cells["Op Name"],
        }
    return document


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _links_of(trace: Trace) -> dict[int, list[tuple[str, int, int, float]]]:
    links: dict[int, list[tuple[str, int, int, float]]] = {}
    table = trace.links
    words = trace.strings.texts(table.link)
    columns = (table.collective, table.bytes, table.transit_ns, table.large_packet_ratio)
    for word, owner, size, transit_ns, large in zip(words, *(column.tolist() for column in columns), strict=True):
        links.setdefault(owner, []).append((word, size, transit_ns, large))
    return links


def _time_info(trace: Trace, row: int) -> dict[str, float]:
    table = trace.collectives
    transit, wait, synchronization, idle = (max(int(getattr(table, name)[row]), 0) for name in _VENDOR)
    start_ns = int(table.start_ns[row]) + (trace.metadata.epoch_ns or 0)
    return {
        "Start Timestamp(us)": start_ns / NS_PER_US,
        "Elapse Time(ms)": int(table.elapsed_ns[row]) / NS_PER_MS,
        "Transit Time(ms)": transit / NS_PER_MS,
        "Wait Time(ms)": wait / NS_PER_MS,
        "Synchronization Time(ms)": synchronization / NS_PER_MS,
        "Idle Time(ms)": idle / NS_PER_MS,
        "Wait Time Ratio": _ratio(wait, wait + transit),
        "Synchronization Time Ratio": _ratio(synchronization, synchronization + transit),
    }


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, _DIGITS) if whole else 0


def _bandwidths(links: Sequence[tuple[str, int, int, float]]) -> dict[str, Any]:
    info = {name: _bandwidth(0, 0, 0.0) for name in LINKS}
    sdma_bytes = sdma_ns = 0
    for word, size, transit_ns, large in links:
        info[word] = _bandwidth(size, transit_ns, large)
        if word in _IN_SDMA:
            sdma_bytes, sdma_ns = sdma_bytes + size, sdma_ns + transit_ns
    if sdma_bytes or sdma_ns:
        info["SDMA"] = _bandwidth(sdma_bytes, sdma_ns, 0.0) | {"Size Distribution": {}}
    return info


def _bandwidth(size_bytes: int, transit_ns: int, large_ratio: float) -> dict[str, Any]:
    size_mb, transit_ms = size_bytes / BYTES_PER_MB, transit_ns / NS_PER_MS
    return {
        "Transit Size(MB)": size_mb,
        "Transit Time(ms)": transit_ms,
        "Bandwidth(GB/s)": _ratio(size_mb, transit_ms),
        "Large Packet Ratio": large_ratio if large_ratio == large_ratio else 0,
        "Size Distribution": {str(size_mb): [1, transit_ms]} if size_bytes else {},
    }


def _total(operators: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the sum over operators: no start, and per link only time, size and the distribution."""
    names = ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")
    times = {name: sum(item["Communication Time Info"][name] for item in operators) for name in names}
    transit, wait = times["Transit Time(ms)"], times["Wait Time(ms)"]
    times["Wait Time Ratio"] = _ratio(wait, wait + transit)
    synchronization = times["Synchronization Time(ms)"]
    times["Synchronization Time Ratio"] = _ratio(synchronization, synchronization + transit)
    links: dict[str, Any] = {}
    for link in LINKS:
        parts = [item["Communication Bandwidth Info"][link] for item in operators]
        sizes: dict[str, list[float]] = {}
        for part in parts:
            for size, (count, time_ms) in part["Size Distribution"].items():
                known = sizes.setdefault(size, [0, 0.0])
                known[0] += count
                known[1] += time_ms
        links[link] = {
            "Transit Time(ms)": sum(part["Transit Time(ms)"] for part in parts),
            "Transit Size(MB)": sum(part["Transit Size(MB)"] for part in parts),
            "Size Distribution": sizes,
        }
    return {"Communication Time Info": times, "Communication Bandwidth Info": links}
