"""From matches of the catalogue to candidates: counts, times, what bounds them, what fusing wins and why."""

import numpy as np

from engine.analyses.distinct_rows import distinct_rows
from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.fusion.kernel_words import HELPER, MATRIX_WORDS
from engine.analyses.fusion.matmul_communication import JoinedProducts
from engine.analyses.fusion.measures import Measures
from engine.analyses.fusion.pattern_matching import Matches
from engine.analyses.fusion.patterns import Estimate, FusionPattern
from engine.analyses.fusion.pipe_use import PipeUse, pipe_use
from engine.analyses.fusion.results import FusionCandidate, Occurrence, Range3
from engine.analyses.fusion.saving import Ranges, Savings, ranges, savings
from engine.core.arrays import BoolArray
from engine.core.number_format import format_bytes
from engine.trace.trace import Trace


def known_candidate(
    trace: Trace,
    sequence: KernelSequence,
    measures: Measures,
    pattern: FusionPattern,
    replacement: str,
    matches: Matches,
) -> FusionCandidate | None:
    """Returns the candidate of a catalogue pattern, None where its context rules every occurrence out."""
    whole = pattern.estimate is Estimate.ATTENTION
    found = ranges(sequence, measures, matches.first, matches.end, with_matrix=whole)
    allowed = context_allows(sequence, pattern, found)
    if pattern.estimate is Estimate.REDUNDANT and not np.any(allowed):
        return None
    members = members_of(sequence, found, with_matrix=whole)
    occurrences = occurrences_of(sequence, found, members)
    use = pipe_use(trace, [event for place in occurrences for event in place.events])
    won = savings(
        pattern.estimate, pattern.input_passes, found, measures, use.vector if use is not None else None, allowed
    )
    framework = bool(np.mean(sequence.from_framework[members]) > 0.5)
    return FusionCandidate(
        pattern=pattern.id,
        title=pattern.title,
        replacement=replacement,
        matched_by="framework" if framework else "kernels",
        count=_count(sequence, pattern, members, len(found)),
        total_ns=int(found.busy_ns.sum()),
        gap_ns=int(found.idle_ns.sum()),
        launches=int(found.launches.sum()),
        bound=bound_of(sequence, found, won, use, members),
        saving_ns=total_of(won),
        reason=_reason(pattern, replacement, found, measures, won, allowed),
        occurrences=occurrences,
    )


def context_allows(sequence: KernelSequence, pattern: FusionPattern, found: Ranges) -> BoolArray:
    """Returns, per occurrence, whether what stands around it allows the replacement."""
    if pattern.estimate is Estimate.EPILOGUE:
        matrix = np.isin(sequence.word, [index for index, word in enumerate(sequence.words) if word in MATRIX_WORDS])
        helper = np.isin(sequence.word, [index for index, word in enumerate(sequence.words) if word == HELPER])
        one, two = np.maximum(found.first - 1, 0), np.maximum(found.first - 2, 0)
        after: BoolArray = (found.first > 0) & (matrix[one] | (helper[one] & matrix[two]))
        return after
    if pattern.estimate is Estimate.REDUNDANT:
        repeats = np.ones(len(found), dtype=np.bool_)
        # Every step computes them once.
        repeats[distinct_rows((found.main_elements, sequence.step[found.first]))[0]] = False
        return repeats
    return np.ones(len(found), dtype=np.bool_)


def members_of(sequence: KernelSequence, found: Ranges, *, with_matrix: bool = True) -> BoolArray:
    """Returns whether each kernel belongs to one of the ranges, bool, shape (kernels,)."""
    edges = np.zeros(len(sequence) + 1, dtype=np.int64)
    np.add.at(edges, found.first, 1)
    np.add.at(edges, found.end, -1)
    member: BoolArray = np.cumsum(edges[:-1]) > 0
    if not with_matrix:
        matrix = [index for index, word in enumerate(sequence.words) if word in MATRIX_WORDS]
        member &= ~np.isin(sequence.word, matrix)
    return member


def _count(sequence: KernelSequence, pattern: FusionPattern, members: BoolArray, occurrences: int) -> int:
    for word in pattern.call_words:
        if word in sequence.words:
            calls = int(np.count_nonzero(sequence.word[members] == sequence.words.index(word)))
            if calls:
                return calls
    return occurrences


def occurrences_of(sequence: KernelSequence, found: Ranges, members: BoolArray) -> tuple[Occurrence, ...]:
    """Returns the places as records for people, by start; one Python step per occurrence."""
    kept = np.flatnonzero(members)
    events = sequence.event[kept].tolist()
    first, end = np.searchsorted(kept, found.first), np.searchsorted(kept, found.end)
    starts, ends = sequence.start_ns[found.first].tolist(), sequence.end_ns[found.end - 1].tolist()
    columns = zip(first.tolist(), end.tolist(), starts, ends, found.busy_ns.tolist(), strict=True)
    places = [
        Occurrence(tuple(events[low:high]), start_ns, end_ns, busy_ns)
        for low, high, start_ns, end_ns, busy_ns in columns
    ]
    return tuple(sorted(places, key=lambda place: place.start_ns))


