"""What fusing a sequence would win, from the capture's own measurements.

Every occurrence takes ``busy + idle``: its kernels, and the time the whole device waits between them. Fused it takes
``t``, estimated three times (best, expected, worst):

* STREAM: traffic ÷ bandwidth. The bandwidth is this occurrence's own (its bytes ÷ its busy time), the best case takes
  the 90th percentile of the capture's streaming kernels of that size class (larger than L2 or not). The traffic is
  that of one pass over the inputs from outside plus the last output (best), further ``input_passes`` over the main one
  (expected), or everything but intermediates read once (worst). Where all intermediates may fit in L2 they never cost
  memory bandwidth, so the worst case saves only the fixed cost of the removed kernels. Without shapes: best, nothing is
  slower than the longest kernel; worst, only fixed costs vanish; expected, the middle.
* ATTENTION: the matrix products stay; the rest overlaps entirely (best), half, or only loses its fixed costs (worst).
* BATCH: only fixed costs vanish: all of them (best), half, none.
* EPILOGUE: the addition hides behind the matrix product (best); the intermediate is not read again (worst).
* REDUNDANT: repeats vanish (best, expected), or nothing does because the values differ (worst).

The fixed cost of a kernel is the capture's 5th percentile of durations. Vector instructions are executed fused or not:
where the capture has PMU columns, ``t`` is never below the share of the time the vector unit was working.

While the device waits for the host (``idle ≥ busy``), a shorter kernel only waits longer: the fused kernel costs at
least one launch interval, measured as the time between starts of tasks the device waited for (quartiles). Otherwise
the waits between the kernels vanish too, except in the worst case. Of a wait beyond Tukey's upper fence of all waits of
the capture (third quartile + 1.5 × interquartile range), or beyond the upper quartile of the host's time between
launches, only that much vanishes: the rest is a synchronisation, a compilation or warming up, not a launch. A saving is
never negative and never more than ``busy + idle``.
"""

from dataclasses import dataclass

import numpy as np

