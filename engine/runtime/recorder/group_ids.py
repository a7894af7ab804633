"""Communication groups as HCCL knows them: by a decimal hash, whose last digits stand in the names of its operators."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.graph.task_graph import TaskGraph

_HASH_DIGITS = 19
_FEWEST_DIGITS = 3
"""HCCL shows three; more where groups could not be told apart by them."""


@dataclass(frozen=True, slots=True)
class HcclGroup:
    """One group.

    Attributes:
        id: Decimal hash, "" for no group.
        digits: Its last digits, as operators carry them; different ones for different groups of a job.
    """

    id: str
    digits: str


def hccl_groups(graph: TaskGraph) -> Mapping[str, HcclGroup]:
    """Returns every group of a graph by the id the graph calls it; ids that are decimal hashes already stay."""
    used = graph.strings.texts(np.unique(graph.group))
    names = sorted({group.id for group in graph.groups} | set(used) - {""})
    ids = {name: name if name.isdecimal() and len(name) > _FEWEST_DIGITS else _hash(name) for name in names}
    digits = _FEWEST_DIGITS
    while len({value[-digits:] for value in ids.values()}) < len(set(ids.values())):
        digits += 1
    return {"": HcclGroup("", "0")} | {name: HcclGroup(value, value[-digits:]) for name, value in ids.items()}


def _hash(name: str) -> str:
    """Returns a number of 19 digits that depends on the name only."""
    number = int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest(), "big")
    return str(number % 10**_HASH_DIGITS).zfill(_HASH_DIGITS)
