"""communication.json and communication_matrix.json: collectives and what they moved over which link."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.core.errors import SourcePosition
from engine.core.number_text import digits_to_int
from engine.core.units import MAX_DURATION_NS, MAX_TIME_NS, NS_PER_MS, NS_PER_US
from engine.formats.ascend.layout import load_json
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.tables import RecordedTable

BYTES_PER_MB = 1_000_000
"""Communication files say MB and mean 10^6 bytes (memory files say MB and mean MiB)."""
TOTALS = "Total Op Info"
"""Sum over the operators beside it; not an operator."""

_SDMA_LINKS = ("HCCS", "PCIE", "SIO")
_TIMES = ("Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")
_MATRIX_TEXTS = ("Step", "Kind", "Operator", "Group", "Source", "Destination", "Transport Type", "Op Name")
_MATRIX_NUMBERS = ("Transit Size(MB)", "Transit Time(ms)", "Bandwidth(GB/s)")
_LIMIT = MAX_DURATION_NS / NS_PER_MS
"""ms and MB beyond it count as absent: they do not fit ns and bytes."""
_LIMITS = {"Start Timestamp(us)": MAX_TIME_NS / NS_PER_US}


@dataclass(frozen=True, slots=True, eq=False)
class CommunicationRows:
    """Operators of communication.json in file order. Columns of shape (n,), those of links of shape (m,).

    Attributes:
        name: int32 string id, without the group.
        group: int32 string id of the group hash or name, −1 where the key has none.
        step: int32, −1 for captures without steps.
        start_ns: int64, absolute, rounded to 0.25 µs by the file; −1 where absent.
        elapsed_ns: int64, −1 where absent.
        moved_bytes: int64: what this rank sent or received over SDMA and RDMA together, −1 where that is nothing:
            receives book no transit. An algorithm moves more or less than the tensor's size (ring all-reduce:
            2·(n−1)/n of it).
        transit_ns: int64, the profiler's split; −1 where absent. The same for the next three.
        wait_ns: See above.
        synchronization_ns: See above.
        idle_ns: See above.
        ordinal: int64, number of the operator among all files' entries, for reading it again.
        link_owner: int32, index of the operator.
        link: int32 string id.
        link_bytes: int64.
        link_transit_ns: int64.
        link_large_packet_ratio: float64, NaN where absent.
    """

    name: Int32Array
    group: Int32Array
    step: Int32Array
    start_ns: Int64Array
    elapsed_ns: Int64Array
    moved_bytes: Int64Array
    transit_ns: Int64Array
    wait_ns: Int64Array
    synchronization_ns: Int64Array
    idle_ns: Int64Array
    ordinal: Int64Array
    link_owner: Int32Array
    link: Int32Array
    link_bytes: Int64Array
    link_transit_ns: Int64Array
    link_large_packet_ratio: Float64Array

    def __len__(self) -> int:
        return len(self.name)


def read_communication(paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog) -> CommunicationRows | None:
    """Returns the operators of communication.json; None where no file could be read."""
    operators: list[list[int]] = []
    links: list[tuple[int, int, int, int, float]] = []
    readable = False
    ordinal = 0
    for path in paths:
        content = _load(path, log)
        readable = readable or content is not None
        # A Python loop: communication.json has one entry per collective and step, not per event.
        for step, key, operator in _operators(content):
            row = _operator_row(step, key, operator, strings)
            if row is None:
                log.add(
                    "unreadable-collective",
                    Severity.DATA_LOSS,
                    "entries of communication.json have no times and were left out",
                    position=SourcePosition(path),
                )
            else:
                links += [(len(operators), *link) for link in _links(operator, strings)]
                operators.append([*row, ordinal])
            ordinal += 1
    return _rows(operators, links) if readable else None


def read_operator(path: Path, number: int) -> Mapping[str, Any]:
    """Returns the operator with the given number in the file as nested values. Raises OSError or ValueError."""
    for index, (step, key, operator) in enumerate(_operators(load_json(path))):
        if index == number:
            return {"step": step, "operator": key, **operator}
    return {}


def read_matrix(paths: Sequence[Path], strings: StringInterner, log: DiagnosticLog) -> RecordedTable | None:
    """Returns communication_matrix.json as a table, one row per operator and link; None where there is none."""
    texts: list[list[str]] = []
    numbers: list[list[float]] = []
    readable = False
    for path in paths:
        content = _load(path, log)
        readable = readable or content is not None
        for step, kind, key, links in _entries(content):
            operator, _, group = key.rpartition("@") if "@" in key else (key, "", "")
            for pair, link in links.items():
                source, _, destination = pair.partition("-")
                value = link if isinstance(link, dict) else {}
                transport, name = str(value.get("Transport Type", "")), str(value.get("Op Name", ""))
                texts.append([step, kind, operator, group, source, destination, transport, name])
                numbers.append([_number(value, title, math.nan) for title in _MATRIX_NUMBERS])
    if not readable:
        return None
    return RecordedTable(
        name="communication_matrix",
        numbers={title: np.array([row[i] for row in numbers], dtype=float) for i, title in enumerate(_MATRIX_NUMBERS)},
        texts={
            title: np.array([strings.intern(row[i]) if row[i] else ABSENT for row in texts], dtype=np.int32)
            for i, title in enumerate(_MATRIX_TEXTS)
        },
        columns=(*_MATRIX_TEXTS, *_MATRIX_NUMBERS),
    )


def _load(path: Path, log: DiagnosticLog) -> Any:
    try:
        content = load_json(path)
    except (OSError, ValueError, RecursionError) as error:
        log.add("unreadable-file", Severity.ERROR, f"{path.name}: {error}", position=SourcePosition(path))
        return None
    if not isinstance(content, dict):
        log.add("unreadable-file", Severity.ERROR, f"{path.name} is no object", position=SourcePosition(path))
        return None
    return content


def _entries(content: Any) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yields (step, "p2p" or "collective", key, entry) of either file."""
    for step, kinds in (content or {}).items():
        for kind, entries in (kinds if isinstance(kinds, dict) else {}).items():
            for key, entry in (entries if isinstance(entries, dict) else {}).items():
                if isinstance(entry, dict):
                    yield step, kind, key, entry


