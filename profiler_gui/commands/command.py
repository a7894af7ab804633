"""A command: one thing a user can do, by menu, key or palette."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from profiler_gui.session.session import Session


class KeyPreset(StrEnum):
    """Whose keys a user is at home with, where the peers disagree."""

    PERFETTO = "perfetto"
    INSIGHT = "insight"


def always(session: Session) -> bool:
    """The predicate of commands that can always run."""
    return True


def with_document(session: Session) -> bool:
    """Whether a capture is open."""
    return session.document is not None


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a user can do.

    Attributes:
        id: ``"timeline.zoom_in"``; unique.
        title: English, with a mnemonic where it stands in a menu (``"Zoom &In"``); shown through ``tr``.
        run: Does it.
        keys: Shortcuts in Qt's spelling; several are alternatives.
        preset_keys: Shortcuts of a preset, instead of ``keys``.
        menu: Path of menu titles (``("&View", "&Zoom")``); () for a command that stands in no menu.
        group: Commands of one menu with different groups are separated by a line.
        is_enabled: Whether it can run now.
        is_checked: For a toggle: whether it is on; None for a plain command.
        scope: Id of the pane in which the keys work; "" for the whole window. Letter keys need a scope.
        in_palette: Whether the palette lists it.
    """

    id: str
    title: str
    run: Callable[[], None]
    keys: tuple[str, ...] = ()
    preset_keys: Mapping[KeyPreset, tuple[str, ...]] = field(default_factory=dict)
    menu: tuple[str, ...] = ()
    group: str = ""
    is_enabled: Callable[[Session], bool] = always
    is_checked: Callable[[], bool] | None = None
    scope: str = ""
    in_palette: bool = True

    def keys_of(self, preset: KeyPreset) -> tuple[str, ...]:
        """Returns the shortcuts under a preset."""
        return self.preset_keys.get(preset, self.keys)

    @property
    def plain_title(self) -> str:
        """The title without mnemonic marks."""
        return self.title.replace("&&", "\0").replace("&", "").replace("\0", "&")


class CommandRegistry:
    """All commands of a window, in the order they were added."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}

    def add(self, *commands: Command) -> None:
        """Adds commands; ValueError where an id is taken."""
        for command in commands:
            if command.id in self._commands:
                message = f"the command {command.id!r} is registered twice"
                raise ValueError(message)
            self._commands[command.id] = command

    def __getitem__(self, command_id: str) -> Command:
        return self._commands[command_id]

    def __contains__(self, command_id: object) -> bool:
        return command_id in self._commands

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands.values())

    def __len__(self) -> int:
        return len(self._commands)

    def run(self, command_id: str, session: Session) -> bool:
        """Runs a command if it is enabled now; returns whether it ran."""
        command = self._commands[command_id]
        if not command.is_enabled(session):
            return False
        command.run()
        return True


def conflicts(commands: CommandRegistry, preset: KeyPreset) -> tuple[tuple[str, str, str], ...]:
    """Returns (key, id, id) for every key that two commands of one scope (or one of them global) claim."""
    claims: dict[str, list[Command]] = {}
    found = []
    for command in commands:
        for key in command.keys_of(preset):
            for other in claims.setdefault(key.lower(), []):
                if other.scope == command.scope or not other.scope or not command.scope:
                    found.append((key, other.id, command.id))
            claims[key.lower()].append(command)
    return tuple(found)
