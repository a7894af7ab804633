"""Keys of a scenario that say which tensors are hot and which are cold."""

import json
from collections.abc import Mapping
from typing import Any

from engine.core.errors import ScenarioError
from engine.workloads.scenario import Tiering
from engine.workloads.scenario_keys import Table, nearest

TENSOR_CLASSES = ("weights", "gradients", "optimizer_state", "activations")
_BY_OPTIMIZATION = ("optimizer_state",)
"""What the optimization moves: real jobs have swapping of the optimizer's state."""
_TIERS = ("HBM", "DDR")
_FLAG_NAMES = ("memory_hierachy", "memory_hierarchy")
_FLAGS_PREFIX = "inner_flags="


def read_tiering(memory: Table) -> Tiering | None:
    """Returns the tiers of a memory table; None where everything stays in HBM. Raises ScenarioError.

    ``tiering = { cold = […], prefetch_distance = n }`` names classes; ``tensors`` gives a class the tier of its
    ``inner_flags``, as a table or as the text ``inner_flags={"memory_hierachy": "HBM"}``. The two must agree.
    """
    table = memory.table("tiering")
    cold = table.raw("cold", [])
    if not isinstance(cold, list) or not all(isinstance(name, str) for name in cold):
        raise table.wrong("cold", f"must be a list of classes of tensors, not {cold!r}")
    distance = table.integer("prefetch_distance", Tiering().prefetch_distance)
    table.finish()
    tiers = dict.fromkeys(cold, "DDR")
    for name, tier in _flagged(memory.table("tensors")).items():
        if tiers.setdefault(name, tier) != tier:
            raise table.wrong("cold", f"names {name}, which memory.tensors keeps in {tier}")
    for name in tiers:
        if name not in TENSOR_CLASSES:
            raise table.wrong("cold", f"names {name!r}; {nearest(name, TENSOR_CLASSES)}")
    moved = tuple(name for name in TENSOR_CLASSES if tiers.get(name) == "DDR")
    return Tiering(moved, distance) if moved else None


def enabled_tiering(memory: Tiering | None, optimizations: Mapping[str, Mapping[str, Any]]) -> Tiering | None:
    """Returns the tiers of a scenario: those of its memory table, else what ``memory.tiering`` switches on."""
    if memory is not None or "memory.tiering" not in optimizations:
        return memory
    table = Table("optimizations.memory.tiering", optimizations["memory.tiering"])
    distance = table.integer("prefetch_distance", Tiering().prefetch_distance)
    table.finish()
    return Tiering(_BY_OPTIMIZATION, distance)


def _flagged(table: Table) -> dict[str, str]:
    tiers = {name: _tier(table, name) for name in TENSOR_CLASSES if table.has(name)}
    table.finish()
    return tiers


def _tier(table: Table, name: str) -> str:
    """Returns the tier a class of tensors is given by its flags."""
    value = table.raw(name)
    flags: Any = value.get("inner_flags") if isinstance(value, Mapping) and set(value) == {"inner_flags"} else None
    if isinstance(value, str) and value.replace(" ", "").startswith(_FLAGS_PREFIX):
        flags = _parsed(table, name, value.partition("=")[2])
    if not isinstance(flags, Mapping) or len(flags) != 1 or next(iter(flags)) not in _FLAG_NAMES:
        raise table.wrong(name, 'must be { inner_flags = { memory_hierachy = "HBM" } }, with "HBM" or "DDR"')
    tier = next(iter(flags.values()))
    if tier not in _TIERS:
        raise table.wrong(name, f"is in {tier!r}; known: {', '.join(_TIERS)}")
    return str(tier)


def _parsed(table: Table, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{table.path(name)}: {text.strip()!r} cannot be read: {error}") from error
