"""Looks through a pickle before it is loaded: containers, numbers and text pass, everything that could run is refused.

The standard unpickler with a refusing ``find_class`` runs nothing either, but a few bytes can make it reserve gigabytes
(a memo index of 2³², a declared length of 2⁶³). Reading the opcodes first costs milliseconds and names the place.
"""

import pickletools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

from engine.core.arrays import Int64Array, UInt8Array
from engine.core.errors import SourcePosition, TraceReadError, TraceSyntaxError

_ALLOWED = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("NONE", "NEWTRUE", "NEWFALSE", "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "BINBYTES8"),
        *("SHORT_BINBYTES", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET"),
        *("POP", "DUP", "MARK", "POP_MARK", "GET", "BINGET", "LONG_BINGET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"),
        *("PROTO", "STOP", "FRAME"),
    }
)
_FIXED, _LENGTH1, _LENGTH4, _LENGTH8, _LINE, _MEMO4, _MEMO_LINE, _REFUSED = range(8)
_OK, _CUT_OFF, _NOT_ALLOWED, _BAD_MEMO = range(4)
_STOP, _NEWLINE = ord("."), ord("\n")
_LENGTH_SIZES = {
    pickletools.TAKEN_FROM_ARGUMENT1: _LENGTH1,
    pickletools.TAKEN_FROM_ARGUMENT4: _LENGTH4,
    pickletools.TAKEN_FROM_ARGUMENT4U: _LENGTH4,
    pickletools.TAKEN_FROM_ARGUMENT8U: _LENGTH8,
    pickletools.UP_TO_NEWLINE: _LINE,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Grammar:
    """How many bytes follow each opcode. int64, shape (256,): a kind of argument, and its fixed size."""

    kind: Int64Array
    size: Int64Array


def check_pickle(data: bytes, path: Path) -> None:
    """Returns if the pickle holds nothing but builtin containers, numbers and text.

    Raises:
        TraceReadError: It wants something else; the message names the opcode and its byte.
        TraceSyntaxError: It is cut off or no pickle.
    """
    grammar = _grammar()
    view: UInt8Array = np.frombuffer(data, dtype=np.uint8)
    status, position = _scan(view, grammar.kind, grammar.size)
    where = SourcePosition(path, byte=int(position))
    if status == _OK:
        return
    if status == _NOT_ALLOWED:
        opcode = next((item for item in pickletools.opcodes if ord(item.code) == data[position]), None)
        name = f"opcode {opcode.name}" if opcode is not None else f"byte {data[position]:#04x}"
        what = f"the pickle holds more than containers, numbers and text ({name}) and is refused; nothing was run"
        raise TraceReadError(what, where, "record the snapshot again with the framework's own function")
    if status == _BAD_MEMO:
        raise TraceReadError("the pickle refers to more objects than it can hold and is refused", where)
    raise TraceSyntaxError("the pickle is cut off", where, "copy or record the snapshot again")


def _grammar() -> _Grammar:
    kind = np.full(256, _REFUSED, dtype=np.int64)
    size = np.zeros(256, dtype=np.int64)
    for opcode in pickletools.opcodes:
        if opcode.name not in _ALLOWED:
            continue
        code, length = ord(opcode.code), opcode.arg.n if opcode.arg is not None else 0
        kind[code] = _LENGTH_SIZES.get(length, _FIXED)
        size[code] = max(length, 0)
    kind[ord("r")] = _MEMO4  # LONG_BINPUT
    kind[ord("p")] = _MEMO_LINE  # PUT
    return _Grammar(kind, size)


@numba.njit(cache=True)
def _scan(data: Any, kinds: Any, sizes: Any) -> tuple[int, int]:
    """Returns (status, position of the opcode it concerns)."""
    position, total = 0, len(data)
    while position < total:
        kind = kinds[data[position]]
        after = position + 1
        number = 0
        if data[position] == _STOP:
            return _OK, position
        if kind == _REFUSED:
            return _NOT_ALLOWED, position
        if kind == _FIXED:
            after += sizes[data[position]]
        elif kind in (_LINE, _MEMO_LINE):
            while after < total and data[after] != _NEWLINE:
                if kind == _MEMO_LINE:
                    number = _limited(number * 10 + data[after] - 48, total)
                after += 1
            after += 1
        else:
            width = 1 if kind == _LENGTH1 else (8 if kind == _LENGTH8 else 4)
            if after + width > total:
                return _CUT_OFF, position
            for index in range(width - 1, -1, -1):
                number = _limited(number * 256 + data[after + index], total)
            after += width
            if kind != _MEMO4:
                after += number
        if kind in (_MEMO4, _MEMO_LINE) and number > total:
            return _BAD_MEMO, position
        if after > total:
            return _CUT_OFF, position
        position = after
    return _CUT_OFF, total


@numba.njit(cache=True)
def _limited(number: Any, total: int) -> Any:
    """Returns a number read from the file, kept from overflowing: beyond the file's length all are wrong alike."""
    return np.int64(min(max(number, 0), total + 1))
