"""Where chosen patterns stand and how long one kernel in their place would take: what a rewriting of the run needs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.fusion.cache_sizes import cache_size
from engine.analyses.fusion.kernel_sequence import KernelSequence, kernel_sequence
from engine.analyses.fusion.kernel_words import HELPER
from engine.analyses.fusion.known import context_allows, members_of
from engine.analyses.fusion.measures import Measures, dispatch_ns, measure
from engine.analyses.fusion.pattern_matching import Matches, PatternMatcher
from engine.analyses.fusion.patterns import PATTERNS, Estimate, FusionPattern
from engine.analyses.fusion.pipe_use import pipe_use
from engine.analyses.fusion.saving import ranges, savings
from engine.analyses.modules.kernel_phases import is_training
from engine.core.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.trace.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class PatternOccurrences:
    """The places of one pattern; columns of shape (occurrences,) unless said otherwise.

    Attributes:
        pattern: What was looked for.
        offsets: int64, shape (occurrences + 1,): where each place starts in ``events``.
        events: int32 event rows of the kernels, in order of their streams.
        words: What each kernel does, one of ``kernel_words`` per entry of ``events``.
        busy_ns: int64, what they take now.
        best_ns: float64, what one kernel would take at best.
        expected_ns: float64.
        worst_ns: float64, at most ``busy_ns``.
        bytes: float64, read and written once by one kernel; 0 where shapes are missing.
        is_usable: False where the call that replaces them has no derivative and the run is training.
    """

    pattern: FusionPattern
    offsets: Int64Array
    events: Int32Array
    words: tuple[str, ...]
    busy_ns: Int64Array
    best_ns: Float64Array
    expected_ns: Float64Array
    worst_ns: Float64Array
    bytes: Float64Array
    is_usable: bool

    def __len__(self) -> int:
        return len(self.busy_ns)

    def select(self, chosen: BoolArray) -> "PatternOccurrences":
        """Returns the chosen places; ``chosen`` is bool, shape (occurrences,)."""
        lengths = np.diff(self.offsets)
        members = np.repeat(chosen, lengths)
        return PatternOccurrences(
            pattern=self.pattern,
            offsets=np.concatenate(([0], np.cumsum(lengths[chosen]))).astype(np.int64),
            events=self.events[members],
            words=tuple(word for word, kept in zip(self.words, members.tolist(), strict=True) if kept),
            busy_ns=self.busy_ns[chosen],
            best_ns=self.best_ns[chosen],
            expected_ns=self.expected_ns[chosen],
            worst_ns=self.worst_ns[chosen],
            bytes=self.bytes[chosen],
            is_usable=self.is_usable,
        )


@dataclass(frozen=True, slots=True, eq=False)
class PreparedKernels:
    """The kernels of a run, described and measured once for many questions.

    Attributes:
        trace: The run.
        sequence: Its kernels.
        measures: The capture's own measures.
        is_training: Whether it has a backward pass.
    """

    trace: Trace
    sequence: KernelSequence
    measures: Measures
    is_training: bool


def prepared(trace: Trace) -> PreparedKernels:
    """Returns the kernels of a run with what questions about fusions need."""
    sequence = kernel_sequence(trace)
    training = is_training(trace.strings.text(text) for text in np.unique(sequence.type).tolist())
    measures = measure(sequence, cache_size(trace.metadata), dispatch_ns(trace))
    return PreparedKernels(trace, sequence, measures, training)


def pattern_occurrences(
    kernels: PreparedKernels, identifiers: Iterable[str], cancel: CancelToken = NEVER_CANCELLED
) -> tuple[PatternOccurrences, ...]:
    """Returns the places of some patterns of the catalogue, as if there were no others.

    A kernel belongs to one place at most; where two patterns want it, the one that comes first in the catalogue has it.
    Of EPILOGUE patterns the matrix product in front belongs to the place, and places without one are left out.

    Args:
        kernels: The run.
        identifiers: Ids of patterns.
        cancel: Looked at between patterns.

    Raises:
        OperationCancelled: Cancelled.
    """
    wanted = frozenset(identifiers)
    sequence = kernels.sequence
    if len(sequence) == 0:
        return ()
    matcher = PatternMatcher(sequence)
    found = []
    for pattern in PATTERNS:
        cancel.check()
        if pattern.id not in wanted or not (pattern.gpu_call if sequence.is_gpu else pattern.npu_call):
            continue
        matches = matcher.take(pattern)
        if len(matches.first):
            whole = pattern.estimate in (Estimate.ATTENTION, Estimate.EPILOGUE)
            places = priced_places(kernels, pattern, matches, with_matrix=whole)
            if places is None:
                continue
            found.append(replace(places, is_usable=not (kernels.is_training and pattern.inference_only)))
    return tuple(found)


def priced_places(
    kernels: PreparedKernels, pattern: FusionPattern, matches: Matches, *, with_matrix: bool
) -> PatternOccurrences | None:
    """Returns the places of a pattern with the times of one kernel instead; None where their context rules all out.

    Args:
        kernels: The run.
        pattern: What was looked for.
        matches: Where it stands.
        with_matrix: Whether matrix products inside a place belong to it.
    """
    trace, sequence, measures = kernels.trace, kernels.sequence, kernels.measures
    first, end = matches.first, matches.end
    places = ranges(sequence, measures, first, end, with_matrix=with_matrix)
    allowed = context_allows(sequence, pattern, places)
    if not np.any(allowed):
        return None
    places = ranges(sequence, measures, first[allowed], end[allowed], with_matrix=with_matrix)
    members = members_of(sequence, places, with_matrix=with_matrix)
    kept = np.flatnonzero(members)
    use = pipe_use(trace, sequence.event[kept].tolist())
    everywhere = np.ones(len(places), dtype=np.bool_)
    won = savings(
        pattern.estimate, pattern.input_passes, places, measures, use.vector if use is not None else None, everywhere
    )
    product_ns = np.zeros(len(places), dtype=np.int64)
    if pattern.estimate is Estimate.EPILOGUE:
        product = _products_before(sequence, places.first)
        product_ns = sequence.duration_ns[product]
        members[product] = True
        kept = np.flatnonzero(members)
        starts = np.searchsorted(kept, product)
    else:
        starts = np.searchsorted(kept, places.first)
    bytes_once = np.maximum(places.outside_bytes + places.last_bytes, 0) * (places.traffic_bytes > 0)
    return PatternOccurrences(
        pattern=pattern,
        offsets=np.append(starts, len(kept)).astype(np.int64),
        events=sequence.event[kept],
        words=tuple(sequence.words[word] for word in sequence.word[kept].tolist()),
        busy_ns=places.busy_ns + product_ns,
        best_ns=won.best_fused_ns + product_ns,
        expected_ns=won.fused_ns + product_ns,
        worst_ns=won.worst_fused_ns + product_ns,
        bytes=bytes_once.astype(np.float64),
        is_usable=True,
    )


def _products_before(sequence: KernelSequence, first: Int64Array) -> Int64Array:
    """Returns the matrix product in front of each place, int64; a helper of its call may stand between."""
    helper = np.array([word == HELPER for word in sequence.words], dtype=np.bool_)
    return first - 1 - helper[sequence.word[first - 1]]
