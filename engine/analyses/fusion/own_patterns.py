"""Chains of kernels a user names, wherever they stand in a run."""

import itertools
import re
from collections.abc import Sequence

import numpy as np

from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.fusion.kernel_words import HELPER
from engine.analyses.fusion.occurrences import PatternOccurrences, PreparedKernels, priced_places
from engine.analyses.fusion.pattern_matching import Matches
from engine.analyses.fusion.patterns import FusionPattern
from engine.core.arrays import Int64Array
from engine.trace.trace import Trace

OWN_PATTERN = "own"
_FIRST_LETTER, _HELPER, _OTHER = 0x100, "h", "o"


def own_pattern_places(kernels: PreparedKernels, names: Sequence[str], title: str) -> PatternOccurrences | None:
    """Returns where kernels of some names follow each other on a stream, None where they never do.

    A name is an operator type (``"Mul"``, ``"MatMulV3"``), a framework operator (``"aten::mul"`` or ``"mul"``) or a
    word of ``kernel_words``; capitals do not matter. Helpers of framework calls (format changes) may stand between.
    Places do not overlap; the first ones count.
    """
    if len(kernels.sequence) == 0:
        return None
    first, end = _matches(kernels.trace, kernels.sequence, [name.casefold() for name in names])
    if len(first) == 0:
        return None
    pattern = FusionPattern(OWN_PATTERN, title, title, title, ())
    return priced_places(kernels, pattern, Matches(first, end), with_matrix=True)


def _matches(trace: Trace, sequence: KernelSequence, wanted: list[str]) -> tuple[Int64Array, Int64Array]:
    """Returns first kernel and end of every place, int64; one Python step per place."""
    kinds = sequence.type.astype(np.int64) * len(sequence.words) + sequence.word
    distinct, inverse = np.unique(kinds, return_inverse=True)
    letters = {name: chr(_FIRST_LETTER + index) for index, name in enumerate(dict.fromkeys(wanted))}
    codes = []
    for kind in distinct.tolist():
        text = trace.strings.text(kind // len(sequence.words)).casefold()
        word = sequence.words[kind % len(sequence.words)]
        names = (text, text.rpartition("::")[2], word)
        found = next((letters[name] for name in names if name in letters), None)
        codes.append(found or (_HELPER if word == HELPER else _OTHER))
    letter = np.array([ord(code) for code in codes], dtype="<u4")[inverse]
    expression = re.compile(f"{_HELPER}*".join(re.escape(letters[name]) for name in wanted))
    cuts = np.flatnonzero(np.diff(sequence.track)) + 1
    spans = []
    for start, stop in itertools.pairwise([0, *cuts.tolist(), len(sequence)]):
        text = letter[start:stop].tobytes().decode("utf-32-le")
        spans += [(match.start() + start, match.end() + start) for match in expression.finditer(text)]
    columns = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]
