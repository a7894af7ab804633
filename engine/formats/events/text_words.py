"""Eight bytes of text at a time: loads, comparisons, hashes and digits for the compiled scanner.

A word holds its first byte in its lowest bits, as on every processor this runs on. The tricks are the usual ones of
computing within a register: a byte is zero where subtracting one borrows from it.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.core.arrays import AnyArray, UInt8Array

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_NIBBLES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
_THREES = np.uint64(0x3333333333333333)
_LOW_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
MASKS: AnyArray = np.array([(1 << (8 * length)) - 1 for length in range(9)], dtype=np.uint64)
"""uint64, shape (9,): the bits of the first ``length`` bytes of a word."""


def packed(text: bytes) -> np.uint64:
    """Returns the word of at most eight bytes, for comparing with what ``word_at`` returns."""
    return np.uint64(int.from_bytes(text.ljust(8, b"\0"), "little"))


@intrinsic
def _load(_typing_context: Any, array: Any, _index: Any) -> Any:
    """Loads eight bytes at any address; numba itself only loads aligned array elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def _borrowed(_typing_context: Any, array: Any) -> Any:
    """Returns the same array without its owner, for passing down while the caller holds the real one.

    Compiled calls count references to an array's owner with atomic instructions, several per call; in functions that
    are called once per value this cost more than their work. Without an owner there is nothing to count.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        view.parent = ir.Constant(view.parent.type, None)
        return view._getvalue()  # noqa: SLF001 - how numba's own array code returns a changed array

    return array(array), generate


@intrinsic
def _trailing_zeros(_typing_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


# Called from compiled code with other arguments than their Python signatures show.
_word: Any = _load
_zeros: Any = _trailing_zeros
borrowed: Any = _borrowed
"""Returns an array without its owner; called from compiled code with the array alone."""


@numba.njit(nogil=True, cache=True, forceinline=True)
def word_at(text: UInt8Array, position: int) -> np.uint64:
    """Returns the eight bytes at ``position``; those behind the end of the text are zero."""
    word = np.uint64(0)
    if position + 8 <= len(text):
        word = _word(text, np.int64(position))
    else:
        for index in range(len(text) - 1, position - 1, -1):
            word = (word << np.uint64(8)) | np.uint64(text[index])
    return word


@numba.njit(nogil=True, cache=True, forceinline=True)
def find_either(text: UInt8Array, position: int, end: int, first: np.uint64, second: np.uint64) -> int:
    """Returns where one of two bytes first stands in ``text[position:end]``, or ``end``.

    Args:
        text: The bytes.
        position: Where to begin.
        end: Where to stop, at most ``len(text)``.
        first: The byte, repeated eight times.
        second: The other byte, repeated eight times.
    """
    while position + 8 <= end:
        word = _word(text, np.int64(position))
        one, two = word ^ first, word ^ second
        found = (((one - _ONES) & ~one) | ((two - _ONES) & ~two)) & _HIGHS
        if found != np.uint64(0):
            return position + int(_zeros(found) >> 3)
        position += 8
    low_first, low_second = first & MASKS[1], second & MASKS[1]
    while position < end and np.uint64(text[position]) != low_first and np.uint64(text[position]) != low_second:
        position += 1
    return position


@numba.njit(nogil=True, cache=True, forceinline=True)
def same_bytes(text: UInt8Array, start: int, other: UInt8Array, other_start: int, length: int) -> bool:
    """Returns whether two runs of ``length`` bytes are equal."""
    if length < 8:
        difference = word_at(text, start) ^ word_at(other, other_start)
        return bool(difference & MASKS[length] == np.uint64(0))
    index = 0
    while index + 8 <= length:
        if word_at(text, start + index) != word_at(other, other_start + index):
            return False
        index += 8
    return bool(word_at(text, start + length - 8) == word_at(other, other_start + length - 8))


@numba.njit(nogil=True, cache=True, forceinline=True)
def hash_bytes(text: UInt8Array, start: int, end: int) -> int:
    """Returns a 63-bit hash of the bytes, a non-negative int64: multiply and fold, a word at a time."""
    length = end - start
    value = np.uint64(length) * _MULTIPLIER
    position = start
    while position + 8 <= end:
        value = (value ^ word_at(text, position)) * _MULTIPLIER
        value ^= value >> np.uint64(32)
        position += 8
    if position < end:
        value = (value ^ (word_at(text, position) & MASKS[end - position])) * _MULTIPLIER
        value ^= value >> np.uint64(32)
    value = (value ^ (value >> np.uint64(29))) * _MULTIPLIER
    return int(np.int64((value ^ (value >> np.uint64(32))) & np.uint64(0x7FFFFFFFFFFFFFFF)))


@numba.njit(nogil=True, cache=True, forceinline=True)
def are_digits(word: np.uint64) -> bool:
    """Returns whether all eight bytes are decimal digits."""
    return bool((word & _NIBBLES) | (((word + _SIXES) & _NIBBLES) >> np.uint64(4)) == _THREES)


@numba.njit(nogil=True, cache=True, forceinline=True)
def digits_value(word: np.uint64) -> np.uint64:
    """Returns the number that eight decimal digits write: neighbours are joined in pairs three times."""
    pairs = ((word & _LOW_NIBBLES) * np.uint64(2561)) >> np.uint64(8)
    quads = ((pairs & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return ((quads & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
