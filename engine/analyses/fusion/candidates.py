"""Sequences of small operators that one real fused operator replaces, and frequent sequences besides them."""

import numpy as np

from engine.analyses.fusion.cache_sizes import cache_size
from engine.analyses.fusion.frequent import frequent_candidates
from engine.analyses.fusion.kernel_sequence import kernel_sequence
from engine.analyses.fusion.known import joined_candidate, known_candidate
from engine.analyses.fusion.matmul_communication import matmul_communication
from engine.analyses.fusion.measures import dispatch_ns, measure
from engine.analyses.fusion.pattern_matching import PatternMatcher
from engine.analyses.fusion.patterns import PATTERNS
from engine.analyses.fusion.results import FusionCandidate, Occurrence, Range3
from engine.analyses.modules.kernel_phases import is_training
from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.trace.trace import Trace

__all__ = ["FusionCandidate", "Occurrence", "Range3", "fusion_candidates"]


def fusion_candidates(trace: Trace, cancel: CancelToken = NEVER_CANCELLED) -> tuple[FusionCandidate, ...]:
    """Returns the candidates, the largest expected saving first. Raises OperationCancelled."""
    sequence = kernel_sequence(trace)
    if len(sequence) == 0:
        return ()
    measures = measure(sequence, cache_size(trace.metadata), dispatch_ns(trace))
    matcher = PatternMatcher(sequence)
    training = is_training(trace.strings.text(text) for text in np.unique(sequence.type).tolist())
    found: list[FusionCandidate] = []
    for pattern in PATTERNS:
        cancel.check()
        replacement = pattern.gpu_call if sequence.is_gpu else pattern.npu_call
        if not replacement:
            continue
        matches = matcher.take(pattern)
        if len(matches.first):
            usable = "" if training and pattern.inference_only else replacement
            candidate = known_candidate(trace, sequence, measures, pattern, usable, matches)
            if candidate is not None:
                found.append(candidate)
    cancel.check()
    joined = matmul_communication(trace, sequence)
    if joined is not None:
        found.append(joined_candidate(joined))
    found += frequent_candidates(trace, sequence, measures, matcher.taken())
    return tuple(sorted(found, key=lambda item: (-item.saving_ns.expected, -item.total_ns, item.pattern)))
