"""Frequent sequences nobody fuses today, as candidates."""

import itertools
import re

import numpy as np

from engine.analyses.fusion.frequent_sequences import SHORTEST, frequent_sequences
from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.fusion.kernel_words import FUSED, HELPER, MATRIX_WORDS, OTHER
from engine.analyses.fusion.known import bound_of, members_of, occurrences_of, total_of, traffic_reason
from engine.analyses.fusion.measures import Measures
from engine.analyses.fusion.patterns import Estimate
from engine.analyses.fusion.pipe_use import pipe_use
from engine.analyses.fusion.results import FusionCandidate
from engine.analyses.fusion.saving import ranges, savings
from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.trace.trace import Trace

_NEVER_INSIDE = (*MATRIX_WORDS, FUSED, "rms_norm", "layer_norm", "group_norm")
"""Large or already fused kernels: a sequence of small ones ends at them."""
_TEMPLATE = re.compile(r"<.*|\(.*")
_MAX_LABEL = 40


def frequent_candidates(
    trace: Trace, sequence: KernelSequence, measures: Measures, taken: BoolArray
) -> list[FusionCandidate]:
    """Returns a candidate per frequent sequence of the kernels no known pattern has taken."""
    codes, labels = _labels(trace, sequence)
    never = [index for index, word in enumerate(sequence.words) if word in _NEVER_INSIDE]
    breaks = taken | np.isin(sequence.word, never)
    if sequence.is_gpu and HELPER in sequence.words:
        # Further kernels of one framework call belong to its first: nobody can fuse the inside of a convolution.
        heads = sequence.word != sequence.words.index(HELPER)
        breaks |= breaks[np.maximum.accumulate(np.where(heads, np.arange(len(sequence)), 0))]
    device_ns = int(sequence.duration_ns.sum())
    cuts = np.flatnonzero(np.diff(sequence.track)) + 1
    found = []
    for start, end in itertools.pairwise([0, *cuts.tolist(), len(sequence)]):
        part = slice(start, end)
        for hit in frequent_sequences(codes[part], sequence.duration_ns[part], breaks[part], device_ns):
            names = [labels[code] for code in hit.codes]
            if _calls(sequence, hit.first[0] + start, len(names)) < SHORTEST:
                continue
            found.append(_candidate(trace, sequence, measures, hit.first + start, names))
    return found


def _candidate(
    trace: Trace, sequence: KernelSequence, measures: Measures, first: Int64Array, names: list[str]
) -> FusionCandidate:
    found = ranges(sequence, measures, first, first + len(names))
    members = members_of(sequence, found)
    occurrences = occurrences_of(sequence, found, members)
    use = pipe_use(trace, [event for place in occurrences for event in place.events])
    allowed = np.ones(len(found), dtype=np.bool_)
    won = savings(Estimate.STREAM, 1, found, measures, use.vector if use is not None else None, allowed)
    name = "+".join(names)
    return FusionCandidate(
        pattern=f"sequence:{name}",
        title=f"Frequent sequence {name}",
        replacement="",
        matched_by="framework" if bool(np.mean(sequence.from_framework[members]) > 0.5) else "kernels",
        count=len(found),
        total_ns=int(found.busy_ns.sum()),
        gap_ns=int(found.idle_ns.sum()),
        launches=int(found.launches.sum()),
        bound=bound_of(sequence, found, won, use, members),
        saving_ns=total_of(won),
        reason=f"no ready operator fuses it; a kernel of your own would; {traffic_reason(found, measures)}",
        occurrences=occurrences,
    )


def _calls(sequence: KernelSequence, first: int, length: int) -> int:
    """Returns how many framework calls a sequence spans: the kernels that are not helpers of another."""
    words = sequence.word[first : first + length].tolist()
    return sum(sequence.words[word] != HELPER for word in words)


def _labels(trace: Trace, sequence: KernelSequence) -> tuple[Int32Array, list[str]]:
    """Returns a code per kernel, int32, and the label of each code: the operator type, or a GPU kernel's word."""
    keys = sequence.type.astype(np.int64) * len(sequence.words) + sequence.word
    distinct, inverse = np.unique(keys, return_inverse=True)
    known: dict[str, int] = {}
    codes = []
    for key in distinct.tolist():
        text, word = trace.strings.text(key // len(sequence.words)), sequence.words[key % len(sequence.words)]
        label = _short(text) if not sequence.is_gpu or word in (OTHER, HELPER) else word
        codes.append(known.setdefault(label, len(known)))
    return np.array(codes, dtype=np.int32)[inverse], list(known)


def _short(kernel_name: str) -> str:
    """Returns a kernel's name without return type, namespaces, template arguments and parameters."""
    plain = kernel_name.replace("(anonymous namespace)::", "").removeprefix("void ")
    return _TEMPLATE.sub("", plain).rpartition("::")[2][:_MAX_LABEL] or kernel_name[:_MAX_LABEL]