from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.fusion.kernel_words import MATRIX_WORDS
from engine.analyses.fusion.measures import Measures
from engine.analyses.fusion.patterns import Estimate
from engine.core.arrays import BoolArray, Float64Array, Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Occurrences as ranges of the sequence, with their sums. Columns of shape (occurrences,).

    Attributes:
        first: int64 index of the first kernel.
        end: int64 index after the last.
        busy_ns: int64.
        idle_ns: int64, the device's waits between the kernels.
        removable_ns: int64, the same with each wait cut to what a launch takes at most.
        longest_ns: int64.
        matrix_ns: int64, part of busy in matrix products.
        launches: int64.
        traffic_bytes: int64; −1 where a tenth of the time or more has no known traffic.
        main_bytes: int64, largest input of the first streaming kernel, −1 where unknown.
        outside_bytes: int64, inputs that no kernel of the range can have written: all of the first streaming kernel's,
            and of a later one what exceeds everything written before it; −1 where unknown.
        last_bytes: int64, outputs of the last streaming kernel, −1 where unknown.
        intermediate_bytes: int64, all outputs but the last's.
        largest_intermediate_bytes: int64.
        main_elements: int64.
    """

    first: Int64Array
    end: Int64Array
    busy_ns: Int64Array
    idle_ns: Int64Array
    removable_ns: Int64Array
    longest_ns: Int64Array
    matrix_ns: Int64Array
    launches: Int64Array
    traffic_bytes: Int64Array
    main_bytes: Int64Array
    outside_bytes: Int64Array
    last_bytes: Int64Array
    intermediate_bytes: Int64Array
    largest_intermediate_bytes: Int64Array
    main_elements: Int64Array

    def __len__(self) -> int:
        return len(self.first)


def ranges(
    sequence: KernelSequence, measures: Measures, first: Int64Array, end: Int64Array, *, with_matrix: bool = True
) -> Ranges:
    """Returns the sums over the non-empty ranges ``[first, end)`` of the sequence.

    Args:
        sequence: The kernels.
        measures: The capture's own measures.
        first: int64, shape (occurrences,).
        end: int64, shape (occurrences,).
        with_matrix: Whether matrix products inside a range belong to the occurrence.
    """
    lengths = end - first
    offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    member = np.arange(int(lengths.sum())) - np.repeat(offsets, lengths) + np.repeat(first, lengths)
    is_first = np.zeros(len(member), dtype=np.bool_)
    is_first[offsets] = True
    matrix = np.isin(sequence.word, [index for index, word in enumerate(sequence.words) if word in MATRIX_WORDS])
    left_out = matrix[member] & (not with_matrix)
    duration = np.where(left_out, 0, sequence.duration_ns[member])
    idle = np.where(is_first, 0, sequence.idle_before_ns[member])
    traffic = sequence.traffic_bytes[member]
    output = np.maximum(sequence.output_bytes[member], 0)
    busy = np.add.reduceat(duration, offsets)
    unknown = np.add.reduceat(np.where(traffic < 0, duration, 0), offsets)
    # The largest output of a chain that ends in a reduction is not its result: the last member's is.
    known = np.where(traffic >= 0, np.arange(len(member)), -1)
    last_known = np.maximum.reduceat(known, offsets)
    first_known = np.minimum.reduceat(np.where(known < 0, len(member), known), offsets)
    has_known = last_known >= 0
    last_output = np.where(has_known, output[np.maximum(last_known, 0)], -1)
    inner = output.copy()
    inner[last_known[has_known]] = 0
    first_known = np.minimum(first_known, len(member) - 1)
    main_input = sequence.main_input_bytes[member][first_known]
    read = np.where(traffic >= 0, np.maximum(sequence.input_bytes[member], 0), 0)
    return Ranges(
        first=first,
        end=end,
        busy_ns=busy,
        idle_ns=np.add.reduceat(idle, offsets),
        removable_ns=np.add.reduceat(np.minimum(idle, measures.longest_wait_ns), offsets),
        longest_ns=np.maximum.reduceat(duration, offsets),
        matrix_ns=np.add.reduceat(np.where(matrix[member], duration, 0), offsets),
        launches=lengths - np.add.reduceat(left_out.astype(np.int64), offsets),
        traffic_bytes=np.where(unknown * 10 >= busy, -1, np.add.reduceat(np.maximum(traffic, 0), offsets)),
        main_bytes=np.where(has_known, main_input, -1),
        outside_bytes=np.where(has_known, _outside_bytes(read, output, offsets), -1),
        last_bytes=last_output,
        intermediate_bytes=np.add.reduceat(inner, offsets),
        largest_intermediate_bytes=np.maximum.reduceat(inner, offsets),
        main_elements=np.maximum.reduceat(sequence.main_elements[member], offsets),
    )


def _outside_bytes(read: Int64Array, output: Int64Array, offsets: Int64Array) -> Int64Array:
    """Returns by range what its kernels read beyond everything that was written in it before them, int64."""
    written = np.cumsum(output) - output
    before = written - np.repeat(written[offsets], np.diff(offsets, append=len(output)))
    outside: Int64Array = np.add.reduceat(np.maximum(read - before, 0), offsets)
    return outside


@dataclass(frozen=True, slots=True, eq=False)
class Savings:
    """Savings of occurrences, float64 ns, shape (occurrences,); low ≤ expected ≤ high.

    Attributes:
        low_ns: The least.
        expected_ns: Expected.
        high_ns: The most.
        host_bound: bool: whether the device waits for the host there.
        best_fused_ns: Device time of the fused kernel at best.
        fused_ns: Expected.
        worst_fused_ns: At worst; never more than the kernels take now.
    """

    low_ns: Float64Array
    expected_ns: Float64Array
    high_ns: Float64Array
    host_bound: BoolArray
    best_fused_ns: Float64Array
    fused_ns: Float64Array
    worst_fused_ns: Float64Array


def savings(
    estimate: Estimate,
    passes: int,
    found: Ranges,
    measures: Measures,
    vector_share: float | None,
    can_fuse: BoolArray,
) -> Savings:
    """Returns what fusing each occurrence wins.

    Args:
        estimate: Kind of pattern.
        passes: How often a fused kernel reads its main input.
        found: The occurrences.
        measures: The capture's own measures.
        vector_share: Share of the kernels' time the vector unit worked; None where not recorded.
        can_fuse: bool per occurrence: whether the context allows the replacement (an addition after a matrix product).
    """
    busy = found.busy_ns.astype(np.float64)
    best, expected, worst = _fused_times(estimate, passes, found, measures, can_fuse)
    if vector_share is not None and estimate is Estimate.STREAM:
        best, expected, worst = (np.maximum(time, busy * vector_share) for time in (best, expected, worst))
    worst = np.minimum(worst, busy)
    expected = np.minimum(expected, worst)
    best = np.minimum(best, expected)
    idle = found.removable_ns.astype(np.float64)
    host_bound = (idle > 0) & (idle >= busy)
    quick, usual, slow = measures.launch_ns or (0.0, 0.0, 0.0)
    whole = busy + idle
    high = np.where(host_bound, whole - np.maximum(best, quick), whole - best)
    middle = np.where(host_bound, whole - np.maximum(expected, usual), whole - expected)
    # Worst case: a wait that is not the host's stays; where it is, one slow launch stays.
    low = np.where(host_bound, idle - slow, busy - worst)
    if estimate is Estimate.REDUNDANT:
        high, middle, low = np.where(can_fuse, high, 0.0), np.where(can_fuse, middle, 0.0), np.zeros(len(found))
    high = np.clip(high, 0.0, whole)
    middle = np.clip(middle, 0.0, high)
    return Savings(np.clip(low, 0.0, middle), middle, high, host_bound, best, expected, worst)


def _fused_times(
    estimate: Estimate, passes: int, found: Ranges, measures: Measures, can_fuse: BoolArray
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Returns the fused time of each occurrence, best, expected and worst."""
    busy = found.busy_ns.astype(np.float64)
    longest = found.longest_ns.astype(np.float64)
    fixed = (found.launches - 1) * measures.fixed_ns
    cheaper = np.maximum(longest, busy - fixed)
    if estimate is Estimate.STREAM:
        return _stream_times(passes, found, measures, cheaper)
    if estimate is Estimate.ATTENTION:
        matrix = found.matrix_ns.astype(np.float64)
        between = busy - matrix
        return matrix, matrix + between / 2, np.maximum(matrix, cheaper)
    if estimate is Estimate.BATCH:
        return cheaper, (cheaper + busy) / 2, busy
    if estimate is Estimate.REDUNDANT:
        gone = np.where(can_fuse, 0.0, busy)
        return gone, gone, busy
    # EPILOGUE. The narrow operand is written by the product and read again: that part of the traffic vanishes surely.
    main, last = found.main_bytes.astype(np.float64), found.last_bytes.astype(np.float64)
    traffic = found.traffic_bytes.astype(np.float64)
    kept = np.where(traffic > 0, np.minimum((main + last) / np.maximum(traffic, 1.0), 1.0), 1.0)
    worst = np.where(can_fuse, busy * kept, busy)
    best = np.where(can_fuse, 0.0, busy)
    return best, (best + worst) / 2, worst


