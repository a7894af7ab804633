"""Which occurrences of a candidate are worth a look, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.fusion import FusionCandidate, Occurrence
    from engine.trace import Trace

SHOWN_COUNT = 6


@dataclass(frozen=True, slots=True)
class LaneSlice:
    """One kernel of an occurrence.

    Attributes:
        event: Its row.
        name: Operator type where the capture has types, else the kernel's name.
        full_name: The kernel's name.
        offset_ns: From the start of the occurrence.
        duration_ns: Its length.
        shapes: ``"inputs → outputs"`` as the source writes them, "" where it does not.
    """

    event: int
    name: str
    full_name: str
    offset_ns: int
    duration_ns: int
    shapes: str


@dataclass(frozen=True, slots=True)
class OccurrenceLane:
    """One occurrence.

    Attributes:
        index: Into the candidate's occurrences.
        start_ns: Of the trace.
        length_ns: First start to last end.
        busy_ns: Sum of the durations.
        difference_ratio: length ÷ median length − 1 over all occurrences of the candidate.
        slices: In order.
    """

    index: int
    start_ns: int
    length_ns: int
    busy_ns: int
    difference_ratio: float
    slices: tuple[LaneSlice, ...]


def shown_occurrences(candidate: FusionCandidate, wanted: int | None = None) -> tuple[int, ...]:
    """Returns the indices of SHOWN_COUNT occurrences: the farthest from the median length first, a typical one last.

    Args:
        candidate: Whose occurrences.
        wanted: An occurrence that must be among them: it comes first.
    """
    lengths = [item.end_ns - item.start_ns for item in candidate.occurrences]
    if not lengths:
        return ()
    middle = median(lengths)
    order = sorted(range(len(lengths)), key=lambda index: (-abs(lengths[index] - middle), index))
    chosen = order if len(order) <= SHOWN_COUNT else [*order[: SHOWN_COUNT - 1], order[-1]]
    if wanted is not None and wanted < len(lengths) and wanted not in chosen:
        chosen = [wanted, *chosen[: SHOWN_COUNT - 2], order[-1]]
    return tuple(chosen)


def lanes_of(trace: Trace, candidate: FusionCandidate, wanted: int | None = None) -> tuple[OccurrenceLane, ...]:
    """Returns the occurrences worth a look with their kernels; a loop over the kernels of six occurrences."""
    lengths = [item.end_ns - item.start_ns for item in candidate.occurrences]
    middle = median(lengths) if lengths else 0
    return tuple(
        _lane(trace, index, candidate.occurrences[index], middle) for index in shown_occurrences(candidate, wanted)
    )


def _lane(trace: Trace, index: int, place: Occurrence, middle_ns: float) -> OccurrenceLane:
    length_ns = place.end_ns - place.start_ns
    return OccurrenceLane(
        index=index,
        start_ns=place.start_ns,
        length_ns=length_ns,
        busy_ns=place.busy_ns,
        difference_ratio=length_ns / middle_ns - 1 if middle_ns else 0.0,
        slices=tuple(_slice(trace, event, place.start_ns) for event in place.events),
    )


def _slice(trace: Trace, event: int, origin_ns: int) -> LaneSlice:
    kernel = int(trace.kernel_row_of_event[event])
    name, shapes = trace.name(event), ""
    full_name = name
    if kernel >= 0:
        kernels, text = trace.kernels, trace.strings.text
        name = text(int(kernels.op_type[kernel])) or name
        inputs, outputs = text(int(kernels.input_shapes[kernel])), text(int(kernels.output_shapes[kernel]))
        has_shapes = bool((inputs + outputs).strip(";"))  # scalars have none
        shapes = f"{inputs} → {outputs}" if has_shapes else ""
    return LaneSlice(
        event=event,
        name=name,
        full_name=full_name,
        offset_ns=int(trace.events.start_ns[event]) - origin_ns,
        duration_ns=int(trace.events.duration_ns[event]),
        shapes=shapes,
    )
