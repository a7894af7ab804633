"""Finding the few interesting names among the many of a trace."""

from collections.abc import Iterable

import numpy as np

from engine.core.arrays import Int32Array
from engine.trace.strings import StringTable


def names_holding(strings: StringTable, needles: Iterable[str]) -> Int32Array:
    """Returns the ids (int32, ascending) of the strings that hold one of the needles (lower-case ASCII), in any case.

    A trace has up to some 100,000 distinct names: the block of all of them is searched at once, far faster than a
    pattern per name. A needle that spans two neighbours names the first one, so callers must match what they get.
    """
    block = strings.data.tobytes().lower()
    found: set[int] = set()
    for needle in needles:
        text = needle.encode()
        position = block.find(text)
        # One turn per string that holds the needle: the search goes on behind that string.
        while position >= 0:
            index = int(np.searchsorted(strings.offsets, position, side="right")) - 1
            found.add(index)
            position = block.find(text, int(strings.offsets[index + 1]))
    return np.array(sorted(found), dtype=np.int32)