def _stream_times(
    passes: int, found: Ranges, measures: Measures, cheaper: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    busy = found.busy_ns.astype(np.float64)
    floor = np.minimum(measures.fixed_ns, busy)
    known = (found.traffic_bytes > 0) & (found.main_bytes >= 0) & (found.last_bytes >= 0)
    traffic = np.maximum(found.traffic_bytes, 1).astype(np.float64)
    once = (found.outside_bytes + found.last_bytes).astype(np.float64)
    several = np.clip(once + (passes - 1) * found.main_bytes, once, traffic)
    all_reads = np.clip(traffic - 2 * found.intermediate_bytes, several, traffic)
    rate = np.where(
        found.traffic_bytes / np.maximum(found.launches, 1) > measures.surely_beyond_bytes,
        measures.bandwidth_beyond_cache or 0.0,
        measures.bandwidth_in_cache or 0.0,
    )
    own_time = busy * once / traffic
    best = np.where(rate > 0, np.minimum(once / np.maximum(rate, 1e-9), own_time), own_time)
    expected = busy * several / traffic
    may_fit = found.largest_intermediate_bytes <= measures.surely_beyond_bytes
    worst = np.where(may_fit, np.maximum(busy * all_reads / traffic, cheaper), busy * all_reads / traffic)
    longest = found.longest_ns.astype(np.float64)
    return (
        np.where(known, np.maximum(best, floor), longest),
        np.where(known, np.maximum(expected, floor), (longest + cheaper) / 2),
        np.where(known, np.maximum(worst, floor), cheaper),
    )
