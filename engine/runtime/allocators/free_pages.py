"""Free ranges of physical pages, found by address and by size."""

from bisect import bisect_left, insort

PageRange = tuple[int, int]
"""(first byte, size) of physical pages."""


class FreePages:
    """A set of free ranges. Segments never touch, so ranges of two segments never merge.

    Attributes:
        by_size: (size, first byte) of every range, ascending.
    """

    def __init__(self) -> None:
        self.by_size: list[tuple[int, int]] = []
        self._starts: list[int] = []
        self._size: dict[int, int] = {}

    def add(self, start: int, size: int) -> None:
        """Frees a range and merges it with its neighbours."""
        index = bisect_left(self._starts, start)
        if index < len(self._starts) and self._starts[index] == start + size:
            size += self._remove(self._starts[index])
        if index > 0 and self._starts[index - 1] + self._size[self._starts[index - 1]] == start:
            start = self._starts[index - 1]
            size += self._remove(start)
        insort(self._starts, start)
        self._size[start] = size
        insort(self.by_size, (size, start))

    def _remove(self, start: int) -> int:
        size = self._size.pop(start)
        del self._starts[bisect_left(self._starts, start)]
        del self.by_size[bisect_left(self.by_size, (size, start))]
        return size

    def holds(self, start: int, size: int) -> bool:
        """Tells whether a range is wholly free."""
        index = bisect_left(self._starts, start + 1) - 1
        return index >= 0 and self._starts[index] + self._size[self._starts[index]] >= start + size

    def take(self, start: int, size: int) -> None:
        """Takes a range that is wholly free."""
        around = self._starts[bisect_left(self._starts, start + 1) - 1]
        whole = self._remove(around)
        if start > around:
            self.add(around, start - around)
        if around + whole > start + size:
            self.add(start + size, around + whole - start - size)
