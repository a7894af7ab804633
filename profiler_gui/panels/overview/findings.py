"""What to look at first in a rank, what was checked and is fine, and what the capture cannot tell."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from profiler_gui.panels.overview.evidence import Evidence, evidence_of
from profiler_gui.panels.overview.step_bars import collectives_of_steps, step_parts
from profiler_gui.session.selection import CandidateSelection, CollectiveSelection, IdleSelection
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective
    from engine.analyses.fusion import FusionCandidate
    from engine.analyses.summary import JobSummary, RankSummary

SHOWN_COUNT = 5
"""Findings on the first screen."""
_FUSION_COUNT = 3
_OWN_RANK_WEIGHT = 1.1
"""Ranks that do the same work differ by less."""
_TIGHT_HEADROOM_RATIO = 0.1
"""Less of the device left than this is worth a finding of its own; one large activation fills it."""


@dataclass(frozen=True, slots=True)
class FindingText:
    """One finding, ready to be read.

    Attributes:
        title: What it is, in a few words.
        detail: Its numbers.
        gain: ``"saves 80.4 ms (low 61.2 ms, high 99 ms)"``, "" where nothing is estimated.
        cost_ns: What it costs the rank at most: the order of the list; 0 for findings about memory.
        evidence: Where [Show] goes.
        optimizations: What [Try] switches on, as ``--enable`` takes it; () where there is nothing to try.
    """

    title: str
    detail: str
    gain: str
    cost_ns: float
    evidence: Evidence
    optimizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checklist:
    """What the first screen says of a rank below its findings.

    Attributes:
        fine: Checked, and nothing was found.
        unknown: Could not be checked, with the reason.
    """

    fine: tuple[str, ...]
    unknown: tuple[str, ...]


def findings_of(summary: JobSummary, rank: int) -> tuple[FindingText, ...]:
    """Returns the findings of a rank, the most expensive first, memory last."""
    entry = summary.rank(rank)
    times_ns = rank_times_ns(summary, rank)
    whole_ns = sum(times_ns.values()) if entry.device is not None else 0.0
    found = [
        *_waiting(summary, rank, whole_ns),
        *_transfer(summary, rank, times_ns.get("transfer", 0.0), whole_ns),
        *_unsplit(summary, rank, times_ns.get("communication", 0.0), whole_ns),
        *_idle(entry, whole_ns),
        *(_fusion(owner, item, is_own=owner == rank) for owner, item in _largest_candidates(summary, rank)),
    ]
    timed = sorted(found, key=lambda item: -item.cost_ns)
    memory = _memory(entry)
    return (*timed[: SHOWN_COUNT - len(memory)], *memory)


def rank_times_ns(summary: JobSummary, rank: int) -> dict[str, float]:
    """Returns ns by part (ids of ``step_parts``), disjoint, over all steps; of the collectives where no step has any.

    Traces of the host have no steps with device times; there the times of the collectives are all that is known.
    """
    from engine.analyses.communication.collective_times import collective_times

    times: dict[str, float] = defaultdict(float)
    for step, inside in zip(summary.rank(rank).steps, collectives_of_steps(summary, rank), strict=True):
        for part, ns in step_parts(step, inside):
            times[part] += ns
    if not times:
        own = collective_times(summary.communication.collectives.get(rank, ()))
        sets = {"transfer": own.transfer, "waiting": own.wait, "communication": own.unsplit}
        times.update({part: float(found.total_ns) for part, found in sets.items()})
    return dict(times)


def checklist_of(summary: JobSummary, rank: int) -> Checklist:
    """Returns what was computed and found nothing, and what could not be computed."""
    entry = summary.rank(rank)
    collectives = summary.communication.collectives.get(rank, ())
    fine, unknown = [], []
    if entry.device is None:
        unknown.append(tr("device work: this capture holds none"))
    else:
        if not collectives:
            fine.append(tr("no communication in this capture"))
        elif all(item.exposed_ns == 0 for item in collectives):
            fine.append(tr("all communication is hidden behind computing"))
        if collectives and all(item.wait_ns == 0 for item in collectives):
            fine.append(tr("no collective waits for a late rank"))
        if not entry.idle:
            fine.append(tr("no device gap of 20 µs or more"))
        if not entry.fusion_candidates:
            fine.append(tr("no sequence of kernels that a fused operator replaces"))
    if entry.memory is None:
        unknown.append(tr("memory: not recorded (the profiler's profile_memory=True records it)"))
    else:
        if not entry.memory.leaks:
            fine.append(tr("no block that a step allocated and never freed"))
        slope = entry.memory.reserved_slope_bytes_per_step
        if slope is not None and slope <= 0:
            fine.append(tr("reserved memory does not grow from step to step"))
        if entry.memory.headroom_bytes is None:
            unknown.append(tr("memory headroom: the capture does not name the device's capacity"))
    return Checklist(tuple(fine), tuple(unknown))


def _waiting(summary: JobSummary, rank: int, whole_ns: float) -> list[FindingText]:
    """Returns one finding for the late rank that costs this one the most."""
    from engine.analyses.communication.collective_times import collective_times

    by_rank: dict[int, list[tuple[int, Collective]]] = defaultdict(list)
    for index, item in enumerate(summary.communication.collectives.get(rank, ())):
        if item.wait_ns and item.late_rank is not None and item.late_rank != rank:
            by_rank[item.late_rank].append((index, item))
    if not by_rank:
        return []
    # Collectives may wait at the same time, so their waits are joined, not added.
    costs_ns = {
        late: collective_times(replace(item, elapsed_ns=item.wait_ns or 0) for _, item in items).wait.total_ns
        for late, items in by_rank.items()
    }
    late = max(costs_ns, key=costs_ns.__getitem__)
    largest, _ = max(by_rank[late], key=lambda entry: entry[1].wait_ns or 0)
    slow = next((item for item in summary.communication.slow_ranks if item.rank == late), None)
    count = format_count(len(by_rank[late]))
    detail = tr("{time} in {count} collectives.", time=_with_share(costs_ns[late], whole_ns), count=count)
    if slow is not None:
        detail += " " + tr("While others wait, rank {rank} is: {cause}.", rank=late, cause=slow.cause)
    title = tr("Waits for rank {rank}", rank=late)
    evidence = Evidence("communication", CollectiveSelection(rank, largest))
    return [FindingText(title, detail, "", costs_ns[late], evidence)]


def _transfer(summary: JobSummary, rank: int, exposed_ns: float, whole_ns: float) -> list[FindingText]:
    """Returns the finding about transfer that computing does not hide, where it is told from waiting."""
    if exposed_ns <= 0:
        return []
    collectives = summary.communication.collectives.get(rank, ())
    hideable_ns = [item.hideable_ns for item in collectives if item.hideable_ns is not None]
    if not whole_ns:  # no device: what computing covers is not known
        detail = tr("{time} of transfer.", time=format_duration_ns(exposed_ns))
        evidence = evidence_of(summary, rank, "transfer")
        return [FindingText(tr("Transfer"), detail, "", exposed_ns, evidence)]
    detail = tr("{time} of transfer is not covered by computing.", time=_with_share(exposed_ns, whole_ns))
    gain = ""
    if hideable_ns:
        most_ns = min(float(sum(hideable_ns)), exposed_ns)
        gain = tr("at most {duration} could be hidden", duration=format_duration_ns(most_ns))
    evidence = evidence_of(summary, rank, "transfer")
    return [FindingText(tr("Exposed transfer"), detail, gain, exposed_ns, evidence)]


def _unsplit(summary: JobSummary, rank: int, exposed_ns: float, whole_ns: float) -> list[FindingText]:
    """Returns the finding about communication whose members are not all open."""
    if exposed_ns <= 0:
        return []
    unsplit = [item for item in summary.communication.collectives.get(rank, ()) if item.wait_ns is None]
    missing = sorted({number for item in unsplit for number in item.missing_ranks})
    if len(missing) == 1:
        advice = tr("Waiting and transfer are unsplit: open the peer (rank {rank}).", rank=missing[0])
    elif missing:
        ranks = ", ".join(map(str, missing))
        advice = tr("Waiting and transfer are unsplit: open the peers (ranks {ranks}).", ranks=ranks)
    else:
        advice = tr("Waiting and transfer are unsplit: the members are not all known.")
    detail = f"{_with_share(exposed_ns, whole_ns)}. {advice}"
    evidence = evidence_of(summary, rank, "communication")
    title = tr("Exposed communication") if whole_ns else tr("Communication")
    return [FindingText(title, detail, "", exposed_ns, evidence)]


def _idle(entry: RankSummary, whole_ns: float) -> list[FindingText]:
    """Returns the cause that leaves the device idle the longest."""
    by_cause: dict[str, list[int]] = defaultdict(list)
    for index, gap in enumerate(entry.idle):
        by_cause[gap.cause.value].append(index)
    if not by_cause:
        return []

    def length_ns(index: int) -> int:
        return entry.idle[index].end_ns - entry.idle[index].start_ns

    cause, gaps = max(by_cause.items(), key=lambda item: sum(map(length_ns, item[1])))
    idle_ns = sum(map(length_ns, gaps))
    detail = tr(
        "{time} in {count} gaps of 20 µs and more.",
        time=_with_share(idle_ns, whole_ns),
        count=format_count(len(gaps)),
    )
    title = tr("Device idle: {cause}", cause=_cause_text(cause))
    largest = IdleSelection(entry.rank, max(gaps, key=length_ns))
    return [FindingText(title, detail, "", idle_ns, Evidence("timeline", largest, zooms=True))]


def _cause_text(cause: str) -> str:
    texts = {
        "compilation": tr("kernels are compiled"),
        "data_loading": tr("data is loaded"),
        "garbage_collection": tr("Python collects garbage"),
        "allocator": tr("the allocator works"),
        "host_synchronization": tr("the host waits for the device"),
        "dequeue_slow": tr("the task queue is emptied too slowly"),
        "host_slow": tr("the host launches too late"),
        "other_stream": tr("it waits for another stream"),
        "device_scheduling": tr("the device is slow to start the next task"),
    }
    return texts.get(cause) or tr("the cause is unknown")


def _largest_candidates(summary: JobSummary, rank: int) -> list[tuple[int, FusionCandidate]]:
    """Returns the (rank, candidate) of the largest expected savings of the job, each pattern once.

    Other ranks count because this one waits for them; where its own saving is about as large it stands for them.
    """
    best: dict[str, tuple[float, int, FusionCandidate]] = {}
    for entry in summary.ranks:
        for item in entry.fusion_candidates:
            weight_ns = item.saving_ns.expected * (_OWN_RANK_WEIGHT if entry.rank == rank else 1.0)
            if weight_ns > 0 and weight_ns > best.get(item.pattern, (0.0,))[0]:
                best[item.pattern] = (weight_ns, entry.rank, item)
    ordered = sorted(best.values(), key=lambda found: -found[0])
    return [(owner, item) for _, owner, item in ordered[:_FUSION_COUNT]]


def _fusion(rank: int, candidate: FusionCandidate, *, is_own: bool) -> FindingText:
    saving = candidate.saving_ns
    detail = tr(
        "{launches} kernels in {count} places, {duration} of device time.",
        count=format_count(candidate.count),
        launches=format_count(candidate.launches),
        duration=format_duration_ns(candidate.total_ns),
    )
    if candidate.replacement:
        detail += " " + tr("Replacement: {call}", call=candidate.replacement)
    gain = tr(
        "saves {expected} (low {low}, high {high})",
        low=format_duration_ns(saving.low),
        expected=format_duration_ns(saving.expected),
        high=format_duration_ns(saving.high),
    )
    if is_own:
        title = tr("Fuse: {what}", what=candidate.title)
    else:
        title = tr("Fuse on rank {rank}: {what}", rank=rank, what=candidate.title)
    evidence = Evidence("fusion", CandidateSelection(rank, candidate.pattern))
    return FindingText(title, detail, gain, saving.expected, evidence)


def _memory(entry: RankSummary) -> list[FindingText]:
    """Returns the finding about what is left of the device, or of leaks where the limit is not known."""
    memory = entry.memory
    if memory is None or memory.peak_allocated_bytes is None:
        return []
    detail = tr("{size} allocated at the peak", size=format_bytes(memory.peak_allocated_bytes))
    if memory.peak_reserved_bytes is not None:
        detail += tr(" of {size} reserved", size=format_bytes(memory.peak_reserved_bytes))
    title = tr("Memory peak")
    if memory.headroom_bytes is not None and memory.peak_reserved_bytes is not None:
        capacity = memory.headroom_bytes + memory.peak_reserved_bytes + (memory.other_bytes or 0)
        is_tight = memory.headroom_bytes < capacity * _TIGHT_HEADROOM_RATIO
        title = tr("Memory is tight") if is_tight else tr("Memory headroom")
        detail += tr("; {size} of the device is left", size=format_bytes(memory.headroom_bytes))
    if memory.leaks:
        detail += tr(
            "; {size} allocated in steps and never freed", size=format_bytes(sum(leak.bytes for leak in memory.leaks))
        )
    return [FindingText(title, detail + ".", "", 0.0, Evidence("memory"))]


def _with_share(part_ns: float, whole_ns: float) -> str:
    """Returns ``"316.0 ms (39 %)"``; the share only where the whole is known."""
    duration = format_duration_ns(part_ns)
    return f"{duration} ({format_ratio(part_ns / whole_ns)})" if whole_ns else duration
