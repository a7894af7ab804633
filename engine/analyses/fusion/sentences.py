"""Sentences of the catalogue as regular expressions over one character per kernel."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.analyses.fusion.kernel_words import HELPER

_TOKEN = re.compile(r"([a-z][a-z_]*)([=!]?)|(\{[0-9,]+\})|(\((?!\?))|(\s+)|(.)")
ABSENT_WORD = "\x01"
"""Stands for a word of a sentence that the capture never uses."""


@dataclass(frozen=True, slots=True)
class CompiledSentence:
    """A sentence as a regular expression over one character per kernel.

    Attributes:
        expression: The expression; every ``word=`` and ``word!`` is one capturing group.
        is_member: Per capturing group: whether it is ``word!``.
    """

    expression: re.Pattern[str]
    is_member: tuple[bool, ...]


def compile_sentence(sentence: str, letters: Mapping[str, str]) -> CompiledSentence:
    """Returns the compiled sentence; ``letters`` gives each word of the capture its character."""
    helper = re.escape(letters.get(HELPER, ABSENT_WORD))
    parts: list[str] = []
    kinds: list[bool] = []
    for word, mark, quantifier, group, space, rest in _TOKEN.findall(_marked_groups(sentence)):
        if word:
            letter = re.escape(letters.get(word, ABSENT_WORD))
            parts.append(f"(?:{helper}*({letter}))" if mark else f"(?:{helper}*{letter})")
            if mark:
                kinds.append(mark == "!")
        elif group:
            parts.append("(?:")
        elif not space:
            parts.append(quantifier or rest)
    return CompiledSentence(re.compile("".join(parts)), tuple(kinds))


def _marked_groups(sentence: str) -> str:
    """Returns the sentence with ``(a|b)=`` written as ``(a=|b=)``."""

    def spread(match: re.Match[str]) -> str:
        return "(" + "|".join(f"{word}{match[2]}" for word in match[1].split("|")) + ")"

    return re.sub(r"\(([a-z_|]+)\)([=!])", spread, sentence)
