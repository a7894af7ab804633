"""Values computed from other values, cached by key and never kept in step by hand."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

Value = TypeVar("Value")


class DerivedValues:
    """A least-recently-used cache. A key names everything the value depends on, the trace included.

    Args:
        limit_count: Values kept at most.
    """

    def __init__(self, limit_count: int = 64) -> None:
        self._limit_count = limit_count
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Returns the value of ``key``, computing it at the first request."""
        if key in self._values:
            self._values.move_to_end(key)
        else:
            self._values[key] = compute()
            if len(self._values) > self._limit_count:
                self._values.popitem(last=False)
        return cast("Value", self._values[key])

    def clear(self) -> None:
        """Forgets everything, as when another document is opened."""
        self._values.clear()
