"""Device streams written as lists of kernels with their shapes, for analyses that look at what kernels do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.trace import Origin, Source, Trace, TraceBuilder, TraceMetadata, Track, TrackKind
from engine.trace.tables import KernelTable
from engine.trace.trace import ArgumentDecoder

US = 1_000


@dataclass(frozen=True)
class Kernel:
    """One kernel on the stream; ``gap_us`` is how long the stream waited before it."""

    type: str
    duration_us: float = 10.0
    gap_us: float = 0.0
    inputs: str = "N/A"
    input_types: str = "N/A"
    outputs: str = "N/A"
    output_types: str = "N/A"
    name: str = ""
    step: int = -1


def elementwise(kind: str, shape: str, types: str, result: str, **times: float) -> Kernel:
    """Returns a kernel whose output has the shape of its first input; ``types`` has one entry per input."""
    count = types.count(";") + 1
    return Kernel(
        kind, inputs=";".join([shape] * count), input_types=types, outputs=shape, output_types=result, **times
    )


def kernel_trace(
    kernels: Sequence[Kernel],
    *,
    metadata: TraceMetadata | None = None,
    columns: Mapping[str, str] | None = None,
) -> Trace:
    """Returns the trace of one Ascend stream; ``columns`` are the PMU cells every kernel shows as its arguments."""
    builder = TraceBuilder()
    track = builder.add_track(Track(TrackKind.DEVICE_STREAM, "Stream 2", stream=2, device=0))
    text = builder.strings.intern
    now, starts = 0.0, []
    for kernel in kernels:
        now += kernel.gap_us
        starts.append(round(now * US))
        now += kernel.duration_us
    count = len(kernels)
    builder.add_events(
        start_ns=np.array(starts, dtype=np.int64),
        duration_ns=np.array([round(kernel.duration_us * US) for kernel in kernels], dtype=np.int64),
        track=track,
        name=np.array(
            [text(kernel.name or f"aclnn{kernel.type}_{kernel.type}AiCore_{kernel.type}") for kernel in kernels]
        ),
        category=text("AI_VECTOR_CORE"),
        args_offset=np.arange(count, dtype=np.int64),
    )

    def ids(values: list[str]) -> Any:
        return np.array([text(value) for value in values], dtype=np.int32)

    nothing = np.full(count, -1, dtype=np.int32)
    builder.kernels = KernelTable(
        event=np.arange(count, dtype=np.int32),
        op_type=ids([kernel.type for kernel in kernels]),
        core_type=ids(["AI_VECTOR_CORE"] * count),
        input_shapes=ids([kernel.inputs for kernel in kernels]),
        input_types=ids([kernel.input_types for kernel in kernels]),
        output_shapes=ids([kernel.outputs for kernel in kernels]),
        output_types=ids([kernel.output_types for kernel in kernels]),
        block_count=nothing,
        step=np.array([kernel.step for kernel in kernels], dtype=np.int32),
    )
    decoder: ArgumentDecoder | None = None if columns is None else (lambda _offset: columns)
    return builder.build(
        origin=Origin.MEASURED,
        source=Source("list", "kernels"),
        metadata=metadata or TraceMetadata(),
        clock_is_unix=False,
        argument_decoder=decoder,
    )
