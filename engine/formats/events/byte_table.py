"""Distinct byte strings numbered in order of first sight, without a Python object per occurrence."""

import itertools
import json

import numba
import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array, UInt8Array
from engine.formats.events.text_words import hash_bytes, same_bytes
from engine.trace.strings import StringInterner, StringTable

ENTRY_START, ENTRY_END, ENTRY_HASH = 0, 1, 2


@numba.njit(nogil=True, cache=True, forceinline=True)
def intern_span(
    text: UInt8Array, start: int, end: int, table: int, slots: Int32Array, entries: Int64Array, count: int
) -> int:
    """Returns the number of ``text[start:end]`` in an open-addressing table; ``count`` where it was added.

    Args:
        text: The bytes all entries point into.
        start: First byte.
        end: After the last byte.
        table: Which of the tables in ``slots`` and ``entries``.
        slots: int32, shape (tables, a power of two more than twice the entries in use); −1 is empty.
        entries: int64, shape (tables, capacity, 3): start, end and hash of each entry.
        count: Entries of this table in use.
    """
    value = hash_bytes(text, start, end)
    mask = slots.shape[1] - 1
    slot = value & mask
    while True:
        entry = slots[table, slot]
        if entry < 0:
            slots[table, slot] = count
            entries[table, count, ENTRY_START] = start
            entries[table, count, ENTRY_END] = end
            entries[table, count, ENTRY_HASH] = value
            return count
        begin = entries[table, entry, ENTRY_START]
        alike = entries[table, entry, ENTRY_HASH] == value and entries[table, entry, ENTRY_END] - begin == end - start
        if alike and same_bytes(text, start, text, begin, end - start):
            return int(entry)
        slot = (slot + 1) & mask


@numba.njit(nogil=True, cache=True)
def _merge(
    text: UInt8Array,
    added: Int64Array,
    slots: Int32Array,
    offsets: Int64Array,
    hashes: Int64Array,
    block: UInt8Array,
    count: int,
    mapping: Int32Array,
) -> int:
    mask = len(slots) - 1
    for index in range(len(added)):
        start, end, value = added[index, ENTRY_START], added[index, ENTRY_END], added[index, ENTRY_HASH]
        length = end - start
        slot = value & mask
        while True:
            entry = slots[slot]
            if entry < 0:
                slots[slot] = count
                begin = offsets[count]
                offsets[count + 1] = begin + length
                block[begin : begin + length] = text[start:end]
                hashes[count] = value
                mapping[index] = count
                count += 1
                break
            begin = offsets[entry]
            alike = hashes[entry] == value and offsets[entry + 1] - begin == length
            if alike and same_bytes(text, start, block, begin, length):
                mapping[index] = entry
                break
            slot = (slot + 1) & mask
    return count


@numba.njit(nogil=True, cache=True)
def _fill_slots(hashes: Int64Array, count: int, slots: Int32Array) -> None:
    mask = len(slots) - 1
    for entry in range(count):
        slot = hashes[entry] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


class ByteTable:
    """Grows by whole chunks; owns its bytes, so the file's pages can be given back."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, dtype=np.int32)
        self._offsets = np.zeros(1 << 11, dtype=np.int64)
        self._hashes = np.zeros(1 << 11, dtype=np.int64)
        self._block = np.zeros(1 << 16, dtype=np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def merge(self, text: UInt8Array, added: Int64Array) -> Int32Array:
        """Returns the numbers (int32, shape (n,)) of ``text``'s spans ``added`` (int64, shape (n, 3))."""
        mapping = np.empty(len(added), dtype=np.int32)
        needed = self._count + len(added)
        self._reserve(needed, int(self._offsets[self._count]) + int((added[:, 1] - added[:, 0]).sum()))
        self._count = _merge(text, added, self._slots, self._offsets, self._hashes, self._block, self._count, mapping)
        return mapping

    def _reserve(self, entries: int, size_bytes: int) -> None:
        if entries + 1 > len(self._offsets):
            self._offsets = _grown(self._offsets, entries + 1)
            self._hashes = _grown(self._hashes, entries + 1)
        if size_bytes > len(self._block):
            self._block = _grown(self._block, size_bytes)
        if 2 * entries >= len(self._slots):
            self._slots = np.full(1 << (4 * entries).bit_length(), -1, dtype=np.int32)
            _fill_slots(self._hashes, self._count, self._slots)

    def table(self) -> StringTable:
        """Returns the strings as written (escapes stay as they are), in order of their numbers."""
        offsets = self._offsets[: self._count + 1].copy()
        return StringTable(self._block[: offsets[-1]].copy(), offsets)

    def intern_into(self, strings: StringInterner) -> tuple[Int32Array, int]:
        """Adds the decoded strings to ``strings``.

        Returns:
            The string id of every number, int32, and how many strings were not valid UTF-8.
        """
        block = self._block[: self._offsets[self._count]].tobytes()
        pairs = itertools.pairwise(self._offsets[: self._count + 1].tolist())
        # One pass over the distinct strings, not over events.
        if block.isascii() and b"\\" not in block:
            whole = block.decode("ascii")
            return strings.intern_all([whole[start:end] for start, end in pairs]), 0
        texts: list[str] = []
        invalid = 0
        for start, end in pairs:
            raw = block[start:end]
            try:
                text = raw.decode()
            except UnicodeDecodeError:
                text = raw.decode("utf-8", "replace")
                invalid += 1
            texts.append(_unescaped(text) if "\\" in text else text)
        return strings.intern_all(texts), invalid


def _grown(column: AnyArray, needed: int) -> AnyArray:
    larger = np.zeros(max(needed, 2 * len(column)), dtype=column.dtype)
    larger[: len(column)] = column
    return larger


def _unescaped(text: str) -> str:
    """Returns the string a JSON literal stands for; as written where its escapes are broken."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
