"""Settings: a table of descriptors, and the store that keeps their values in one ini file.

A descriptor is declared beside its owner; ``app.py`` lists them all. The preferences dialog is made from that list.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from PySide6.QtCore import QByteArray, QObject, QSettings, Signal

Value = TypeVar("Value", str, int, bool)
SCHEMA_VERSION = 1
Migration = Callable[[QSettings], None]
MAX_RECENT = 12
MAX_CAPTURES = 200
"""Captures of which marks and arrangements are kept; the one touched longest ago is forgotten first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One allowed value and what it is called (an English text; shown through ``tr``)."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class SettingDescriptor(Generic[Value]):
    """One setting.

    Attributes:
        id: ``"section/name"``, the key in the file.
        default: Its type is the setting's type.
        title: English; shown through ``tr``.
        description: What it changes. English; shown through ``tr``.
        choices: Allowed values of a text setting; () for any.
        minimum: Of a number.
        maximum: Of a number.
        requires_restart: Whether a change shows only after the next start.
    """

    id: str
    default: Value
    title: str
    description: str = ""
    choices: tuple[Choice, ...] = ()
    minimum: int = 0
    maximum: int = 1_000_000
    requires_restart: bool = False


class SettingsStore(QObject):
    """The values of all settings, the recent files and the saved states of windows.

    Args:
        path: The ini file.
        descriptors: Every setting; a duplicate id raises ValueError.
        migrations: One per schema version from 1 on: ``migrations[n]`` turns version n + 1 into n + 2.

    Signals:
        changed: The id of a setting that has another value now.
        recent_changed: The list of recent captures.
    """

    changed = Signal(str)
    recent_changed = Signal()

    def __init__(
        self,
        path: Path,
        descriptors: Iterable[SettingDescriptor[Any]],
        migrations: tuple[Migration, ...] = (),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._file = QSettings(str(path), QSettings.Format.IniFormat, self)
        self._descriptors: dict[str, SettingDescriptor[Any]] = {}
        for descriptor in descriptors:
            if descriptor.id in self._descriptors:
                message = f"the setting {descriptor.id!r} is declared twice"
                raise ValueError(message)
            self._descriptors[descriptor.id] = descriptor
        self._migrate(migrations)

    def __iter__(self) -> Iterator[SettingDescriptor[Any]]:
        return iter(self._descriptors.values())

    def value(self, descriptor: SettingDescriptor[Value]) -> Value:
        """Returns the value; the default where none, or one that is not allowed, is stored."""
        stored = self._file.value(descriptor.id)
        return descriptor.default if stored is None else cast("Value", _validated(descriptor, stored))

    def set_value(self, descriptor: SettingDescriptor[Value], value: Value) -> None:
        """Stores a value; ValueError where it is not allowed."""
        if _validated(descriptor, value) != value:
            message = f"{value!r} is not allowed for {descriptor.id}"
            raise ValueError(message)
        if value != self.value(descriptor):
            self._file.setValue(descriptor.id, value)
            self.changed.emit(descriptor.id)

    def reset(self) -> None:
        """Gives every setting its default."""
        for descriptor in self:
            self.set_value(descriptor, descriptor.default)

    def state(self, name: str) -> QByteArray:
        """Returns a saved state of a window or dock layout, empty where there is none."""
        stored = self._file.value(f"state/{name}")
        return stored if isinstance(stored, QByteArray) else QByteArray()

    def save_state(self, name: str, state: QByteArray) -> None:
        """Saves a state; an empty one forgets it."""
        if state.isEmpty():
            self._file.remove(f"state/{name}")
        else:
            self._file.setValue(f"state/{name}", state)

    def text_state(self, name: str) -> str:
        """Returns a saved text, "" where there is none."""
        return bytes(self.state(name).data()).decode("utf-8", "replace")

    def save_text_state(self, name: str, text: str) -> None:
        """Saves a text; an empty one is not kept."""
        self.save_state(name, QByteArray(text.encode("utf-8")))

    def capture_state(self, capture: str, name: str) -> str:
        """Returns a text kept for one capture, "" where there is none."""
        return self.text_state(f"captures/{capture}/{name}")

    def save_capture_state(self, capture: str, name: str, text: str) -> None:
        """Keeps a text for one capture; an empty one forgets it.

        Args:
            capture: The capture's key: letters and digits.
            name: What the text is.
            text: What to keep.
        """
        known = [key for key in self.text_state("captures/order").split() if key != capture]
        for key in known[MAX_CAPTURES - 1 :]:
            self._file.remove(f"state/captures/{key}")
        self.save_text_state("captures/order", "\n".join((capture, *known[: MAX_CAPTURES - 1])))
        self.save_text_state(f"captures/{capture}/{name}", text)

    @property
    def recent(self) -> tuple[tuple[Path, ...], ...]:
        """What was opened, the latest first."""
        stored = self._file.value("recent/captures")
        lines = [stored] if isinstance(stored, str) else stored if isinstance(stored, list) else []
        return tuple(tuple(Path(part) for part in str(line).split("\n")) for line in lines if line)

    def add_recent(self, paths: tuple[Path, ...]) -> None:
        """Puts a capture at the head of the recent ones."""
        self._set_recent((paths, *(item for item in self.recent if item != paths))[:MAX_RECENT])

    def remove_recent(self, paths: tuple[Path, ...]) -> None:
        """Takes one out, as when it is no longer there."""
        self._set_recent(tuple(item for item in self.recent if item != paths))

    def clear_recent(self) -> None:
        """Forgets what was opened."""
        self._set_recent(())

    def sync(self) -> None:
        """Writes the file now."""
        self._file.sync()

    def _set_recent(self, captures: tuple[tuple[Path, ...], ...]) -> None:
        self._file.setValue("recent/captures", ["\n".join(str(path) for path in paths) for paths in captures])
        self.recent_changed.emit()

    def _migrate(self, migrations: tuple[Migration, ...]) -> None:
        stored = self._file.value("schema_version")
        version = int(str(stored)) if stored is not None and str(stored).isdecimal() else SCHEMA_VERSION
        for migration in migrations[version - 1 :]:
            migration(self._file)
        self._file.setValue("schema_version", max(version, len(migrations) + 1, SCHEMA_VERSION))


def _validated(descriptor: SettingDescriptor[Any], stored: object) -> Any:
    """Returns ``stored`` (an ini file holds texts) as the setting's type, or the default where it is not allowed."""
    default = descriptor.default
    text = str(stored)
    if isinstance(default, bool):
        return {"true": True, "false": False}.get(text.lower(), default)
    if isinstance(default, int):
        number = int(text) if text.lstrip("-").isdecimal() else default
        return number if descriptor.minimum <= number <= descriptor.maximum else default
    allowed = not descriptor.choices or any(choice.value == text for choice in descriptor.choices)
    return text if allowed else default
