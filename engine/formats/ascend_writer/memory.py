"""operator_memory.csv and memory_record.csv."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.units import KIB, MIB
from engine.formats.ascend_writer.numbers import us_text
from engine.formats.ascend_writer.tables import write_rows
from engine.trace.tables import MemoryCurve
from engine.trace.trace import Trace

RECORD = (
    *("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)"),
    *("Stream Ptr", "Device Type"),
)
BLOCKS = (
    *("Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)", "Duration(us)"),
    *("Active Duration(us)", "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)"),
    *("Allocation Total Active(MB)", "Release Total Allocated(MB)", "Release Total Reserved(MB)"),
    *("Release Total Active(MB)", "Stream Ptr", "Device Type"),
)
OWN = ("Requested Size(KB)", "Address")
"""Columns the profiler does not write; without them a capture shows no address space."""


def write_curves(trace: Trace, path: Path) -> None:
    """Writes every recorded history of totals, one component after another. Raises OSError."""
    write_rows(path, RECORD, (row for curve in trace.memory.curves for row in _curve_rows(trace, curve)))


def _curve_rows(trace: Trace, curve: MemoryCurve) -> Iterator[Sequence[str]]:
    epoch_ns = trace.metadata.epoch_ns or 0
    device = _device(curve.device)
    columns = (curve.time_ns, curve.allocated_bytes, curve.reserved_bytes, curve.active_bytes)
    for time_ns, *totals in zip(*(column.tolist() for column in columns), strict=True):
        yield (curve.component, f"{us_text(time_ns + epoch_ns)}\t", *map(_mib, totals), "", device)


def write_blocks(trace: Trace, path: Path) -> None:
    """Writes every block with the totals at its allocation and release. Raises OSError."""
    blocks = trace.memory.allocations
    known = bool(np.any(blocks.address >= 0) or np.any(blocks.requested_bytes >= 0))
    write_rows(path, (*BLOCKS, *OWN) if known else BLOCKS, _block_rows(trace, known))


def _block_rows(trace: Trace, known: bool) -> Iterator[Sequence[str]]:
    blocks, epoch_ns = trace.memory.allocations, trace.metadata.epoch_ns or 0
    names = trace.strings.texts(blocks.operator)
    born, freed, released = blocks.allocated_at_ns, blocks.freed_at_ns, blocks.released_at_ns
    times = zip(born.tolist(), freed.tolist(), released.tolist(), strict=True)
    totals = zip(_totals(trace, born), _totals(trace, freed), strict=True)
    own = zip(blocks.requested_bytes.tolist(), blocks.address.tolist(), strict=True)
    rest = zip(blocks.stream.tolist(), blocks.device.tolist(), strict=True)
    # A Python loop over blocks: the file has one row for each.
    for name, size, (begin, end, free), (at_birth, at_death), (asked, address), (stream, device) in zip(
        names, blocks.size_bytes.tolist(), times, totals, own, rest, strict=True
    ):
        moments = [f"{us_text(moment + epoch_ns)}\t" if moment >= 0 else "" for moment in (begin, end, free)]
        spans = [f"{us_text(moment - begin)}\t" if min(moment, begin) >= 0 else "" for moment in (end, free)]
        extra = (_kib(asked), str(address) if address >= 0 else "") if known else ()
        place = (str(stream) if stream >= 0 else "", _device(device))
        yield (name, _kib(size), *moments, *spans, *at_birth, *at_death, *place, *extra)


def _totals(trace: Trace, moment_ns: Int64Array) -> list[tuple[str, str, str]]:
    """Returns allocated, reserved and active at each moment as MiB texts; empty before and without a history."""
    curve = next((item for item in trace.memory.curves if item.component == "PTA"), None)
    if curve is None or len(curve) == 0:
        return [("", "", "")] * len(moment_ns)
    place = np.searchsorted(curve.time_ns, moment_ns, side="right") - 1
    columns = (curve.allocated_bytes, curve.reserved_bytes, curve.active_bytes)
    texts = [[*map(_mib, column[np.maximum(place, 0)].tolist())] for column in columns]
    seen = ((place >= 0) & (moment_ns >= 0)).tolist()
    return [row if known else ("", "", "") for row, known in zip(zip(*texts, strict=True), seen, strict=True)]


def _device(number: int) -> str:
    return f"NPU:{number}" if number >= 0 else "CPU"


def _mib(size_bytes: int) -> str:
    return repr(size_bytes / MIB) if size_bytes >= 0 else ""


def _kib(size_bytes: int) -> str:
    return repr(size_bytes / KIB) if size_bytes >= 0 else ""
