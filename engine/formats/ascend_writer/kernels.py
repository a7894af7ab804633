"""kernel_details.csv: one row per kernel and communication operator, in time order."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from engine.core.arrays import Int32Array, Int64Array
from engine.formats.ascend_writer.numbers import us_text
from engine.formats.ascend_writer.tables import write_rows
from engine.trace.trace import Origin, Trace

LEVEL_0 = (
    "Step Id",
    "Name",
    "Type",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Dim",
)
LEVEL_1 = (
    *("Step Id", "Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core"),
    *("Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Dim", "Mix Block Dim", "HF32 Eligible"),
    *("Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats"),
    "Context ID",
)
_NONE = "N/A"
_PLAIN = "ND"
_NO_MODEL = "4294967295"


def write_kernels(trace: Trace, path: Path) -> None:
    """Writes the table; without types and cores it is the short one of level 0. Raises OSError."""
    order = np.argsort(trace.events.start_ns[trace.kernels.event], kind="stable")
    if np.all(trace.kernels.op_type < 0) and np.all(trace.kernels.core_type < 0):
        write_rows(path, LEVEL_0, _short_rows(trace, order))
    else:
        write_rows(path, LEVEL_1, _full_rows(trace, order))


def _times(trace: Trace, order: Int64Array) -> tuple[list[str], list[str], list[str]]:
    """Returns start (with the TAB the profiler writes), duration and gap to the task before, as texts."""
    events = trace.kernels.event[order]
    start_ns, duration_ns = trace.events.start_ns[events], trace.events.duration_ns[events]
    gap_ns = np.maximum(start_ns - np.concatenate((start_ns[:1], (start_ns + duration_ns)[:-1])), 0)
    epoch_ns = trace.metadata.epoch_ns or 0
    starts = [f"{us_text(moment + epoch_ns)}\t" for moment in start_ns.tolist()]
    return starts, list(map(us_text, duration_ns.tolist())), list(map(us_text, gap_ns.tolist()))


def _numbers(column: Int32Array | Int64Array, none: str = "") -> list[str]:
    return [str(value) if value >= 0 else none for value in column.tolist()]


def _words(trace: Trace, column: Int32Array) -> list[str]:
    return [text or _NONE for text in trace.strings.texts(column)]


def _quoted(trace: Trace, column: Int32Array) -> list[str]:
    """Returns shapes with the quotes the profiler puts into the cell itself.

    Unknown ones stay empty: the vendor's tools take ``N/A`` in the row of a kernel for a shape and fail on it.
    """
    return [f'"{text}"' if text else "" for text in trace.strings.texts(column)]


def _formats(trace: Trace, types: Int32Array) -> list[str]:
    """Returns the layout of every input: plain in simulated runs, which have no other; not known of recorded ones."""
    if trace.origin is not Origin.SIMULATED:
        return [_NONE] * len(types)
    return [";".join([_PLAIN] * (text.count(";") + 1)) if text else _NONE for text in trace.strings.texts(types)]


def _short_rows(trace: Trace, order: Int64Array) -> Iterator[Sequence[str]]:
    kernels = trace.kernels
    names = trace.strings.texts(trace.events.name[kernels.event[order]])
    blocks = _numbers(kernels.block_count[order], _NONE)
    columns = (_numbers(kernels.step[order]), names, *_times(trace, order), blocks)
    for step, name, start, duration, gap, block in zip(*columns, strict=True):
        yield step, name, _NONE, _NONE, start, duration, gap, block


def _full_rows(trace: Trace, order: Int64Array) -> Iterator[Sequence[str]]:
    kernels, events = trace.kernels, trace.kernels.event[order]
    of_track = np.array([(track.device, track.stream) for track in trace.tracks], dtype=np.int64).reshape(-1, 2)
    device, stream = of_track[trace.events.track[events]].T
    names = trace.strings.texts(trace.events.name[events])
    # Only tasks of a stream have a task number; communication operators have neither.
    tasks = np.where(stream >= 0, events % 65536, -1)
    columns = (
        _numbers(kernels.step[order]),
        _numbers(device),
        _numbers(tasks, _NONE),
        _numbers(stream, _NONE),
        names,
        _words(trace, kernels.op_type[order]),
        _words(trace, kernels.core_type[order]),
        *_times(trace, order),
        _numbers(kernels.block_count[order], _NONE),
        _quoted(trace, kernels.input_shapes[order]),
        _words(trace, kernels.input_types[order]),
        _quoted(trace, kernels.output_shapes[order]),
        _words(trace, kernels.output_types[order]),
        _formats(trace, kernels.input_types[order]),
    )
    for step, card, task, queue, name, kind, core, start, duration, gap, block, *tensors in zip(*columns, strict=True):
        inputs, input_types, outputs, output_types, formats = tensors
        yield (
            *(
                step,
                card,
                _NO_MODEL,
                task,
                queue,
                name,
                kind,
                "dynamic",
                core,
                start,
                duration,
                gap,
                block,
                _NONE,
                "NO",
            ),
            *(inputs, input_types, formats, outputs, output_types, _NONE, _NONE),
        )
