"""Named extension points. Built-ins and plug-ins register the same way; a duplicate id is an error."""

from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

from engine.core.errors import PluginError


class Identified(Protocol):
    """Anything with a stable id."""

    @property
    def id(self) -> str:
        """The stable id, as used in files and on the command line."""


Item = TypeVar("Item", bound=Identified)


class Registry(Generic[Item]):
    """An ordered set of items with unique ids, built once by whoever composes the program.

    Args:
        built_ins: Items of the product itself, in order of preference.
        entry_point_group: Where plug-ins are looked for; None for no plug-ins.
    """

    def __init__(self, built_ins: Iterable[Item], entry_point_group: str | None = None) -> None:
        self._items: dict[str, Item] = {}
        self.failures: list[PluginError] = []
        for item in built_ins:
            self.add(item)
        if entry_point_group is not None:
            self._load(entry_point_group)

    def add(self, item: Item) -> None:
        """Adds ``item``; raises PluginError if its id is taken."""
        if item.id in self._items:
            message = f"the id {item.id!r} is registered twice"
            raise PluginError(message)
        self._items[item.id] = item

    def _load(self, group: str) -> None:
        for entry_point in entry_points(group=group):
            try:
                self.add(entry_point.load())
            except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way and must not stop the program
                self.failures.append(PluginError(f"plug-in {entry_point.name!r} of {group}: {error}"))

    def __getitem__(self, item_id: str) -> Item:
        return self._items[item_id]

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)
