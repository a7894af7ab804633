"""NCCL arguments of a Kineto trace as a table of collectives."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.core.arrays import Int64Array
from engine.trace.strings import StringInterner
from engine.trace.tables import CollectiveTable

_ELEMENT_BYTES = {
    "byte": 1,
    "char": 1,
    "bool": 1,
    "short": 2,
    "int": 4,
    "long": 8,
    "half": 2,
    "bfloat16": 2,
    "float": 4,
    "double": 8,
    "complexhalf": 4,
    "complexfloat": 8,
    "complexdouble": 16,
}
_EIGHT_BIT_PREFIXES = ("float8", "quint8", "qint8", "uint8", "int8")


def collective_table(
    strings: StringInterner,
    event: Int64Array,
    name: Int64Array,
    start_ns: Int64Array,
    elapsed_ns: Int64Array,
    arguments: list[Mapping[str, Any]],
) -> CollectiveTable:
    """Returns the collectives among some events: those whose arguments name one.

    The payload is the larger of the input and output message, in elements, times the size of an element.

    Args:
        strings: Receives group names.
        event: int64, shape (n,), provisional ids.
        name: int64, shape (n,), string ids.
        start_ns: int64, shape (n,).
        elapsed_ns: int64, shape (n,).
        arguments: The decoded arguments of each.
    """
    described = [index for index, args in enumerate(arguments) if "Collective name" in args]
    described.sort(key=lambda index: int(start_ns[index]))
    groups = [_group(arguments[index]) for index in described]
    absent = np.full(len(described), -1, dtype=np.int64)
    return CollectiveTable(
        event=event[described].astype(np.int32),
        name=name[described].astype(np.int32),
        group=np.array([strings.intern(group) if group else -1 for group in groups], dtype=np.int32),
        start_ns=start_ns[described],
        elapsed_ns=elapsed_ns[described],
        bytes=np.array([_payload_bytes(arguments[index]) for index in described], dtype=np.int64),
        vendor_transit_ns=absent,
        vendor_wait_ns=absent,
        vendor_synchronization_ns=absent,
        vendor_idle_ns=absent,
        step=absent.astype(np.int32),
    )


def _group(args: Mapping[str, Any]) -> str:
    return str(args.get("Process Group Name") or "")


def _payload_bytes(args: Mapping[str, Any]) -> int:
    counts = [args.get(key) for key in ("In msg nelems", "Out msg nelems")]
    elements = max((count for count in counts if isinstance(count, int)), default=-1)
    element_bytes = _element_bytes(str(args.get("dtype", "")))
    return elements * element_bytes if elements >= 0 and element_bytes else -1


def _element_bytes(dtype: str) -> int:
    word = dtype.strip().lower()
    return 1 if word.startswith(_EIGHT_BIT_PREFIXES) else _ELEMENT_BYTES.get(word, 0)
