"""The first sentence with its numbers as links."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.headline import Headline
    from engine.trace import Trace

_DURATION = r"[\d.,]+ (?:ns|µs|ms|s)\b"
_NUMBERS = (
    ("waiting", re.compile(rf"waits? {_DURATION}")),
    ("events", re.compile(r"[\d,]+ host events?")),
    ("step", re.compile(_DURATION)),
)
"""What a sentence says in numbers besides its shares; the first pattern that fits a place decides."""


def linked(headline: Headline) -> str:
    """Returns the sentence as rich text: every part, and the length of the step, links to its own id.

    The engine's words stay as they are; only links are laid over them.
    """
    spans: list[tuple[int, int, str]] = []
    for share in headline.shares:
        start = headline.sentence.find(share.text)
        if start >= 0:
            spans.append((start, start + len(share.text), share.id))
    spans += [(*found.span(), target) for target, number in _NUMBERS if (found := number.search(headline.sentence))]
    pieces = []
    done = 0
    for start, end, target in sorted(spans):
        if start < done:
            continue
        pieces.append(escape(headline.sentence[done:start], quote=False))
        pieces.append(f'<a href="{target}">{escape(headline.sentence[start:end], quote=False)}</a>')
        done = end
    pieces.append(escape(headline.sentence[done:], quote=False))
    return "".join(pieces)


def run_sentence(trace: Trace | None) -> str:
    """Returns whether the run that a capture keeps the history of slows down, and why; "" where it keeps none."""
    from engine.analyses.slowdown import run_course
    from engine.analyses.step_history import step_history

    history = step_history(trace) if trace is not None else None
    return run_course(history).sentence if history is not None and len(history) > 1 else ""
