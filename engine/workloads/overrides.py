"""Changes to a scenario from the command line: ``batch.global=256``, ``fusion.attention``, ``memory.amc:key=value``."""

import tomllib
from collections.abc import Iterable
from typing import Any

from engine.core.errors import ScenarioError
from engine.workloads.optimization_ids import OPTIMIZATION_IDS
from engine.workloads.scenario_keys import nearest

OPTIMIZATIONS = "optimizations"


def set_overrides(assignments: Iterable[str]) -> dict[tuple[str, ...], Any]:
    """Returns key path → value of ``key=value`` texts; values are TOML, anything else is text."""
    overrides: dict[tuple[str, ...], Any] = {}
    for text in assignments:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ScenarioError(f"--set {text}: write it as table.key=value, for example batch.global=256")
        parts = key.strip().split(".")
        if parts[0] == OPTIMIZATIONS:
            parts = [OPTIMIZATIONS, ".".join(parts[1:])]
        overrides[tuple(parts)] = parsed(value.strip())
    return overrides


def enabled_overrides(texts: Iterable[str]) -> dict[tuple[str, ...], Any]:
    """Returns the overrides that switch optimizations on, from ``ID`` or ``ID:key=value,…``."""
    overrides: dict[tuple[str, ...], Any] = {}
    for text in texts:
        identifier, _, rest = text.partition(":")
        if identifier not in OPTIMIZATION_IDS:
            raise ScenarioError(f"--enable {identifier}: not an optimization; {nearest(identifier, OPTIMIZATION_IDS)}")
        parameters: dict[str, Any] = {}
        for part in filter(None, rest.split(",")):
            key, separator, value = part.partition("=")
            if not separator:
                raise ScenarioError(f"--enable {text}: write parameters as key=value, separated by commas")
            parameters[key.strip()] = parsed(value.strip())
        overrides[OPTIMIZATIONS, identifier] = parameters
    return overrides


def parsed(value: str) -> Any:
    """Returns a value as TOML reads it, or the text itself where TOML reads nothing."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
