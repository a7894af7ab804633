"""The catalogue of optimizations: the ``optimizations`` document and its texts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.optimizations.fitting import Platform, fitting
from engine.optimizations.interface import Conflict, Optimization, Parameter, Switch

SCHEMA = "cannscope.optimizations/1"
SIMULATOR_ONLY = "only a simulator has it; the switches are the nearest real ones"


def catalogue_document(shown: Sequence[Optimization], catalogue: Sequence[Optimization]) -> dict[str, Any]:
    """Returns the document of the catalogue.

    Args:
        shown: What is described.
        catalogue: Everything there is; conflicts are stated once per pair and listed here on both sides.
    """
    return {"schema": SCHEMA, "optimizations": [optimization_document(item, catalogue) for item in shown]}


def optimization_document(item: Optimization, catalogue: Sequence[Optimization]) -> dict[str, Any]:
    """Returns one optimization with everything a user has to know before switching it on."""
    return {
        "id": item.id,
        "title": item.title,
        "group": item.group.value,
        "summary": item.summary,
        "parameters": [asdict(parameter) for parameter in item.parameters],
        "switches": switch_documents(item),
        "conflicts": [
            {"with": conflict.other, "reason": conflict.reason} for conflict in conflicts_of(item, catalogue)
        ],
        "needs": list(item.needs),
        "simulator_only": item.simulator_only,
        "risk": item.risk,
        "undo": item.undo,
        "verify": item.verify,
        "provenance": item.provenance,
    }


def switch_documents(item: Optimization, platform: Platform | None = None) -> list[dict[str, str]]:
    """Returns how an optimization is switched on for real: on ``platform``, or anywhere."""
    return [asdict(switch) for switch in switches_on(item, platform)]


def switches_on(item: Optimization, platform: Platform | None) -> tuple[Switch, ...]:
    """Returns the real switches of an optimization that can be set on ``platform``; all where that is not known."""
    return item.switches if platform is None else fitting(item.switches, platform)


def conflicts_of(item: Optimization, catalogue: Sequence[Optimization]) -> tuple[Conflict, ...]:
    """Returns what cannot be on with an optimization, whichever of the two states it."""
    stated_by_others = (
        Conflict(other.id, conflict.reason)
        for other in catalogue
        for conflict in other.conflicts
        if conflict.other == item.id
    )
    return (*item.conflicts, *stated_by_others)


def catalogue_text(shown: Sequence[Optimization]) -> RenderableType:
    """Returns the catalogue for people: a row per optimization with its real switch."""
    table = Table("id", "what", "parameters", "real switch", box=None)
    table.columns[0].no_wrap = True
    table.columns[-1].overflow = "fold"
    for item in shown:
        switch = item.switches[0] if item.switches else None
        real = f"{switch.framework}: {switch.switch}" if switch else "–"
        if item.simulator_only:
            real = f"simulator only; nearest: {real}" if switch else "simulator only"
        parameters = ", ".join(f"{parameter.name}={_value(parameter)}" for parameter in item.parameters)
        table.add_row(item.id, item.title, parameters or "–", real)
    return Group(
        table, Text("cannscope optimizations ID prints switches with versions, conflicts, risk and how to verify.")
    )


def optimization_text(item: Optimization, catalogue: Sequence[Optimization]) -> RenderableType:
    """Returns everything about one optimization for people."""
    parts: list[RenderableType] = [Text(f"{item.id}: {item.title}", style="bold"), Text(item.summary)]
    if item.simulator_only:
        parts.append(Text(SIMULATOR_ONLY[0].upper() + SIMULATOR_ONLY[1:] + "."))
    if item.parameters:
        parts.append(_parameter_table(item.parameters))
    lines = _switch_lines(item)
    lines += [f"Conflicts with {conflict.other}: {conflict.reason}." for conflict in conflicts_of(item, catalogue)]
    lines += [f"Needs {needed} switched on with it." for needed in item.needs]
    said = (("Risk", item.risk), ("Undo", item.undo), ("Verify", item.verify), ("Constants", item.provenance))
    lines += [f"{word}: {text}" for word, text in said if text]
    return Group(*parts, Text("\n".join(lines)))


def _parameter_table(parameters: Sequence[Parameter]) -> Table:
    table = Table("parameter", "what", "default", "allowed", "default from", title="Parameters", title_justify="left")
    for item in parameters:
        table.add_row(item.name, item.title, _value(item), _allowed(item), item.provenance or "–")
    return table


def _switch_lines(item: Optimization) -> list[str]:
    """Returns the real switches in lines that can be copied whole."""
    lines = ["Real switches:"] if item.switches else []
    for switch in item.switches:
        versions = switch.versions or "versions not stated"
        lines += [f"  {switch.framework} ({versions}), {switch.documented_in}:", f"      {switch.switch}"]
        lines += [f"      {switch.note}"] if switch.note else []
    return lines


def _value(parameter: Parameter) -> str:
    value = parameter.default
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text or '""'


def _allowed(parameter: Parameter) -> str:
    if parameter.choices:
        return ", ".join(choice or '""' for choice in parameter.choices)
    bounds = []
    if parameter.minimum is not None:
        bounds.append(f"≥ {parameter.minimum:g}")
    if parameter.maximum is not None:
        bounds.append(f"≤ {parameter.maximum:g}")
    return " and ".join(bounds) or "any"
