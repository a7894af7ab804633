"""Who belongs to a communication group, from the job's metadata and from who has the group in its tables."""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.analyses.communication.group_hints import group_hints
from engine.trace.job import Job
from engine.trace.trace import ParallelGroup

_PAIRING_GROUPS = frozenset({"pp", "cp"})
"""Megatron's groups in which ranks send to single peers: pipeline stages, and context parallelism's ring."""


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a group as far as they are known.

    Attributes:
        ranks: All members, or None while they are not certain or not all open.
        missing: Members, certain or possible, that are not open.
        name: The framework's word for the group; several joined by "or" where more than one fits, "" for none.
    """

    ranks: tuple[int, ...] | None
    missing: tuple[int, ...]
    name: str


class GroupDirectory:
    """What the job's metadata says of its groups."""

    def __init__(self, job: Job) -> None:
        self.open = frozenset(entry.rank for entry in job.ranks)
        sizes = [entry.trace.metadata.world_size for entry in job.ranks]
        self.world_size = max((size for size in sizes if size is not None), default=None)
        self.hints = {
            (entry.rank, group): hint for entry in job.ranks for group, hint in group_hints(entry.trace).items()
        }
        known = [group for entry in job.ranks for group in entry.trace.metadata.parallel_groups]
        self.groups = [ParallelGroup(*key) for key in sorted({(group.id, group.name, group.ranks) for group in known})]

        self.unopened = tuple(rank for rank in range(self.world_size or 0) if rank not in self.open)
        """Ranks of the job that are not open, where its size is known."""

    @property
    def all_open(self) -> bool:
        """Whether every rank of the job is open."""
        return self.world_size is not None and len(self.open) >= self.world_size

    def members(self, group: str, observed: frozenset[int], only_pairs: bool) -> Members:
        """Returns the members of a group that the ranks ``observed`` (of those open) have in their tables.

        Metadata that knows the group's id decides. Otherwise (Ascend's metadata calls groups ``group_name_5``, the
        tables call them by hash) every group of the metadata is possible whose open members are those observed and
        whose order and size agree with the links; if these differ, the members stay uncertain.
        """
        named = [item for item in self.groups if item.id == group and observed <= set(item.ranks)]
        fitting = named or [item for item in self.groups if self._fits(item, group, observed)]
        if not named and only_pairs:
            fitting = [item for item in fitting if item.name in _PAIRING_GROUPS] or fitting
        if not named and (self.all_open or self._is_whole(group, observed)):
            return Members(tuple(sorted(observed)), (), _names(item for item in fitting if set(item.ranks) == observed))
        if not fitting:
            return Members(None, self._unopened_places(group, observed), "")
        possible = frozenset(rank for item in fitting for rank in item.ranks)
        missing = tuple(sorted(possible - self.open))
        certain = len({frozenset(item.ranks) for item in fitting}) == 1
        return Members(tuple(sorted(possible)) if certain and not missing else None, missing, _names(fitting))

    def _fits(self, item: ParallelGroup, group: str, observed: frozenset[int]) -> bool:
        if set(item.ranks) & self.open != observed:
            return False
        for rank in observed:
            hint = self.hints.get((rank, group))
            if hint is None:
                continue
            if len(item.ranks) < hint.size_at_least:
                return False
            if hint.own_index is not None and item.ranks[hint.own_index] != rank:
                return False
        return True

    def _is_whole(self, group: str, observed: frozenset[int]) -> bool:
        """Returns whether the observed ranks fill every place of the group up to the last one any link leads to.

        In rings, meshes and halving-doubling some of the first members always have a link beyond them if there are
        more; in a star they have not, but there the root has no link at all.
        """
        hints = [hint for rank in observed if (hint := self.hints.get((rank, group))) is not None]
        if len(hints) < len(observed) or not all(hint.has_peers for hint in hints):
            return False
        size = max(hint.size_at_least for hint in hints)
        return len(observed) == size and {hint.own_index for hint in hints} == set(range(size))

    def _unopened_places(self, group: str, observed: frozenset[int]) -> tuple[int, ...]:
        """Returns ranks that are missing where the metadata lists no groups.

        If every observed rank stands at its own number, the group begins with rank 0 and its other places are ranks.
        """
        hints = {rank: hint for rank in observed if (hint := self.hints.get((rank, group))) is not None}
        if hints and all(hint.own_index == rank for rank, hint in hints.items()):
            size = max(hint.size_at_least for hint in hints.values())
            return tuple(rank for rank in range(max(size, self.world_size or 0)) if rank not in self.open)
        return self.unopened

    def unnamed_members(self) -> Members:
        """Returns what is known of the members of collectives whose capture names no group."""
        return Members(None, self.unopened, "")

    def unnamed_candidates(self, holders: tuple[int, ...], only_pairs: bool) -> list[tuple[int, ...]]:
        """Returns sets of ranks that may share a collective without a group, the largest first.

        Only sets all of whose members are open and took part. A send and its receive have two members; whose they
        are is certain only where no third rank took part.
        """
        if not self.all_open:
            return []
        if only_pairs:
            return [tuple(sorted(holders))] if len(holders) == 2 else []  # a pair
        sets = {tuple(sorted(self.open))} | {tuple(sorted(set(item.ranks))) for item in self.groups}
        taking_part = [item for item in sets if len(item) > 1 and set(item) <= set(holders)]
        return sorted(taking_part, key=lambda item: (-len(item), item))


def _names(groups: Iterable[ParallelGroup]) -> str:
    return " or ".join(dict.fromkeys(group.name for group in groups if group.name))
