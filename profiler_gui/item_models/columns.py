"""Columns of a table model: how a cell reads, sorts, matches a filter and is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.trace import StringTable

NO_VALUE = "–"
Keys = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One column over n rows.

    Attributes:
        id: Stable name, for saved layouts.
        title: Already translated.
        unit: Of the copied values, ``"ns"``, ``"bytes"``; "" for texts and plain numbers.
        is_number: Whether cells are aligned right and first sorted descending.
        keys: Returns what rows are sorted by, shape (n,); computed when first asked for.
        text: Returns what a person reads in a row.
        raw: Returns what is copied and exported from a row: exact, without unit or grouping; "" where absent.
        matches: Returns which rows contain a text (case does not matter), bool, shape (n,); None for columns that
            a filter does not look at.
    """

    id: str
    title: str
    unit: str
    is_number: bool
    keys: Callable[[], Keys]
    text: Callable[[int], str]
    raw: Callable[[int], str]
    matches: Callable[[str], NDArray[np.bool_]] | None = None


def number_column(
    column_id: str,
    title: str,
    values: NDArray[Any] | Callable[[], NDArray[Any]],
    format_value: Callable[[Any], str] = str,
    *,
    unit: str = "",
    absent: Callable[[Any], bool] = lambda value: False,
) -> Column:
    """Returns a column of numbers.

    Args:
        column_id: Stable name.
        title: Already translated.
        values: The numbers, shape (n,), or what computes them when first needed.
        format_value: A number as people read it.
        unit: Of the numbers.
        absent: Whether a number stands for no value (−1, NaN).
    """
    given: Callable[[], Keys] = cache(values) if callable(values) else lambda: values

    def text(row: int) -> str:
        value = given()[row]
        return NO_VALUE if absent(value) else format_value(value)

    def raw(row: int) -> str:
        value = given()[row]
        return "" if absent(value) else _exact(value)

    return Column(column_id, title, unit, is_number=True, keys=given, text=text, raw=raw)


def string_column(column_id: str, title: str, ids: NDArray[np.int32], strings: StringTable) -> Column:
    """Returns a column of a trace's strings; ``ids`` are int32, shape (n,), −1 for no text."""

    @cache
    def keys() -> Keys:
        distinct, inverse = np.unique(ids, return_inverse=True)
        texts = [strings.text(int(index)).casefold() for index in distinct]  # distinct strings, not rows
        rank = np.empty(len(distinct), dtype=np.int64)
        rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        ordered: Keys = rank[inverse]
        return ordered

    def text(row: int) -> str:
        return strings.text(int(ids[row]))

    def matches(wanted: str) -> NDArray[np.bool_]:
        found = np.zeros(len(strings) + 1, dtype=np.bool_)  # the last entry answers for −1
        found[strings.find(wanted)] = True
        return found[ids]

    return Column(column_id, title, "", is_number=False, keys=keys, text=text, raw=text, matches=matches)


def text_column(column_id: str, title: str, texts: Sequence[str]) -> Column:
    """Returns a column of given texts: for tables of thousands of rows, not of millions."""

    @cache
    def folded() -> list[str]:
        return [text.casefold() for text in texts]

    @cache
    def keys() -> Keys:
        return np.unique(np.array(folded(), dtype=object), return_inverse=True)[1]

    def matches(wanted: str) -> NDArray[np.bool_]:
        sought = wanted.casefold()
        return np.array([sought in text for text in folded()], dtype=np.bool_)

    def text(row: int) -> str:
        return texts[row]

    return Column(column_id, title, "", is_number=False, keys=keys, text=text, raw=text, matches=matches)


def nullable(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Returns numbers with NaN for None, float64, shape (n,): exact for integers below 2**53."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _exact(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def is_nan(value: Any) -> bool:
    """Whether a cell of ``nullable`` numbers is absent."""
    return bool(np.isnan(value))


def is_negative(value: Any) -> bool:
    """Whether an index or size of the engine's tables is absent."""
    return bool(value < 0)
