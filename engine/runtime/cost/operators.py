"""Operators as columns: what the cost of many operators is computed from at once.

An operator is priced by one of three laws. Matmuls are priced by tiles, attention by tiles and scores, everything else
by the bytes it moves and the elements and rows its vector units touch. The family says which constants apply.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from engine.core.arrays import BoolArray, Int32Array, Int64Array, read_only
from engine.devices.spec import DType

NO_WINDOW = 0
"""Value of ``window`` for attention over the whole sequence."""


class Law(IntEnum):
    """Which formula prices an operator."""

    VECTOR = 0
    MATMUL = 1
    ATTENTION = 2


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTable:
    """Operators of one device, a row each. All columns shape (n,).

    Attributes:
        families: Names that ``family`` indexes; each has constants in the cost parameters.
        family: int32, index into ``families``.
        law: int64, a ``Law``.
        dtype: int64, a ``DType``: of the inputs of a matmul or attention, of the elements of a vector operator.
        batch: int64. Matmul: independent products or groups. Attention: sequences. Else 1.
        m: int64. Matmul: rows of one product. Attention: queries of one sequence. Vector: rows.
        n: int64. Matmul: columns. Attention: keys of one sequence. Vector: elements of a row.
        k: int64. Matmul: the summed dimension. Attention: size of a head. Vector: 1.
        heads: int64, query heads of attention, else 1.
        kv_heads: int64, key and value heads of attention, else 1.
        window: int64, keys a query sees at most, ``NO_WINDOW`` for all.
        cold: bool, whether inputs were last touched so long ago that no cache holds them, whatever their size (an
            optimizer's state), rather than just produced.
        transposed: bool, whether the first operand of a matmul is stored [k, m] (gradients of weights).
        causal: bool, whether a query sees only keys up to its own position.
        read_bytes: int64, bytes every input has, each once.
        write_bytes: int64, bytes every output has.
        kernels: int32, kernels the operator launches.
        transfer_ns: int64, communication inside the operator (a matmul fused with a collective), 0 else.
    """

    families: tuple[str, ...]
    family: Int32Array
    law: Int64Array
    dtype: Int64Array
    batch: Int64Array
    m: Int64Array
    n: Int64Array
    k: Int64Array
    heads: Int64Array
    kv_heads: Int64Array
    window: Int64Array
    causal: BoolArray
    cold: BoolArray
    transposed: BoolArray
    read_bytes: Int64Array
    write_bytes: Int64Array
    kernels: Int32Array
    transfer_ns: Int64Array

    def __post_init__(self) -> None:
        lengths = set()
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, item.name, read_only(value))
                lengths.add(len(value))
        if len(lengths) > 1:
            message = f"columns of different lengths: {sorted(lengths)}"
            raise ValueError(message)

    def __len__(self) -> int:
        return len(self.family)

    @property
    def flop(self) -> Int64Array:
        """int64: floating-point operations of the matrix units, 0 for vector operators (computed)."""
        products = 2 * self.batch * self.m * self.n * self.k
        scores = 4 * self.batch * self.heads * visible_scores(self) * self.k
        return np.where(self.law == Law.MATMUL, products, np.where(self.law == Law.ATTENTION, scores, 0))

    def select(self, rows: ArrayLike) -> "OperatorTable":
        """Returns the operators of an index or mask array."""
        chosen = np.asarray(rows)
        columns = {
            item.name: getattr(self, item.name)[chosen] for item in fields(self) if item.name not in {"families"}
        }
        return OperatorTable(families=self.families, **columns)


def visible_scores(operators: OperatorTable) -> Int64Array:
    """Returns int64, shape (n,): pairs of query and key one head computes, after causality and window.

    The queries are the last ``m`` of ``n`` positions, as in decoding, so query i sees min(n - m + i + 1, window) keys.
    """
    queries, keys = operators.m, operators.n
    reach = np.where(operators.window == NO_WINDOW, keys, np.minimum(operators.window, keys))
    first = np.maximum(keys - queries, 0)
    growing = np.clip(reach - first - 1, 0, queries)
    causal = growing * first + growing * (growing + 1) // 2 + (queries - growing) * reach
    return np.where(operators.causal, causal, queries * reach)


def operator_table(
    family: str,
    law: Law,
    dtype: DType | ArrayLike,
    *,
    m: ArrayLike,
    n: ArrayLike,
    read_bytes: ArrayLike,
    write_bytes: ArrayLike,
    k: ArrayLike = 1,
    batch: ArrayLike = 1,
    heads: ArrayLike = 1,
    kv_heads: ArrayLike = 1,
    window: ArrayLike = NO_WINDOW,
    causal: ArrayLike = False,
    cold: ArrayLike = False,
    transposed: ArrayLike = False,
    kernels: ArrayLike = 1,
    transfer_ns: ArrayLike = 0,
) -> OperatorTable:
    """Returns operators of one family; scalars are repeated to the length of the longest argument."""
    integers = (dtype, batch, m, n, k, heads, kv_heads, window, read_bytes, write_bytes, kernels, transfer_ns)
    columns = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value)) for value in (*integers, causal, cold, transposed))
    )
    wide = [np.ascontiguousarray(column, dtype=np.int64) for column in columns[:-3]]
    flags = [np.ascontiguousarray(column, dtype=np.bool_) for column in columns[-3:]]
    count = len(wide[0])
    return OperatorTable(
        families=(family,),
        family=np.zeros(count, np.int32),
        law=np.full(count, int(law), np.int64),
        dtype=wide[0],
        batch=wide[1],
        m=wide[2],
        n=wide[3],
        k=wide[4],
        heads=wide[5],
        kv_heads=wide[6],
        window=wide[7],
        causal=flags[0],
        cold=flags[1],
        transposed=flags[2],
        read_bytes=wide[8],
        write_bytes=wide[9],
        kernels=wide[10].astype(np.int32),
        transfer_ns=wide[11],
    )


def concatenate(tables: Sequence[OperatorTable]) -> OperatorTable:
    """Returns the rows of all tables in order, with one list of families."""
    families: dict[str, int] = {}
    translated = []
    for table in tables:
        codes = np.array([families.setdefault(name, len(families)) for name in table.families], np.int32)
        translated.append(codes[table.family] if len(table) else table.family)
    if not tables:
        return operator_table("empty", Law.VECTOR, DType.FP32, m=[], n=1, read_bytes=0, write_bytes=0)
    names = [item.name for item in fields(OperatorTable) if item.name not in {"families", "family"}]
    return OperatorTable(
        families=tuple(families),
        family=np.concatenate(translated),
        **{name: np.concatenate([getattr(table, name) for table in tables]) for name in names},
    )


def matmul(
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype: DType = DType.BF16,
    *,
    batch: ArrayLike = 1,
    out_bytes_per_element: int | None = None,
    family: str = "matmul",
    transposed: ArrayLike = False,
    transfer_ns: ArrayLike = 0,
) -> OperatorTable:
    """Returns products [m, k] x [k, n], ``batch`` of them in one kernel.

    Args:
        m: Rows.
        n: Columns.
        k: Summed dimension.
        dtype: Of both inputs.
        batch: Independent products.
        out_bytes_per_element: Size of a result element where it differs from the inputs' (4 for fp32 gradients).
        family: Whose constants apply.
        transposed: The first operand is stored [k, m], as in gradients of weights.
        transfer_ns: Time of the collective the kernel overlaps with its own tiles (MC2), as the collective costs alone.
    """
    m, n, k, batch = (np.asarray(value, np.int64) for value in (m, n, k, batch))
    size = dtype.size_bytes
    out = size if out_bytes_per_element is None else out_bytes_per_element
    return operator_table(
        family,
        Law.MATMUL,
        dtype,
        m=m,
        n=n,
        k=k,
        batch=batch,
        read_bytes=batch * (m * k + k * n) * size,
        write_bytes=batch * m * n * out,
        transposed=transposed,
        transfer_ns=transfer_ns,
    )


def grouped_matmul(
    groups: ArrayLike,
    rows: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    dtype: DType = DType.BF16,
    *,
    out_bytes_per_element: int | None = None,
) -> OperatorTable:
    """Returns products of ``groups`` experts over ``rows`` rows in all, spread evenly; weights are read once each."""
    groups, rows, n, k = (np.asarray(value, np.int64) for value in (groups, rows, n, k))
    used = np.minimum(groups, rows)
    per_group = -(-rows // np.maximum(used, 1))
    size = dtype.size_bytes
    return operator_table(
        "grouped_matmul",
        Law.MATMUL,
        dtype,
        m=per_group,
        n=n,
        k=k,
        batch=used,
        read_bytes=(rows * k + used * k * n) * size,
        write_bytes=rows * n * (size if out_bytes_per_element is None else out_bytes_per_element),
    )
