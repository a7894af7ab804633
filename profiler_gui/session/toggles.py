"""What is switched on for a rerun: values to be undone and compared, without the engine's objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

Value = bool | int | float | str
Chosen = Mapping[str, Mapping[str, Value]]
"""Id of an optimization → its parameters that are not at their default."""


@dataclass(frozen=True, slots=True)
class Toggles:
    """Optimizations that are on, and parameters the user has set of any.

    Attributes:
        on: Ids of what is switched on.
        parameters: (id, name, value) of what was set, in alphabetical order; kept while an optimization is off.
    """

    on: frozenset[str] = frozenset()
    parameters: tuple[tuple[str, str, Value], ...] = ()

    def switched(self, optimization: str, *, on: bool) -> Toggles:
        """Returns them with one switched on or off."""
        return replace(self, on=self.on | {optimization} if on else self.on - {optimization})

    def with_parameter(self, optimization: str, name: str, value: Value | None) -> Toggles:
        """Returns them with one parameter set; None for its default."""
        others = [item for item in self.parameters if item[:2] != (optimization, name)]
        own = [] if value is None else [(optimization, name, value)]
        return replace(self, parameters=tuple(sorted(others + own, key=lambda item: item[:2])))

    def parameters_of(self, optimization: str) -> dict[str, Value]:
        """Returns what was set of one optimization, by name."""
        return {name: value for identifier, name, value in self.parameters if identifier == optimization}

    @property
    def chosen(self) -> dict[str, dict[str, Value]]:
        """What is on, with the parameters set: what a rerun is asked for."""
        return {identifier: self.parameters_of(identifier) for identifier in sorted(self.on)}


def toggles_of(chosen: Chosen) -> Toggles:
    """Returns the toggles under which a rerun is asked for exactly ``chosen``."""
    parameters = [(key, name, value) for key, values in chosen.items() for name, value in values.items()]
    return Toggles(frozenset(chosen), tuple(sorted(parameters, key=lambda item: item[:2])))


def text_of(chosen: Chosen) -> str:
    """Returns what is on, as ``--enable`` takes it, separated by commas and spaces; "" for nothing."""
    return ", ".join(_one(key, values) for key, values in chosen.items())


def _one(identifier: str, values: Mapping[str, Value]) -> str:
    listed = ",".join(f"{name}={_written(value)}" for name, value in values.items())
    return f"{identifier}:{listed}" if listed else identifier


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
