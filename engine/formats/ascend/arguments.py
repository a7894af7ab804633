"""Reading the arguments of one event again: one int64 that points into several files.

``args_offset`` of an Ascend text capture holds two numbers, each 0 where there is none:

    bits 0–37   1 + position in the JSON files, laid end to end in the order of the capture: a byte of trace_view.json,
                or the number of an operator in communication.json
    bits 38–62  1 + row of the kernel table, counted over all its slices

so a kernel shows what the trace says of it and every column of its table row, metrics included.
"""

import contextlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Int64Array
from engine.core.errors import TraceReadError
from engine.formats.ascend.communication import read_operator
from engine.formats.ascend.layout import COMMUNICATION, KERNEL_DETAILS, TRACE_VIEW
from engine.formats.events.trace_events import decode_event
from engine.formats.tables.csv_rows import read_row, row_offsets
from engine.trace.strings import ABSENT

POSITION_BITS = 38
MAX_ROWS = 1 << 25
_POSITION_MASK = (1 << POSITION_BITS) - 1


def argument_keys(position: Int64Array | int = ABSENT, row: Int64Array | int = ABSENT) -> Int64Array:
    """Returns ``args_offset`` for positions and kernel rows (−1 for none); rows beyond MAX_ROWS are not addressed."""
    rows = np.asarray(row, dtype=np.int64)
    rows = np.where(rows < MAX_ROWS - 1, rows, ABSENT)
    keys: Int64Array = ((rows + 1) << POSITION_BITS) | (np.asarray(position, dtype=np.int64) + 1)
    return np.where(keys == 0, ABSENT, keys)


def first_positions(paths: Sequence[Path]) -> list[int]:
    """Returns the position where each JSON file starts when they are laid end to end."""
    sizes = [path.stat().st_size for path in paths]
    return [sum(sizes[:index]) for index in range(len(sizes))]


class AscendArguments:
    """Decodes ``args_offset`` of one capture; files are opened only when something is asked.

    Args:
        files: (role, path) of every file that was read, in the order of the capture.
    """

    def __init__(self, files: Sequence[tuple[str, Path]]) -> None:
        self._json = json_files(files)
        self._kernels = [path for role, path in files if role == KERNEL_DETAILS]

    def __call__(self, args_offset: int) -> Mapping[str, Any]:
        """Returns the event's arguments; empty where the files no longer hold them."""
        position, row = (args_offset & _POSITION_MASK) - 1, (args_offset >> POSITION_BITS) - 1
        arguments: dict[str, Any] = {}
        # Files that were moved or changed since give what they still hold.
        with contextlib.suppress(OSError, ValueError, TraceReadError):
            if position >= 0:
                arguments.update(self._json_arguments(position))
            if row >= 0:
                arguments.update(self._row(row))
        return arguments

    def _json_arguments(self, position: int) -> Mapping[str, Any]:
        starts = first_positions([path for _, path in self._json])
        index = int(np.searchsorted(starts, position, side="right")) - 1
        role, path = self._json[index]
        if role == COMMUNICATION:
            return read_operator(path, position - starts[index])
        arguments = decode_event(path, position - starts[index]).get("args")
        return arguments if isinstance(arguments, dict) else {}

    @cached_property
    def _row_starts(self) -> list[Int64Array]:
        return [row_offsets(path) for path in self._kernels]

    def _row(self, row: int) -> Mapping[str, str]:
        for path, starts in zip(self._kernels, self._row_starts, strict=True):
            if row < len(starts):
                return read_row(path, int(starts[row]))
            row -= len(starts)
        return {}


def json_files(files: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Returns the JSON files whose positions are laid end to end: the trace first, then communication.json."""
    return [item for role in (TRACE_VIEW, COMMUNICATION) for item in files if item[0] == role]
