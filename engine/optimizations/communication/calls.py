"""The collectives of a task graph: what each does, in which role, and whether anything may be said of its transfer."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from engine.graph.collective_kinds import CollectiveKind, collective_kind
from engine.graph.task_graph import TaskGraph, TaskKind

SMALL_BYTES = 4096
"""Norms, losses and flags are this small; no bucket of gradients is."""
_DATA_WORDS = frozenset({"dp", "dp_cp", "intra_dp_cp", "dp_modulo_exp_cp", "edp", "exp_dp", "data", "data_parallel"})
_TENSOR_WORDS = frozenset({"tp", "tensor", "tensor_parallel", "tensor_model_parallel"})
_STAGE_WORDS = frozenset({"pp", "pipeline", "pipeline_parallel", "pipeline_model_parallel"})
_WHOLE_WORDS = frozenset({"", "default_pg", "default_group", "world"})
"""Without any other group the job is plain data parallelism: all ranks reduce gradients with each other."""


class Role(IntEnum):
    """What a collective is for."""

    OTHER = 0
    GRADIENTS = 1
    """Reduces gradients over replicas."""
    PARAMETERS = 2
    """Gathers updated weights from replicas."""
    TENSOR = 3
    """Stands between the products of a layer that several devices share."""
    STAGES = 4
    """Passes activations or their gradients between pipeline stages."""


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """The collective tasks of a graph in index order. Columns of shape (calls,).

    Attributes:
        task: int32.
        kind: uint8 CollectiveKind.
        role: uint8 Role.
        members: int64 ranks of the group, 0 where unknown.
        group: int32 index into ``graph.groups``, −1 where unknown.
        split: bool: all members are known, so the duration is the transfer.
    """

    task: Int32Array
    kind: UInt8Array
    role: UInt8Array
    members: Int64Array
    group: Int32Array
    split: BoolArray

    def __len__(self) -> int:
        return len(self.task)

    def of(self, *roles: Role) -> "Calls":
        """Returns the calls of some roles."""
        return self.select(np.isin(self.role, roles))

    def select(self, rows: BoolArray | Int64Array) -> "Calls":
        """Returns some of the calls, by mask or row."""
        return Calls(
            self.task[rows], self.kind[rows], self.role[rows], self.members[rows], self.group[rows], self.split[rows]
        )


def calls_of(graph: TaskGraph) -> Calls:
    """Returns the collectives of ``graph``; names and groups decide their roles, small ones are OTHER."""
    task = np.flatnonzero(graph.kind == TaskKind.COLLECTIVE).astype(np.int32)
    kind = _kinds(graph, task)
    group, group_role, members = _groups(graph, task)
    reduces = np.isin(kind, (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE))
    # A payload of 0 is one the capture does not tell: it may be large, unless the job's large ones are told.
    known = graph.bytes[task] > SMALL_BYTES
    large = known if np.any(known & (group_role == Role.GRADIENTS)) else known | (graph.bytes[task] <= 0)
    role = np.zeros(len(task), dtype=np.uint8)
    role[(group_role == Role.GRADIENTS) & reduces & large] = Role.GRADIENTS
    role[(group_role == Role.GRADIENTS) & (kind == CollectiveKind.ALL_GATHER) & large] = Role.PARAMETERS
    role[(group_role == Role.TENSOR) & large] = Role.TENSOR
    between = np.isin(kind, (CollectiveKind.SEND, CollectiveKind.RECEIVE, CollectiveKind.SEND_RECEIVE))
    role[between & (group_role == Role.STAGES)] = Role.STAGES
    return Calls(task, kind, role, members, group, graph.rendezvous[task] >= 0)


def call_names(graph: TaskGraph, calls: Calls) -> list[str]:
    """Returns the name of each call."""
    return graph.strings.texts(graph.name[calls.task])


def _kinds(graph: TaskGraph, task: Int32Array) -> UInt8Array:
    names, inverse = np.unique(graph.name[task], return_inverse=True)
    kinds = np.array([collective_kind(graph.strings.text(name)) for name in names.tolist()], dtype=np.uint8)
    return kinds[inverse]


def _groups(graph: TaskGraph, task: Int32Array) -> tuple[Int32Array, UInt8Array, Int64Array]:
    """Returns index, role and size of each task's group; a Python loop over distinct groups only."""
    index = {group.id: number for number, group in enumerate(graph.groups)}
    used, inverse = np.unique(graph.group[task], return_inverse=True)
    texts = [graph.strings.text(item) for item in used.tolist()]
    numbers = [index.get(text, -1) for text in texts]
    words = [graph.groups[number].name.casefold() if number >= 0 else "" for number in numbers]
    plain = all(word in _WHOLE_WORDS for word in words)
    roles = np.array([_group_role(word, plain) for word in words], dtype=np.uint8)
    sizes = np.array([len(graph.groups[number].ranks) if number >= 0 else 0 for number in numbers], dtype=np.int64)
    return np.array(numbers, dtype=np.int32)[inverse], roles[inverse], sizes[inverse]


def _group_role(word: str, plain: bool) -> Role:
    """Returns what a group of this name is for; ``"dp or dp_cp"`` is a group two names fit."""
    alternatives = {part.strip() for part in word.split(" or ")}
    if alternatives <= _DATA_WORDS or (plain and word in _WHOLE_WORDS):
        return Role.GRADIENTS
    if alternatives <= _TENSOR_WORDS:
        return Role.TENSOR
    return Role.STAGES if alternatives & _STAGE_WORDS else Role.OTHER
