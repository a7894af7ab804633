"""A fusion of chains of kernels into one real fused operator: what all of them share."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import BoolArray
from engine.core.number_format import format_duration_ns
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.optimizations.answers import already_on, applies, no_effect, unknown
from engine.optimizations.fusion.memory_edits import without_blocks_of
from engine.optimizations.fusion.operator_prices import ASSUMED_DTYPE
from engine.optimizations.fusion.places import RankPlaces, places_of
from engine.optimizations.fusion.rewriting import fusable, fuse_tasks
from engine.optimizations.fusion.task_groups import TaskGroups, joined_groups
from engine.optimizations.fusion.task_lookup import groups_of, launch_limit_ns
from engine.optimizations.interface import AllocationEdit, Applicability, Bound, CapturePlan, Parameters


@dataclass(frozen=True, slots=True)
class Target:
    """One pattern and the kernel that takes its place.

    Attributes:
        pattern: Id in the catalogue of ``engine.analyses.fusion``.
        kernel: Name of the fused kernel.
        kind: What it needs of the device.
        keeps_results: Whether what the single kernels allocate stays.
    """

    pattern: str
    kernel: str
    kind: TaskKind = TaskKind.VECTOR
    keeps_results: bool = False


@dataclass(frozen=True, slots=True)
class PatternFusion:
    """The capture side of a fusion.

    Attributes:
        id: Of the optimization.
        targets: What it replaces; also patterns that are matched first because they contain these (``shields``).
        chain: What is replaced, for people, in plural: ``"RMSNorms written out"``.
        fused: Matches names of kernels that show it is on already.
        shields: Patterns whose kernels belong to something else.
        counts_calls: Whether places are runs of one call: the reason counts kernels instead.
        assumption: What every price rests on beside shapes, "" for nothing.
    """

    id: str
    targets: tuple[Target, ...]
    chain: str
    fused: re.Pattern[str]
    shields: tuple[str, ...] = ()
    counts_calls: bool = False
    assumption: str = ""

    def check(self, plan: CapturePlan, parameters: Parameters) -> Applicability:
        """Returns whether chains are left to fuse, with their number and time."""
        del parameters
        if not np.any(plan.graph.stream != Stream.HOST):
            return unknown("the capture has no device tasks")
        places = self._places(plan)
        parts = [self._groups(plan.graph, item, Bound.EXPECTED) for item in places if item.found.is_usable]
        if sum(map(len, parts)):
            groups = joined_groups(parts)
            done = fusable(plan.graph, groups)
            if not np.any(done):
                return no_effect(
                    f"{len(groups):,} {self.chain}, but something else has to run between the kernels of each"
                )
            return applies(self._reason(plan.graph, groups.select(done)))
        if any(not item.found.is_usable for item in places):
            call = places[0].found.pattern.npu_call
            return no_effect(f"{len(places[0].found)} {self.chain}, but {call} has no derivative and this is training")
        fused = _named(plan.graph, self.fused)
        if np.any(fused):
            names = set(plan.graph.strings.texts(plan.graph.name[fused]))
            whole = re.compile(rf"[a-z]*(?:{self.fused.pattern})[a-z]*", re.I)
            words = sorted({match.group().removeprefix("aclnn") for match in map(whole.search, names) if match})
            return already_on(f"{int(fused.sum()):,} kernels are fused already ({', '.join(words)})")
        tasks = int(np.count_nonzero((plan.graph.stream != Stream.HOST) & (plan.graph.kind != TaskKind.COLLECTIVE)))
        return no_effect(f"no {self.chain} among {tasks:,} device tasks")

    def apply(self, plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
        """Returns the plan with every chain replaced."""
        del parameters
        places = [item for item in self._places(plan) if item.found.is_usable]
        parts = [self._groups(plan.graph, item, bound) for item in places]
        if not sum(map(len, parts)):
            return plan
        return fused_plan(plan, joined_groups(parts), bound, self._assumptions(plan, places))

    def _places(self, plan: CapturePlan) -> tuple[RankPlaces, ...]:
        wanted = tuple(item.pattern for item in self.targets)
        found = places_of(plan.capture, (*self.shields, *wanted), plan.device)
        return tuple(item for item in found if item.found.pattern.id in wanted)

    def _groups(self, graph: TaskGraph, places: RankPlaces, bound: Bound) -> TaskGroups:
        target = next(item for item in self.targets if item.pattern == places.found.pattern.id)
        return groups_of(graph, places, target.kernel, target.kind, bound, keeps_results=target.keeps_results)

    def _reason(self, graph: TaskGraph, groups: TaskGroups) -> str:
        busy_ns, fused_ns = int(graph.duration_ns[groups.tasks].sum()), int(groups.duration_ns.sum())
        ranks = len(np.unique(graph.rank[groups.tasks]))
        where = f" on {ranks} ranks" if ranks > 1 else ""
        now, then = format_duration_ns(busy_ns), format_duration_ns(fused_ns)
        if self.counts_calls:
            what = f"{len(groups.tasks):,} kernels run one by one{where} and take {now}"
        else:
            what = f"{len(groups):,} {self.chain}{where} are {len(groups.tasks):,} kernels and take {now}"
        return f"{what}; {len(groups):,} fused would take {then}{'' if fused_ns <= busy_ns else ', which is more'}"

    def _assumptions(self, plan: CapturePlan, places: Iterable[RankPlaces]) -> tuple[str, ...]:
        items = tuple(places)
        total, priced = sum(len(item.found) for item in items), sum(item.priced_count for item in items)
        device = plan.device.title if plan.device is not None else "the device"
        how = f"{priced} of {total} fused kernels are priced by the cost model of {device}" if priced else ""
        rest = f"{total - priced} by the bytes and fixed costs of the kernels they replace" if priced < total else ""
        typed = all(item.has_types for item in items)
        dtype = "" if typed or not priced else f"element types are not recorded: {ASSUMED_DTYPE.name} is taken"
        said = (how, rest, self.assumption if priced else "", dtype)
        return (f"{self.id}: {'; '.join(filter(None, said))}",)


def fused_plan(plan: CapturePlan, groups: TaskGroups, bound: Bound, assumptions: tuple[str, ...]) -> CapturePlan:
    """Returns the plan with groups of tasks fused, blocks of intermediates dropped, and what it rests on added."""
    rewritten = fuse_tasks(plan.graph, groups, launch_limit_ns(plan.graph, bound))
    if not np.any(rewritten.done):
        return plan
    left = int(np.count_nonzero(~rewritten.done))
    notes = []
    if left:
        notes.append(f"{left} chains stay as they are: something else has to run between their kernels")
    if rewritten.removed_host_ns:
        removed = format_duration_ns(rewritten.removed_host_ns)
        notes.append(f"{removed} of host time, as recorded with the profiler on, vanish with the launches of kernels")
    return replace(
        plan,
        graph=rewritten.graph,
        edits=_edits(plan, groups.select(rewritten.done)),
        assumptions=(*plan.assumptions, *assumptions, *notes),
    )


def _edits(plan: CapturePlan, groups: TaskGroups) -> dict[int, AllocationEdit]:
    edits = dict(plan.edits)
    gone = groups.intermediate
    for entry in plan.capture.job.ranks:
        events = plan.graph.origin_event[gone[plan.graph.rank[gone] == entry.rank]]
        edit = without_blocks_of(entry.trace, events[events >= 0], edits.get(entry.rank))
        if edit is not None:
            edits[entry.rank] = edit
    return edits


def _named(graph: TaskGraph, pattern: re.Pattern[str]) -> BoolArray:
    """Returns which device tasks have a matching name, bool, shape (tasks,)."""
    names, inverse = np.unique(graph.name, return_inverse=True)
    hits = np.array([pattern.search(text) is not None for text in graph.strings.texts(names)], dtype=np.bool_)
    result: BoolArray = hits[inverse] & (graph.stream != Stream.HOST) if len(names) else np.empty(0, dtype=np.bool_)
    return result