def _operators(content: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for step, _, key, operator in _entries(content):
        if key != TOTALS:
            yield step, key, operator


def _operator_row(step: str, key: str, operator: Mapping[str, Any], strings: StringInterner) -> list[int] | None:
    times = operator.get("Communication Time Info")
    if not isinstance(times, dict):
        return None
    start_us = _number(times, "Start Timestamp(us)")
    elapsed_ms = _number(times, "Elapse Time(ms)")
    # Groups may hold "@" no more than operators may: the separator is the last one.
    name, _, group = key.rpartition("@") if "@" in key else (key, "", "")
    number = step.removeprefix("step")
    return [
        strings.intern(name),
        strings.intern(group) if group else ABSENT,
        digits_to_int(number, ABSENT),
        _exact_ns(start_us) if start_us > 0 else ABSENT,
        _ms_to_ns(elapsed_ms),
        _moved_bytes(operator),
        *(_ms_to_ns(_number(times, title)) for title in _TIMES),
    ]


def _moved_bytes(operator: Mapping[str, Any]) -> int:
    sizes_mb = [max(_number(_bandwidth(operator, link), "Transit Size(MB)", 0.0), 0.0) for link in ("SDMA", "RDMA")]
    moved_bytes = round(sum(sizes_mb) * BYTES_PER_MB)
    return moved_bytes if moved_bytes > 0 else ABSENT


def _links(operator: Mapping[str, Any], strings: StringInterner) -> Iterator[tuple[int, int, int, float]]:
    """Yields (link, bytes, transit ns, large packet ratio) of the links that moved something.

    SDMA is the sum of HCCS, PCIE and SIO: it is left out beside them so that links add up.
    """
    names = operator.get("Communication Bandwidth Info")
    used = []
    for link in names if isinstance(names, dict) else ():
        values = _bandwidth(operator, link)
        size_mb, transit_ms = _number(values, "Transit Size(MB)", 0.0), _number(values, "Transit Time(ms)", 0.0)
        if size_mb > 0 or transit_ms > 0:
            ratio = _number(values, "Large Packet Ratio", math.nan)
            used.append((link, round(size_mb * BYTES_PER_MB), round(transit_ms * NS_PER_MS), ratio))
    in_parts = any(link in _SDMA_LINKS for link, *_ in used)
    for link, size_bytes, transit_ns, ratio in used:
        if not (in_parts and link == "SDMA"):
            yield strings.intern(link), size_bytes, transit_ns, ratio


def _bandwidth(operator: Mapping[str, Any], link: str) -> Mapping[str, Any]:
    links = operator.get("Communication Bandwidth Info")
    values = links.get(link) if isinstance(links, dict) else None
    return values if isinstance(values, dict) else {}


def _number(values: Mapping[str, Any], key: str, default: float = -1.0) -> float:
    """Returns a number given as number or text; ``default`` for anything else and for what int64 cannot hold."""
    try:
        number = float(values[key])
    except (KeyError, TypeError, ValueError, OverflowError):
        return default
    return number if abs(number) < _LIMITS.get(key, _LIMIT) else default


def _exact_ns(us: float) -> int:
    """Returns the ns of epoch µs: multiplying the float would round once more, to 256 ns."""
    return round(Fraction(us) * NS_PER_US)


def _ms_to_ns(ms: float) -> int:
    return round(ms * NS_PER_MS) if ms >= 0 else ABSENT


def _rows(operators: list[list[int]], links: list[tuple[int, int, int, int, float]]) -> CommunicationRows:
    table = np.array(operators, dtype=np.int64).reshape(-1, 11).T
    link_table = np.array([link[:4] for link in links], dtype=np.int64).reshape(-1, 4).T
    return CommunicationRows(
        name=table[0].astype(np.int32),
        group=table[1].astype(np.int32),
        step=table[2].astype(np.int32),
        start_ns=table[3],
        elapsed_ns=table[4],
        moved_bytes=table[5],
        transit_ns=table[6],
        wait_ns=table[7],
        synchronization_ns=table[8],
        idle_ns=table[9],
        ordinal=table[10],
        link_owner=link_table[0].astype(np.int32),
        link=link_table[1].astype(np.int32),
        link_bytes=link_table[2],
        link_transit_ns=link_table[3],
        link_large_packet_ratio=np.array([link[4] for link in links], dtype=np.float64),
    )
