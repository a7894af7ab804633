"""Requests to an allocator from words, so that a test reads like a program."""

import numpy as np

from engine.runtime.allocators.interface import RequestKind, RequestLog

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_WORDS = {"free": RequestKind.FREE, "drop": RequestKind.FREE_REQUESTED}


def requests(program: str) -> RequestLog:
    """Returns the log of a program of one request per line.

    ``a = 3M`` allocates (``a = 3M @1`` on stream 1, ``a = 3M #2`` with tag 2), ``free a``, ``drop a`` (freed, still
    used by another stream), ``empty``, ``sync``, ``measure 3M``. Bytes without a unit are bytes.
    """
    ids: dict[str, int] = {}
    rows = []
    for line in filter(None, (line.strip() for line in program.splitlines())):
        words = line.split()
        stream = next((int(word[1:]) for word in words if word[0] == "@"), 0)
        tag = next((int(word[1:]) for word in words if word[0] == "#"), 0)
        if words[0] in _WORDS:
            rows.append((_WORDS[words[0]], ids[words[1]], 0, 0, 0))
        elif words[0] == "empty":
            rows.append((RequestKind.EMPTY_CACHE, -1, 0, 0, 0))
        elif words[0] == "sync":
            rows.append((RequestKind.SYNCHRONIZE, -1, 0, 0, 0))
        elif words[0] == "measure":
            rows.append((RequestKind.MEASURE, -1, _size(words[1]), 0, 0))
        else:
            ids[words[0]] = len(ids)
            rows.append((RequestKind.ALLOCATE, ids[words[0]], _size(words[2]), stream, tag))
    return RequestLog(*np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy())


def _size(word: str) -> int:
    unit = _UNITS.get(word[-1])
    return round(float(word[:-1]) * unit) if unit else int(word)
