"""The fields of the New Simulation dialog as data: which key of a scenario each one edits, and how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

KeyPath = tuple[str, ...]


class Group(StrEnum):
    """Under which heading a field stands."""

    JOB = "Job"
    LAYOUT = "Parallelism"
    BATCH = "Batch"
    MEMORY = "Memory"
    LENGTH = "Run"
    REQUESTS = "Requests"
    ENGINE = "Engine"
    LIMITS = "Limits"


@dataclass(frozen=True, slots=True)
class ScenarioField:
    """One field.

    Attributes:
        path: Its key in a scenario.
        title: English, with a mnemonic; shown through ``tr``.
        group: Where it stands.
        default: What the engine takes where the key is absent; its type decides the control.
        choices: Values to choose from; empty for free input.
        minimum: Of numbers.
        maximum: Of numbers.
        scale: A number of the file is the number in the form times this.
        unit: Behind the number, shown through ``tr``.
        unset: What the control shows for its lowest value, which leaves the key away; "" where it has no such value.
        tip: One sentence, shown through ``tr``.
    """

    path: KeyPath
    title: str
    group: Group
    default: Any
    choices: tuple[str, ...] = ()
    minimum: float = 1
    maximum: float = 1_000_000
    scale: int = 1
    unit: str = ""
    unset: str = ""
    tip: str = ""


LENGTHS: KeyPath = ("batch", "sequence_length")
"""Edited by a control of its own: a number, or a distribution."""
PROFILED: KeyPath = ("run", "profile_steps")
"""Edited as a list of numbers."""


def scenario_fields() -> tuple[ScenarioField, ...]:
    """Returns all fields with the engine's own defaults and choices, in the order of the form."""
    from engine.devices.catalogue import device_ids
    from engine.workloads.models.catalogue import model_ids

    return (
        ScenarioField(("name",), "&Name", Group.JOB, "unnamed"),
        ScenarioField(("model", "preset"), "&Model", Group.JOB, "gpt-oss-20b", model_ids()),
        ScenarioField(("device", "preset"), "&Device", Group.JOB, "910b2", device_ids()),
        ScenarioField(("device", "count"), "De&vices", Group.JOB, 1, tip="How many devices the job runs on."),
        ScenarioField(("seed",), "See&d", Group.JOB, 0, minimum=0, tip="The same scenario and seed run the same."),
        *_layout_fields(),
        ScenarioField(
            ("batch", "micro"), "Mi&cro-batch", Group.BATCH, 1, tip="Sequences per micro-batch of one replica."
        ),
        ScenarioField(("batch", "global"), "&Global batch", Group.BATCH, 1, tip="Sequences per step, all replicas."),
        *_memory_fields(),
        ScenarioField(("run", "steps"), "&Steps", Group.LENGTH, 3, maximum=100_000),
    )


def _layout_fields() -> tuple[ScenarioField, ...]:
    from engine.workloads.scenario import Schedule

    group = Group.LAYOUT
    return (
        ScenarioField(
            ("parallel", "data"), "Dat&a", group, 0, minimum=0, unset="what is left", tip="Replicas of the model."
        ),
        ScenarioField(("parallel", "tensor"), "&Tensor", group, 1, tip="Devices that share every layer."),
        ScenarioField(("parallel", "pipeline"), "&Pipeline", group, 1, tip="Stages of layers."),
        ScenarioField(
            ("parallel", "virtual_pipeline"), "Chunks per stage", group, 1, tip="For the interleaved schedule."
        ),
        ScenarioField(("parallel", "context"), "Conte&xt", group, 1, tip="Devices that share every sequence."),
        ScenarioField(("parallel", "expert"), "&Expert", group, 1, tip="Devices that share the experts."),
        ScenarioField(
            ("parallel", "schedule"),
            "Sched&ule",
            group,
            str(Schedule.ONE_FORWARD_ONE_BACKWARD),
            tuple(map(str, Schedule)),
        ),
    )


def _memory_fields() -> tuple[ScenarioField, ...]:
    from engine.workloads.scenario import MemorySettings, OutOfMemoryPolicy, Recompute
    from engine.workloads.scenario_file import ALLOCATORS

    defaults, group = MemorySettings(), Group.MEMORY
    return (
        ScenarioField(("memory", "allocator"), "All&ocator", group, defaults.allocator, ALLOCATORS),
        ScenarioField(
            ("memory", "limit_bytes"),
            "&Limit",
            group,
            0.0,
            minimum=0,
            scale=1 << 30,
            unit="GiB",
            unset="the device's",
            tip="What the allocator may reserve.",
        ),
        ScenarioField(
            ("memory", "on_out_of_memory"),
            "On out o&f memory",
            group,
            str(defaults.on_out_of_memory),
            tuple(map(str, OutOfMemoryPolicy)),
            tip="Abort, or catch it, empty the cache and split the micro-batch in two.",
        ),
        ScenarioField(
            ("memory", "recompute"), "&Recompute", group, str(defaults.recompute), tuple(map(str, Recompute))
        ),
        ScenarioField(
            ("memory", "long_lived", "per_step"),
            "Long-li&ved tensors per step",
            group,
            defaults.long_lived.per_step,
            minimum=0,
            tip="Born in the middle of steps, they outlive them: statistics kept, caches per new shape.",
        ),
        ScenarioField(
            ("memory", "long_lived", "lifetime_steps"),
            "Their life in steps",
            group,
            defaults.long_lived.lifetime_steps,
            minimum=0,
            unset="for ever (a leak)",
        ),
    )


def value_at(document: Mapping[str, Any], path: KeyPath) -> Any:
    """Returns what a document holds under a path; None where it holds nothing there."""
    value: Any = document
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def with_value(document: Mapping[str, Any], path: KeyPath, value: Any) -> dict[str, Any]:
    """Returns the document with another value under a path; with None the key is left away."""
    key, *rest = path
    changed = dict(document)
    if rest:
        inner = changed.get(key)
        value = with_value(inner if isinstance(inner, Mapping) else {}, tuple(rest), value) or None
    if value is None:
        changed.pop(key, None)
    else:
        changed[key] = value
    return changed


def blamed_path(message: str, known: Iterable[KeyPath]) -> KeyPath | None:
    """Returns the field an error of the engine is about: its messages begin with the key; None for none of ours."""
    found = re.match(r"[a-z_]+(?:\.[a-z_]+)*", message)
    if found is None:
        return None
    words = tuple(found[0].split("."))
    paths = list(known)
    for length in range(len(words), 0, -1):
        if words[:length] in paths:
            return words[:length]
    return next((path for path in paths if path[:1] == words), None)
