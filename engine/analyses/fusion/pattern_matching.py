"""Finds the catalogue's sentences in the kernels of every stream; each kernel is given to one occurrence at most."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.analyses.fusion.kernel_sequence import KernelSequence
from engine.analyses.fusion.kernel_words import HELPER, MATRIX_WORDS
from engine.analyses.fusion.patterns import FusionPattern
from engine.analyses.fusion.sentences import CompiledSentence, compile_sentence
from engine.core.arrays import BoolArray, Int64Array

_FIRST_LETTER = 0x100
_TAKEN = "\x00"
_MIN_MARKED_RATIO = 0.25
"""Without shapes the marked members must take at least this share of a match's time: loose sentences allow index work
between them, and without sizes only the time tells it from something else."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Where one pattern stands: ranges ``[first, end)`` of the sequence, int64, shape (occurrences,), ascending."""

    first: Int64Array
    end: Int64Array


class PatternMatcher:
    """The streams of one capture as text, one letter per kernel; what was matched is taken out.

    Args:
        sequence: The kernels.
    """

    def __init__(self, sequence: KernelSequence) -> None:
        self._sequence = sequence
        self._letters = {word: chr(_FIRST_LETTER + index) for index, word in enumerate(sequence.words)}
        codes = sequence.word + _FIRST_LETTER
        cuts = np.flatnonzero(np.diff(sequence.track)) + 1
        self._offsets = [0, *cuts.tolist()] if len(sequence) else []
        bounds = [*self._offsets, len(sequence)] if self._offsets else []
        self._streams = [
            codes[start:end].astype("<u4").tobytes().decode("utf-32-le") for start, end in itertools.pairwise(bounds)
        ]
        self._elements = sequence.main_elements.tolist()
        # A product between two members is not part of what is fused and must not hide them.
        matrix = [index for index, word in enumerate(sequence.words) if word in MATRIX_WORDS]
        self._durations = np.where(np.isin(sequence.word, matrix), 0, sequence.duration_ns).tolist()

    def take(self, pattern: FusionPattern) -> Matches:
        """Returns the occurrences of ``pattern`` among the kernels not taken yet, and takes them."""
        spans = self._take_all(pattern.sentences)
        if spans and pattern.lone_call:
            spans += self._take_all((pattern.lone_call,))
        spans.sort()
        columns = np.array(spans, dtype=np.int64).reshape(-1, 2)
        return Matches(columns[:, 0], columns[:, 1])

    def _take_all(self, sentences: tuple[str, ...]) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for text in sentences:
            sentence = compile_sentence(text, self._letters)
            for index, offset in enumerate(self._offsets):
                stream = self._streams[index]
                local = list(self._find(sentence, stream, offset))
                if local:
                    self._streams[index] = _without(stream, local)
                    spans += [(first + offset, end + offset) for first, end in local]
        return spans

    def taken(self) -> BoolArray:
        """Returns whether each kernel belongs to an occurrence, bool, shape (n,)."""
        text = "".join(self._streams)
        taken: BoolArray = np.frombuffer(text.encode("utf-32-le"), dtype="<u4") == 0
        return taken

    def _find(self, sentence: CompiledSentence, stream: str, offset: int) -> Iterator[tuple[int, int]]:
        """Yields ``[first, end)`` of matches whose sizes agree; one Python step per match."""
        position = 0
        while (match := sentence.expression.search(stream, position)) is not None:
            span = self._members(match, sentence.is_member, stream, offset)
            if span is None:
                position = match.start() + 1
            else:
                yield span
                position = max(match.end(), match.start() + 1)

    def _members(
        self, match: re.Match[str], is_member: tuple[bool, ...], stream: str, offset: int
    ) -> tuple[int, int] | None:
        """Returns the range of a match's members, None where their sizes disagree."""
        positions = [match.start(group + 1) for group in range(len(is_member))]
        members = [at for at, only in zip(positions, is_member, strict=True) if only and at >= 0]
        sized = [at for at, only in zip(positions, is_member, strict=True) if not only and at >= 0]
        first, end = (members[0], members[-1] + 1) if members else match.span()
        helper = self._letters.get(HELPER)
        while first < end and stream[first] == helper:
            first += 1
        sizes = {self._elements[position + offset] for position in sized} - {-1}
        if len(sizes) > 1:
            return None
        if sized and not sizes:
            time_ns = sum(self._durations[position + offset] for position in sized)
            if time_ns < _MIN_MARKED_RATIO * sum(self._durations[first + offset : end + offset]):
                return None
        return first, end


def _without(stream: str, spans: list[tuple[int, int]]) -> str:
    pieces = []
    position = 0
    for first, end in spans:
        pieces += [stream[position:first], _TAKEN * (end - first)]
        position = end
    return "".join([*pieces, stream[position:]])
