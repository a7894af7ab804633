"""The scenarios that ship: files beside this one, one per story."""

from importlib import resources
from importlib.resources.abc import Traversable


def shipped_scenarios() -> dict[str, Traversable]:
    """Returns the shipped scenario files by name, sorted."""
    entries = sorted(resources.files("engine.workloads.scenarios").iterdir(), key=lambda entry: entry.name)
    return {entry.name.removesuffix(".toml"): entry for entry in entries if entry.name.endswith(".toml")}
