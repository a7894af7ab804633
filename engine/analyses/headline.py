"""The first sentence: where the step of a rank went, in parts that never exceed the whole."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engine.analyses.communication import Collective, JobCommunication
from engine.analyses.memory import NET_CHANGE, MemoryAnalysis
from engine.analyses.serving.sentence import service_sentence
from engine.analyses.step_ranges import positions_of_collectives
from engine.analyses.steps import Step
from engine.analyses.summary import JobSummary, RankSummary
from engine.analyses.typical_step import measured_steps, step_length_ns, typical_step
from engine.core.number_format import format_count, format_duration_ns, format_ratio
from engine.core.units import MIB
from engine.trace.intervals import union

MOSTLY_RATIO = 0.9
"""Whom a rank waits for is named without "mostly" once this share of its waiting is for them."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the sentence.

    Attributes:
        id: ``"waiting"``, ``"computing"``, ``"idle"``, ``"transfer"``, ``"communication"`` (unsplit), ``"overlap"``.
        ns: Its time.
        ratio: Of the step.
        text: ``"waits 39 % for rank 2"``.
    """

    id: str
    ns: float
    ratio: float
    text: str


@dataclass(frozen=True, slots=True)
class Headline:
    """What the Overview says first.

    Attributes:
        step_ns: The step's length (device span where there are no steps); None without device work.
        shares: The largest first, overlap last. They are disjoint: ``computing`` is computing alone, ``waiting``,
            ``transfer`` and ``communication`` are what no computing covers, ``overlap`` is both at once.
        sentence: The whole text.
        memory_sentence: Peak allocated of reserved, or "" without memory.
    """

    step_ns: float | None
    shares: tuple[Share, ...]
    sentence: str
    memory_sentence: str


def headline(summary: JobSummary, rank: int) -> Headline:
    """Returns the first sentence about ``rank``; KeyError if the job has no such rank.

    With several steps it speaks of the one of median length (the shorter of the two middle ones).
    """
    entry = summary.rank(rank)
    memory = _memory_sentence(entry.memory)
    step = typical_step(entry.steps)
    service = "" if entry.serving is None else f"{service_sentence(entry.serving)}. Iterations with operators: "
    if step is None:
        return Headline(None, (), f"{service}{_without_device(summary, entry)}", memory)
    step_ns = step_length_ns(step)
    shares = _shares(step, step_ns, summary.communication, entry)
    parts = ", ".join(share.text for share in shares)
    opening = _opening(step, step_ns, len(measured_steps(entry.steps)))
    return Headline(step_ns, shares, f"{service}{opening}: rank {rank} {parts}", memory)


def _opening(step: Step, step_ns: float, count: int) -> str:
    length = _short_duration(step_ns)
    if step.step is None:
        return f"Device span {length}"
    if count > 1:
        return f"Step {length} (step {step.step}, the median of {format_count(count)})"
    return f"Step {length}"


def _shares(step: Step, step_ns: float, joined: JobCommunication, entry: RankSummary) -> tuple[Share, ...]:
    overlap_ns = step.overlapped_ns or 0.0
    exposed_ns = step.communication_not_overlapped_ns
    if exposed_ns is None:
        exposed_ns = max(0.0, (step.communication_ns or 0.0) - overlap_ns)
    parts: dict[str, tuple[float, str, str]] = {}
    if step.communication_ns:
        parts |= _communication_parts(step, exposed_ns, joined, entry)
    if step.computing_ns is not None:
        parts["computing"] = (max(0.0, step.computing_ns - overlap_ns), "computes", "")
    if step.free_ns is not None:
        parts["idle"] = (step.free_ns, "is idle", "")
    found = [
        Share(key, ns, ns / step_ns, " ".join(filter(None, (verb, format_ratio(ns / step_ns), rest))))
        for key, (ns, verb, rest) in parts.items()
    ]
    found.sort(key=lambda share: -share.ns)
    if step.communication_ns and step.computing_ns is not None:
        found.append(
            Share("overlap", overlap_ns, overlap_ns / step_ns, f"overlaps {format_ratio(overlap_ns / step_ns)}")
        )
    return tuple(found)


def _communication_parts(
    step: Step, exposed_ns: float, joined: JobCommunication, entry: RankSummary
) -> dict[str, tuple[float, str, str]]:
    """Returns exposed communication as waiting and transfer, or whole while it is unsplit.

    Where collectives overlap each other the exposed time is divided in the proportion of their exposed waits and
    transfers, so that the parts stay disjoint.
    """
    own = joined.collectives.get(entry.rank, ())
    inside = positions_of_collectives(own, entry.steps) == entry.steps.index(step)
    collectives = [own[index] for index in np.flatnonzero(inside).tolist()]
    if step.wait_ns is None or not collectives:
        return {"communication": (exposed_ns, "has", "communication, unsplit (open its peers to split it)")}
    waits = [item.exposed_wait_ns or 0 for item in collectives]
    whole_ns = sum(item.exposed_ns for item in collectives)
    wait_ns = min(exposed_ns, exposed_ns * sum(waits) / whole_ns) if whole_ns else 0.0
    whom = _whom(entry.rank, collectives, joined.stages) if wait_ns else ""
    return {"waiting": (wait_ns, "waits", whom), "transfer": (exposed_ns - wait_ns, "transfers", "")}


def _whom(rank: int, collectives: list[Collective], stages: Mapping[int, int]) -> str:
    """Returns whom most of the waiting is for: a stage of the pipeline, a rank, or several."""
    by_rank: dict[str, float] = defaultdict(float)
    by_stage: dict[str, float] = defaultdict(float)
    for item in collectives:
        if item.late_rank is None or item.late_rank == rank:
            continue
        by_rank[f"rank {item.late_rank}"] += item.wait_ns or 0
        stage = stages.get(item.late_rank)
        if stage is not None and stage != stages.get(rank):
            by_stage[f"the {_ordinal(stage)} stage"] += item.wait_ns or 0
    total_ns = sum(by_rank.values())
    for candidates in (by_stage, by_rank):
        name = max(candidates, key=candidates.__getitem__, default="")
        if name and candidates[name] >= MOSTLY_RATIO * total_ns:
            return f"for {name}"
        if name and candidates[name] > total_ns / 2:
            return f"mostly for {name}"
    return "for other ranks"


def _ordinal(stage: int) -> str:
    return _ORDINALS[stage] if stage < len(_ORDINALS) else f"{stage + 1}th"


def _without_device(summary: JobSummary, entry: RankSummary) -> str:
    """Returns the sentence of a trace without device work, with its waiting in host collectives where that is known."""
    events = f"{format_count(entry.event_count)} host event{'s' if entry.event_count != 1 else ''}"
    text = f"No device work: {events} in {_short_duration(entry.duration_ns)}"
    collectives = [item for item in summary.communication.collectives.get(entry.rank, ()) if item.wait_ns]
    if not collectives:
        return text
    start_ns = np.array([item.start_ns for item in collectives], dtype=np.int64)
    wait_ns = union(start_ns, start_ns + np.array([item.wait_ns for item in collectives], dtype=np.int64)).total_ns
    return f"{text}; rank {entry.rank} waits {_short_duration(wait_ns)} {_whom(entry.rank, collectives, {})}"


def _memory_sentence(memory: MemoryAnalysis | None) -> str:
    if memory is None or memory.peak_allocated_bytes is None:
        return ""
    if memory.component.endswith(NET_CHANGE):
        return f"Memory: {_mib(memory.peak_allocated_bytes)} MiB more at the peak than when the capture began"
    allocated = f"Memory: {_mib(memory.peak_allocated_bytes)} MiB allocated"
    if not memory.peak_reserved_bytes:
        return f"{allocated} at the peak"
    return f"{allocated} of {_mib(memory.peak_reserved_bytes)} MiB reserved"


def _mib(size_bytes: int) -> str:
    """Returns MiB with the two decimals in which allocators differ, without trailing zeros."""
    return f"{size_bytes / MIB:,.2f}".rstrip("0").rstrip(".")


def _short_duration(duration_ns: float) -> str:
    """Returns the duration with three significant digits at most: the sentence is read, not computed with."""
    rounded = float(f"{duration_ns:.3g}")
    number, _, unit = format_duration_ns(rounded).rpartition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
