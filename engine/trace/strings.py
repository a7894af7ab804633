"""Interned strings: every text of a trace once, events hold int32 ids."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from engine.core.arrays import Int32Array, Int64Array, UInt8Array, read_only

ABSENT = -1
_MANY = 1000
"""From so many strings on, copying the block once is cheaper than slicing an array per string."""


class StringTable(Sequence[str]):
    """An immutable list of distinct strings in one UTF-8 block, so it can be memory-mapped.

    Args:
        data: uint8, shape (bytes,): the strings one after another.
        offsets: int64, shape (n + 1,): where each string starts; the last entry is ``len(data)``.
    """

    def __init__(self, data: UInt8Array, offsets: Int64Array) -> None:
        self.data = read_only(data)
        self.offsets = read_only(offsets)
        self._ids: dict[str, int] | None = None

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> "StringTable":
        """Returns a table of ``strings`` in the given order; lone surrogates are kept."""
        texts = list(strings)
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        joined = "".join(texts)
        if joined.isascii():
            np.cumsum([*map(len, texts)], out=offsets[1:])
            return cls(np.frombuffer(joined.encode("ascii"), dtype=np.uint8), offsets)
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        np.cumsum([*map(len, encoded)], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # slices are not needed
        if index < 0 or index >= len(self):
            raise IndexError(index)
        block = self.data[self.offsets[index] : self.offsets[index + 1]]
        return block.tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        block = self.data.tobytes()
        offsets = self.offsets.tolist()
        for start, end in itertools.pairwise(offsets):
            yield block[start:end].decode("utf-8", "surrogatepass")

    def text(self, index: int) -> str:
        """Returns the string, or "" for the absent index −1."""
        return self[int(index)] if index >= 0 else ""

    def texts(self, indices: Int32Array) -> list[str]:
        """Returns the strings of many indices ("" for −1), decoding each distinct one once."""
        distinct, inverse = np.unique(indices, return_inverse=True)
        if len(distinct) < _MANY:
            decoded = [self.text(index) for index in distinct.tolist()]
        else:
            decoded = self._decoded(distinct)
        return [decoded[position] for position in inverse.tolist()]

    def _decoded(self, distinct: Int32Array) -> list[str]:
        """Returns the strings of ascending indices from one copy of the block."""
        present = distinct[distinct >= 0]
        block = self.data.tobytes()
        bounds = zip(self.offsets[present].tolist(), self.offsets[present + 1].tolist(), strict=True)
        absent = [""] * (len(distinct) - len(present))
        return absent + [block[start:end].decode("utf-8", "surrogatepass") for start, end in bounds]

    def id_of(self, text: str) -> int:
        """Returns the id of ``text``, or −1 where the trace never uses it."""
        if self._ids is None:
            self._ids = {string: index for index, string in enumerate(self)}
        return self._ids.get(text, ABSENT)

    def find(self, text: str, *, match_case: bool = False) -> Int32Array:
        """Returns the ids (int32, ascending) of the strings that contain ``text``."""
        if match_case:
            hits = [index for index, string in enumerate(self) if text in string]
        else:
            folded = text.casefold()
            hits = [index for index, string in enumerate(self) if folded in string.casefold()]
        return np.array(hits, dtype=np.int32)


class StringInterner:
    """Collects strings while a trace is built; equal strings get equal ids."""

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._ids: dict[str, int] = {}
        self._table: StringTable | None = None
        for text in strings:
            self.intern(text)

    def intern(self, text: str) -> int:
        """Returns the id of ``text``, adding it at first sight."""
        return self._ids.setdefault(text, len(self._ids))

    def intern_all(self, texts: Iterable[str]) -> Int32Array:
        """Returns the ids of many strings, int32, in order."""
        ids = self._ids
        return np.array([ids.setdefault(text, len(ids)) for text in texts], dtype=np.int32)

    def __len__(self) -> int:
        return len(self._ids)

    def table(self) -> StringTable:
        """Returns the strings so far as an immutable table; the same one until another string is added."""
        if self._table is None or len(self._table) != len(self._ids):
            self._table = StringTable.from_strings(self._ids)
        return self._table
