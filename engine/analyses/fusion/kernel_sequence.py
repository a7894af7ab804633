"""The computing tasks of every stream in order, with what each does, moves and waits for: what fusion looks at."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.activity import Activity, activities
from engine.analyses.distinct_rows import distinct_rows
from engine.analyses.fusion.call_shapes import call_sizes
from engine.analyses.fusion.kernel_words import (
    FUSED,
    HELPER,
    OTHER,
    ascend_type_of,
    framework_call_of,
    word_of_ascend,
    word_of_call,
    word_of_gpu_kernel,
)
from engine.analyses.fusion.shapes import NO_TENSORS, Tensors, parse_tensors
from engine.analyses.launches import operator_events
from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.trace.intervals import covered_ns, union
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

GPU_CATEGORIES = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
ACCUMULATE = "accumulate"
"""FP32 += a narrower float of the same size: a gradient added to its main gradient."""
_NARROW_FLOATS = frozenset(("BF16", "BFLOAT16", "FLOAT16"))
_STREAMING = frozenset((
    "cast", "copy", "add", "sub", "mul", "div", "neg", "exp", "log", "sqrt", "rsqrt", "pow", "tanh", "erf",
    "sigmoid", "silu", "gelu", "cos", "sin", "sum", "mean", "max", "var", "softmax", "softmax_grad",
    "log_softmax", "log_softmax_grad", "mask", "dropout", "slice", "cat", "addcmul", "norm", "adamw",
    "accumulate", "rms_norm", "layer_norm", "group_norm",
))  # fmt: skip
"""Words of kernels that read each input once and write each output once. A gather or scatter touches only a part."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelSequence:
    """Computing tasks sorted by (track, start). Columns of shape (n,); −1 where unknown.

    Attributes:
        event: int32 event rows.
        track: int32.
        start_ns: int64.
        duration_ns: int64.
        idle_before_ns: int64, time since the previous task of the same stream in which the device did nothing at all.
        word: int32 index into ``words``.
        words: Vocabulary.
        type: int32 string id: operator type (Ascend) or framework operator (GPU), else the kernel's name.
        main_elements: int64, elements of the largest tensor.
        input_bytes: int64, all inputs of a streaming kernel.
        main_input_bytes: int64, the largest input.
        output_bytes: int64, all outputs.
        step: int32 profiler step of the capture's kernel table.
        from_framework: bool, whether the word comes from a framework call (aclnn, aten) rather than a kernel's name.
        is_gpu: Whether the capture names kernels as GPUs do.
    """

    event: Int32Array
    track: Int32Array
    start_ns: Int64Array
    duration_ns: Int64Array
    idle_before_ns: Int64Array
    word: Int32Array
    words: tuple[str, ...]
    type: Int32Array
    main_elements: Int64Array
    input_bytes: Int64Array
    main_input_bytes: Int64Array
    output_bytes: Int64Array
    step: Int32Array
    from_framework: BoolArray
    is_gpu: bool

    def __len__(self) -> int:
        return len(self.event)

    @property
    def end_ns(self) -> Int64Array:
        """int64, shape (n,)."""
        return self.start_ns + self.duration_ns

    @property
    def traffic_bytes(self) -> Int64Array:
        """int64, shape (n,): bytes read and written; −1 where unknown."""
        known = (self.input_bytes >= 0) & (self.output_bytes >= 0)
        return np.where(known, self.input_bytes + self.output_bytes, np.int64(ABSENT))


def kernel_sequence(trace: Trace) -> KernelSequence:
    """Returns the computing tasks of the trace's streams."""
    kinds = activities(trace)
    rows = np.flatnonzero(kinds == Activity.COMPUTING).astype(np.int32)
    track, start_ns = trace.events.track[rows], trace.events.start_ns[rows]
    duration_ns = trace.events.duration_ns[rows]
    categories = {trace.strings.text(text).casefold() for text in np.unique(trace.events.category[rows]).tolist()}
    is_gpu = bool(categories & GPU_CATEGORIES)
    described = _describe_gpu(trace, rows) if is_gpu else _describe_ascend(trace, rows)
    return KernelSequence(
        event=rows,
        track=track,
        start_ns=start_ns,
        duration_ns=duration_ns,
        idle_before_ns=_idle_before(trace, kinds, track, start_ns, start_ns + duration_ns),
        word=described.word,
        words=described.words,
        type=described.type,
        main_elements=described.sizes[:, 0],
        input_bytes=described.sizes[:, 1],
        main_input_bytes=described.sizes[:, 2],
        output_bytes=described.sizes[:, 3],
        step=_steps(trace, rows),
        from_framework=described.from_framework,
        is_gpu=is_gpu,
    )


def _steps(trace: Trace, rows: Int32Array) -> Int32Array:
    kernel = trace.kernel_row_of_event[rows]
    if len(trace.kernels) == 0:
        return np.full(len(rows), ABSENT, dtype=np.int32)
    return np.where(kernel >= 0, trace.kernels.step[kernel], np.int32(ABSENT))


def _idle_before(
    trace: Trace, kinds: UInt8Array, track: Int32Array, start_ns: Int64Array, end_ns: Int64Array
) -> Int64Array:
    """Returns how long the whole device did nothing between each task and its predecessor on the stream."""
    work = (kinds == Activity.COMPUTING) | (kinds == Activity.COMMUNICATION) | (kinds == Activity.MEMORY)
    busy = union(trace.events.start_ns[work], trace.events.end_ns[work])
    idle_ns = np.zeros(len(start_ns), dtype=np.int64)
    if len(start_ns) < 2:
        return idle_ns
    gap_start, gap_end = end_ns[:-1], np.maximum(start_ns[1:], end_ns[:-1])
    free_ns = gap_end - gap_start - covered_ns(busy, gap_start, gap_end)
    idle_ns[1:] = np.where(track[1:] == track[:-1], np.maximum(free_ns, 0), 0)
    return idle_ns