def total_of(won: Savings) -> Range3:
    """Returns the sums over all occurrences."""
    return Range3(float(won.low_ns.sum()), float(won.expected_ns.sum()), float(won.high_ns.sum()))


def bound_of(sequence: KernelSequence, found: Ranges, won: Savings, use: PipeUse | None, members: BoolArray) -> str:
    """Returns what limits most of the time of the occurrences."""
    whole = found.busy_ns + found.idle_ns
    if int(whole[won.host_bound].sum()) * 2 > int(whole.sum()):
        return "host"
    if use is not None:
        return use.bound
    if int(found.matrix_ns.sum()) * 2 > int(found.busy_ns.sum()):
        return "cube"
    # Without PMU columns: kernels that stream large tensors wait for memory, everything else for the vector unit.
    streaming = (sequence.traffic_bytes >= 0) & members
    streaming_ns = int(sequence.duration_ns[streaming].sum())
    return "memory" if streaming_ns * 2 > int(found.busy_ns.sum()) or sequence.is_gpu else "vector"


def _reason(
    pattern: FusionPattern,
    replacement: str,
    found: Ranges,
    measures: Measures,
    won: Savings,
    allowed: BoolArray,
) -> str:
    """Returns how the saving was estimated and what limits it, in plain words."""
    parts = []
    hosts = int(np.count_nonzero(won.host_bound))
    if hosts:
        parts.append(
            f"{hosts} of {len(found)} stand where the device waits for the host: there only removed launches win"
        )
    if pattern.estimate is Estimate.STREAM:
        parts.append(traffic_reason(found, measures))
    elif pattern.estimate is Estimate.ATTENTION:
        parts.append("the matrix products stay; what stands between them overlaps with them")
    elif pattern.estimate is Estimate.BATCH:
        parts.append("every byte still moves; launches and the fixed cost of each kernel vanish")
    elif pattern.estimate is Estimate.EPILOGUE:
        parts.append(
            f"{int(np.count_nonzero(allowed))} of {len(found)} follow a matrix product and can become its tail"
        )
    else:
        parts.append(f"{int(np.count_nonzero(allowed))} of {len(found)} compute values of the same size again")
    if not replacement:
        parts.append(f"{pattern.npu_call} has no derivative, so it cannot replace the chain in training")
    if pattern.caveat:
        parts.append(pattern.caveat)
    return "; ".join(parts)


def traffic_reason(found: Ranges, measures: Measures) -> str:
    """Returns whether the intermediates of a chain cost memory traffic, in plain words."""
    largest = int(found.largest_intermediate_bytes.max())
    if not np.any(found.traffic_bytes > 0):
        return "not every shape is recorded: between removed fixed costs and the time of the longest kernel"
    cache = measures.cache
    where = f"L2 ({format_bytes(cache.bytes)}, {cache.kind})" if cache is not None else "any known L2"
    if largest > measures.surely_beyond_bytes:
        return f"intermediates of up to {format_bytes(largest)} do not fit in {where} and would not be moved"
    if cache is not None:
        return f"intermediates of up to {format_bytes(largest)} fit in {where}: little memory traffic may be saved"
    return f"intermediates of up to {format_bytes(largest)} may fit in the L2 of the unknown device"


def joined_candidate(joined: JoinedProducts) -> FusionCandidate:
    """Returns the candidate made of products and the collectives that follow them."""
    starts, ends = joined.start_ns.tolist(), joined.end_ns.tolist()
    pairs = zip(joined.product.tolist(), joined.collective.tolist(), strict=True)
    busy_ns = joined.product_ns + joined.collective_ns
    hidden_ns = float(np.minimum(joined.product_ns, joined.collective_ns).sum())
    return FusionCandidate(
        pattern="matmul_collective",
        title="Matrix product and its collective",
        replacement=joined.call,
        matched_by="kernels",
        count=len(joined.product),
        total_ns=int(busy_ns.sum()),
        gap_ns=0,
        launches=2 * len(joined.product),
        bound="cube",
        saving_ns=Range3(0.0, hidden_ns / 2, hidden_ns),
        reason="the shorter of the two can hide behind the other, but never its first and last piece",
        occurrences=tuple(
            Occurrence(pair, start, end, busy)
            for pair, start, end, busy in zip(pairs, starts, ends, busy_ns.tolist(), strict=True)
        ),
    )
