"""Writing a scenario document as TOML: tables of plain values, with inline tables and lists inside them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.core.errors import ScenarioError

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_INLINE = frozenset({"sequence_length", "requests"})
"""Keys whose tables read better in one line."""


def scenario_text(document: Mapping[str, Any]) -> str:
    """Returns the TOML text of a scenario document; reading it again gives an equal document.

    Raises:
        ScenarioError: It holds something TOML has no word for.
    """
    lines: list[str] = []
    _write_table(document, (), lines)
    return "\n".join(lines).strip("\n") + "\n"


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    below = [key for key, value in table.items() if isinstance(value, Mapping) and not _stands_in_line(path, key)]
    plain = [key for key in table if key not in below]
    if path and (plain or not below):
        lines += ["", f"[{'.'.join(map(_key, path))}]"]
    lines += [f"{_key(key)} = {_value(table[key])}" for key in plain]
    for key in below:
        _write_table(table[key], (*path, key), lines)


def _stands_in_line(path: tuple[str, ...], key: str) -> bool:
    return key in _INLINE or path[:1] == ("optimizations",)


def _key(key: str) -> str:
    return key if key and set(key) <= _BARE else _text(key)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case Sequence():
            return f"[{', '.join(map(_value, value))}]"
    message = f"a scenario file cannot hold {value!r}"
    raise ScenarioError(message)


def _text(text: str) -> str:
    """Returns a basic string; JSON's escapes are TOML's, but DEL must be escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