@dataclass(frozen=True, slots=True, eq=False)
class _Description:
    word: Int32Array
    words: tuple[str, ...]
    type: Int32Array
    sizes: Int64Array
    from_framework: BoolArray


def _describe_ascend(trace: Trace, rows: Int32Array) -> _Description:
    """Describes each distinct (type, name, shapes) once: a Python step per distinct kind of kernel, not per task."""
    table = trace.kernels
    kernel = trace.kernel_row_of_event[rows]
    names = trace.events.name[rows]
    columns = [names]
    for column in (table.op_type, table.input_shapes, table.input_types, table.output_shapes, table.output_types):
        texts = column[kernel] if len(column) else np.full(len(rows), ABSENT, dtype=np.int32)
        columns.append(np.where(kernel >= 0, texts, np.int32(ABSENT)))
    first, inverse = distinct_rows(columns)
    distinct = np.column_stack([column[first] for column in columns])
    vocabulary: dict[str, int] = {}
    words = np.empty(len(distinct), dtype=np.int32)
    sizes = np.empty((len(distinct), 4), dtype=np.int64)
    framework = np.empty(len(distinct), dtype=np.bool_)
    for index, ids in enumerate(distinct.tolist()):
        name, op_type, *tensor_texts = (trace.strings.text(text) for text in ids)
        inputs = parse_tensors(tensor_texts[0], tensor_texts[1])
        outputs = parse_tensors(tensor_texts[2], tensor_texts[3])
        word = word_of_ascend(op_type if op_type not in ("", "N/A") else ascend_type_of(name), name)
        if word == "add" and (_accumulates(inputs, outputs) or _adds_flat(*tensor_texts[:2])):
            word = ACCUMULATE
        words[index] = vocabulary.setdefault(word, len(vocabulary))
        sizes[index] = _sizes(word, inputs, outputs)
        framework[index] = bool(framework_call_of(name))
    types = np.where((columns[1] >= 0) & (columns[1] != trace.strings.id_of("N/A")), columns[1], names)
    return _Description(words[inverse], tuple(vocabulary), types, sizes[inverse], framework[inverse])


def _accumulates(inputs: Tensors | None, outputs: Tensors | None) -> bool:
    """Returns whether a narrower float is added to fp32; outputs that are not described have the wider type."""
    if inputs is None or len(inputs.types) < 2 or (outputs is not None and outputs.types[:1] != ("FLOAT",)):
        return False
    same_size = inputs.elements[0] == inputs.elements[1]
    return same_size and inputs.types[0] == "FLOAT" and inputs.types[1] in _NARROW_FLOATS


def _adds_flat(shapes: str, types: str) -> bool:
    """Returns whether two flat tensors of one size are added where no types are recorded: only gradients are flat."""
    first, separator, second = shapes.partition(";")
    return types in ("", "N/A") and bool(separator) and first == second and first.isdecimal()


def _sizes(word: str, inputs: Tensors | None, outputs: Tensors | None) -> tuple[int, int, int, int]:
    """Returns main elements, input bytes, largest input bytes and output bytes; −1 where unknown."""
    if inputs is None and outputs is None:
        return ABSENT, ABSENT, ABSENT, ABSENT
    read, written = inputs or NO_TENSORS, outputs or NO_TENSORS
    elements = max(read.largest_elements, written.largest_elements)
    if word not in _STREAMING:
        return elements, ABSENT, ABSENT, ABSENT
    read_bytes = read.total_bytes if inputs is not None else None
    written_bytes = written.total_bytes if outputs is not None else None
    largest = max((size for size in read.bytes if size is not None), default=ABSENT)
    return (
        elements,
        ABSENT if read_bytes is None else read_bytes,
        largest,
        ABSENT if written_bytes is None else written_bytes,
    )


def _describe_gpu(trace: Trace, rows: Int32Array) -> _Description:
    """Words from the framework operator that launched the kernel; from the kernel's name where no launch is known."""
    operator = operator_events(trace)[rows]
    operator_name = np.where(operator >= 0, trace.events.name[operator], np.int32(ABSENT))
    names = trace.events.name[rows]
    first, inverse = distinct_rows((operator_name, names))
    distinct = np.column_stack((operator_name[first], names[first]))
    vocabulary: dict[str, int] = {HELPER: 0}
    words = np.empty(len(distinct), dtype=np.int32)
    framework = np.empty(len(distinct), dtype=np.bool_)
    for index, (call_id, name_id) in enumerate(distinct.tolist()):
        call, name = trace.strings.text(call_id), trace.strings.text(name_id)
        word = word_of_call(call)
        framework[index] = word is not None
        if word is None:
            word = FUSED if "_foreach_" in call or "_fused_" in call else word_of_gpu_kernel(name)
        words[index] = vocabulary.setdefault(word or OTHER, len(vocabulary))
    word_of_task = words[inverse]
    # One framework call may launch several kernels (split reductions): the first stands for the call.
    continues = np.zeros(len(rows), dtype=np.bool_)
    track = trace.events.track[rows]
    continues[1:] = (operator[1:] == operator[:-1]) & (operator[1:] >= 0) & (track[1:] == track[:-1])
    word_of_task = np.where(continues, np.int32(0), word_of_task)
    spoken = np.array(tuple(vocabulary))[word_of_task].tolist()
    sizes = call_sizes(trace, operator, spoken, trace.events.duration_ns[rows], _STREAMING)
    types = np.where(continues | (operator_name < 0), names, operator_name)
    return _Description(word_of_task, tuple(vocabulary), types, sizes, framework[inverse])
