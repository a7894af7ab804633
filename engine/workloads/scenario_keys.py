"""Reading tables of a scenario file: every key is known, of the right kind, in range; errors name the nearest key."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar

from engine.core.errors import ScenarioError

Choice = TypeVar("Choice", bound=StrEnum)


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns a phrase that names the known words nearest to ``word``, or all of them where none is near."""
    choices = sorted(known)
    close = get_close_matches(word, choices, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(choices)}"


class Table:
    """One table of the file; every key that is read is taken, and ``finish`` refuses what nobody asked for.

    Args:
        name: Dotted name for messages, "" for the whole file.
        values: As parsed.
    """

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = values
        self._known: set[str] = set()

    def path(self, key: str) -> str:
        """Returns the key as a message names it."""
        return f"{self.name}.{key}" if self.name else key

    def has(self, key: str) -> bool:
        """Returns whether the key is given."""
        self._known.add(key)
        return key in self._values

    def raw(self, key: str, default: Any = None) -> Any:
        """Returns a value as parsed."""
        return self._values[key] if self.has(key) else default

    def table(self, key: str) -> "Table":
        """Returns a sub-table, empty where it is not given."""
        value = self.raw(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, "must be a table")
        return Table(self.path(key), value)

    def integer(self, key: str, default: int | None = None, minimum: int = 1) -> int:
        """Returns a whole number that is at least ``minimum``."""
        value = self._required(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, f"must be a whole number, not {value!r}")
        if value < minimum:
            raise self.wrong(key, f"is {value}; it must be at least {minimum}")
        return value

    def number(self, key: str, default: float | None = None, minimum: float = 0.0) -> float:
        """Returns a number that is at least ``minimum``."""
        value = self._required(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, f"must be a number, not {value!r}")
        if not minimum <= value < float("inf"):
            raise self.wrong(key, f"is {value}; it must be a finite number of at least {minimum:g}")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """Returns true or false."""
        value = self.raw(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, not {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Returns a string."""
        value = self._required(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, not {value!r}")
        return value

    def choice(self, key: str, kind: type[Choice], default: Choice) -> Choice:
        """Returns one of the words of an enumeration."""
        value = self.text(key, default.value)
        words = [item.value for item in kind]
        if value not in words:
            raise self.wrong(key, f"is {value!r}; {nearest(value, words)}")
        return kind(value)

    def word(self, key: str, known: Iterable[str], default: str) -> str:
        """Returns one of the known words."""
        value = self.text(key, default)
        words = tuple(known)
        if value not in words:
            raise self.wrong(key, f"is {value!r}; {nearest(value, words)}")
        return value

    def wrong(self, key: str, what: str) -> ScenarioError:
        """Returns the error for a value that cannot be used."""
        return ScenarioError(f"{self.path(key)} {what}")

    def finish(self) -> None:
        """Raises ScenarioError for a key nobody knows."""
        for key in self._values:
            if key not in self._known:
                raise ScenarioError(f"{self.path(key)} is not a key of a scenario; {nearest(key, self._known)}")

    def _required(self, key: str, default: Any) -> Any:
        value = self.raw(key, default)
        if value is None:
            raise self.wrong(key, "is missing")
        return value
