"""The sections of everything that can be selected besides an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.core.number_format import format_count, format_duration_ns, format_ratio
from profiler_gui.panels.details.collective_sections import collective_lines
from profiler_gui.panels.details.event_sections import event_link, track_title
from profiler_gui.panels.details.sections import (
    Line,
    Section,
    bytes_line,
    duration_line,
    moment_lines,
    section,
    text_line,
)
from profiler_gui.session.selection import (
    AllocationSelection,
    CandidateSelection,
    CollectiveSelection,
    EventSelection,
    IdleSelection,
    OperatorSelection,
    RangeSelection,
    Selection,
    StepSelection,
    TrackSelection,
)
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.trace import Trace
    from profiler_gui.session.document import Document

MAX_LINKS = 20


def selection_sections(document: Document, rank: int, selection: Selection) -> tuple[Section, ...]:
    """Returns what is known of a selection other than an event; the capture itself where nothing is selected."""
    makers: dict[type, Callable[[Document, Any], tuple[Section, ...]]] = {
        RangeSelection: _range,
        TrackSelection: _track,
        StepSelection: _step,
        AllocationSelection: _allocation,
        OperatorSelection: _operator,
        CandidateSelection: _candidate,
        CollectiveSelection: _collective,
        IdleSelection: _idle,
    }
    make = makers.get(type(selection))
    sections = make(document, selection) if make is not None else _capture(document, rank)
    return tuple(part for part in sections if part.lines)


def _trace(document: Document, rank: int) -> Trace:
    return document.job.rank_trace(rank).trace


def _range(document: Document, selection: RangeSelection) -> tuple[Section, ...]:
    trace = _trace(document, selection.rank)
    events = trace.events
    inside = (events.start_ns < selection.end_ns) & (events.end_ns > selection.start_ns)
    inside |= (events.start_ns >= selection.start_ns) & (events.start_ns < selection.end_ns)
    counts = np.bincount(events.track[inside], minlength=len(trace.tracks))
    epoch_ns = trace.metadata.epoch_ns
    basics = section(
        tr("Selected range"),
        (
            *moment_lines(tr("Start"), selection.start_ns, epoch_ns),
            *moment_lines(tr("End"), selection.end_ns, epoch_ns),
            duration_line(tr("Length"), selection.duration_ns),
            Line(tr("Events"), format_count(int(inside.sum()))),
            *_allocated_in(trace, selection),
        ),
    )
    by_count = sorted(np.flatnonzero(counts).tolist(), key=lambda track: -int(counts[track]))
    tracks = [
        Line(format_count(int(counts[track])), track_title(trace, track), TrackSelection(selection.rank, track))
        for track in by_count[:MAX_LINKS]
    ]
    return basics, section(tr("Events by track"), tracks)


def _allocated_in(trace: Trace, selection: RangeSelection) -> list[Line | None]:
    blocks = trace.memory.allocations
    if len(blocks) == 0:
        return []
    born = (blocks.allocated_at_ns >= selection.start_ns) & (blocks.allocated_at_ns < selection.end_ns)
    freed = (blocks.freed_at_ns >= selection.start_ns) & (blocks.freed_at_ns < selection.end_ns)
    return [
        bytes_line(tr("Allocated in it"), int(blocks.size_bytes[born].sum())),
        bytes_line(tr("Freed in it"), int(blocks.size_bytes[freed].sum())),
    ]


def _track(document: Document, selection: TrackSelection) -> tuple[Section, ...]:
    from engine.trace.intervals import union

    trace = _trace(document, selection.rank)
    track = trace.tracks[selection.track]
    part = trace.track_slices[selection.track]
    start_ns, end_ns = trace.events.start_ns[part], trace.events.end_ns[part]
    lines: list[Line | None] = [
        Line(tr("Kind"), track.kind.value.replace("_", " ")),
        Line(tr("Device"), str(track.device)) if track.device >= 0 else None,
        Line(tr("Stream"), str(track.stream)) if track.stream >= 0 else None,
        text_line(tr("Group"), track.group),
        text_line(tr("Process"), track.process_id),
        text_line(tr("Thread"), track.thread_id),
        Line(tr("Events"), format_count(len(start_ns))),
    ]
    if len(start_ns):
        first_ns, last_ns = int(start_ns.min()), int(end_ns.max())
        busy_ns = union(start_ns, end_ns).total_ns
        share = format_ratio(busy_ns / (last_ns - first_ns)) if last_ns > first_ns else "–"
        lines += moment_lines(tr("First start"), first_ns, None)
        lines += moment_lines(tr("Last end"), last_ns, None)
        lines.append(duration_line(tr("Busy"), busy_ns))
        lines.append(Line(tr("Busy between them"), share))
    return (section(track_title(trace, selection.track), lines),)


def _step(document: Document, selection: StepSelection) -> tuple[Section, ...]:
    if document.summary is None:
        return ()
    step = document.summary.rank(selection.rank).steps[selection.index]
    epoch_ns = _trace(document, selection.rank).metadata.epoch_ns
    title = tr("Step {number}", number=step.step) if step.step is not None else tr("The whole capture as one step")
    lines = [
        *moment_lines(tr("Start"), step.range.start_ns, epoch_ns),
        duration_line(tr("Length"), step.range.duration_ns),
        duration_line(tr("Computing"), step.computing_ns),
        duration_line(tr("Communication"), step.communication_ns),
        duration_line(tr("Not overlapped"), step.communication_not_overlapped_ns),
        duration_line(tr("Overlapped"), step.overlapped_ns),
        duration_line(tr("Free"), step.free_ns),
        duration_line(tr("Stage"), step.stage_ns),
        duration_line(tr("Bubble"), step.bubble_ns),
        duration_line(tr("Preparing"), step.preparing_ns),
        duration_line(tr("Waiting"), step.wait_ns),
        duration_line(tr("Transfer"), step.transfer_ns),
        text_line(tr("From the capture's table"), ", ".join(step.from_file)),
    ]
    return (section(title, lines),)


def _allocation(document: Document, selection: AllocationSelection) -> tuple[Section, ...]:
    trace, row = _trace(document, selection.rank), selection.row
    blocks, epoch_ns = trace.memory.allocations, trace.metadata.epoch_ns
    born_ns, freed_ns = int(blocks.allocated_at_ns[row]), int(blocks.freed_at_ns[row])
    address, stream, event = int(blocks.address[row]), int(blocks.stream[row]), int(blocks.event[row])
    lines: list[Line | None] = [
        text_line(tr("Operator"), trace.strings.text(int(blocks.operator[row])) or tr("(no operator)")),
        bytes_line(tr("Size"), int(blocks.size_bytes[row])),
        bytes_line(tr("Requested"), int(blocks.requested_bytes[row])),
        Line(tr("Address"), f"{address:#x}" if address >= 0 else tr("not recorded")),
    ]
    if born_ns >= 0:
        lines += moment_lines(tr("Allocated"), born_ns, epoch_ns)
    else:
        lines.append(Line(tr("Allocated"), tr("before the capture")))
    if freed_ns >= 0:
        lines += moment_lines(tr("Freed"), freed_ns, epoch_ns)
        lines.append(duration_line(tr("Lifetime"), freed_ns - born_ns) if born_ns >= 0 else None)
    else:
        lines.append(Line(tr("Freed"), tr("not in the capture: alive at its end")))
    peak_ns = _peak_at_ns(document, selection.rank)
    if peak_ns is not None and born_ns <= peak_ns:
        alive = freed_ns < 0 or freed_ns > peak_ns
        lines.append(Line(tr("Alive at the peak"), tr("yes") if alive else tr("no")))
    lines += [
        Line(tr("Stream"), str(stream)) if stream >= 0 else None,
        Line(tr("Device"), str(int(blocks.device[row]))) if blocks.device[row] >= 0 else None,
        event_link(trace, selection.rank, event, tr("On the timeline")),
        Line(tr("On the timeline"), tr("the capture holds no event of this operator")) if event < 0 else None,
    ]
    return (section(tr("Block of memory"), lines),)


def _peak_at_ns(document: Document, rank: int) -> int | None:
    memory = document.summary.rank(rank).memory if document.summary is not None else None
    return memory.peak_at_ns if memory is not None else None


def _operator(document: Document, selection: OperatorSelection) -> tuple[Section, ...]:
    if document.summary is None:
        return ()
    trace = _trace(document, selection.rank)
    rows = [item for item in document.summary.rank(selection.rank).operators if item.type == selection.type]
    parts = [
        section(
            f"{item.type} · {item.core_type}" if item.core_type else item.type,
            (
                text_line(tr("Kernel"), item.name if item.name != item.type else ""),
                Line(tr("Tasks"), format_count(item.count)),
                duration_line(tr("Total"), item.total_ns),
                Line(tr("Share of computing"), format_ratio(item.share_ratio)),
                duration_line(tr("Mean"), item.total_ns / item.count if item.count else None),
                duration_line(tr("Shortest"), item.min_ns),
                duration_line(tr("Longest"), item.max_ns),
            ),
        )
        for item in rows
    ]
    return (*parts, section(tr("Longest tasks"), _longest(trace, selection)))


def _longest(trace: Trace, selection: OperatorSelection) -> list[Line | None]:
    from engine.analyses.activity import Activity, activities

    wanted = trace.strings.id_of(selection.type)
    kernel = trace.kernel_row_of_event
    types = np.where(kernel >= 0, trace.kernels.op_type[kernel], -1) if len(trace.kernels) else np.full(len(kernel), -1)
    types = np.where(types >= 0, types, trace.events.name)
    found = np.flatnonzero((types == wanted) & (activities(trace) == Activity.COMPUTING))
    longest = found[np.argsort(-trace.events.duration_ns[found], kind="stable")][:MAX_LINKS]
    starts_ns, durations_ns = trace.events.start_ns, trace.events.duration_ns
    return [
        Line(
            format_duration_ns(int(durations_ns[event])),
            tr("from {start}", start=time_text(int(starts_ns[event]))),
            EventSelection(selection.rank, event),
        )
        for event in longest.tolist()
    ]


def _candidate(document: Document, selection: CandidateSelection) -> tuple[Section, ...]:
    if document.summary is None:
        return ()
    trace = _trace(document, selection.rank)
    candidates = document.summary.rank(selection.rank).fusion_candidates
    found = next((item for item in candidates if item.pattern == selection.pattern), None)
    if found is None:
        return ()
    low, expected, high = (format_duration_ns(value) for value in _estimates(found.saving_ns))
    whole = section(
        found.title,
        (
            text_line(tr("Replacement"), found.replacement or tr("none known today")),
            Line(tr("Saving"), tr("{low} – {expected} – {high}", low=low, expected=expected, high=high)),
            text_line(tr("Why"), found.reason),
            Line(tr("Count"), format_count(found.count)),
            duration_line(tr("Device time"), found.total_ns),
            duration_line(tr("Gaps between"), found.gap_ns),
            Line(tr("Launches"), format_count(found.launches)),
            text_line(tr("Bound by"), found.bound),
            text_line(tr("Found in"), found.matched_by),
        ),
    )
    if selection.occurrence is None or selection.occurrence >= len(found.occurrences):
        return (whole,)
    place = found.occurrences[selection.occurrence]
    lines = [
        *moment_lines(tr("Start"), place.start_ns, trace.metadata.epoch_ns),
        duration_line(tr("Length"), place.end_ns - place.start_ns),
        duration_line(tr("Busy"), place.busy_ns),
        *(event_link(trace, selection.rank, event) for event in place.events[:MAX_LINKS]),
    ]
    rest = len(place.events) - MAX_LINKS
    lines.append(Line("", tr("and {count} more", count=format_count(rest))) if rest > 0 else None)
    title = tr(
        "Occurrence {number} of {count}", number=selection.occurrence + 1, count=format_count(len(found.occurrences))
    )
    return section(title, lines), whole


def _estimates(saving: Any) -> tuple[float, float, float]:
    return saving.low, saving.expected, saving.high


def _collective(document: Document, selection: CollectiveSelection) -> tuple[Section, ...]:
    if document.summary is None:
        return ()
    item = document.summary.communication.collectives[selection.rank][selection.index]
    epoch_ns = _trace(document, selection.rank).metadata.epoch_ns
    lines = [
        *moment_lines(tr("Start"), item.start_ns, epoch_ns),
        *collective_lines(selection.rank, selection.index, item, links_to_event=True),
    ]
    return (section(item.name, lines),)


def _idle(document: Document, selection: IdleSelection) -> tuple[Section, ...]:
    if document.summary is None:
        return ()
    trace = _trace(document, selection.rank)
    gap = document.summary.rank(selection.rank).idle[selection.index]
    lines = [
        Line(tr("Cause"), tr(gap.cause.value.replace("_", " "))),
        *moment_lines(tr("Start"), gap.start_ns, trace.metadata.epoch_ns),
        duration_line(tr("Length"), gap.end_ns - gap.start_ns),
        event_link(trace, selection.rank, gap.evidence, tr("Evidence")),
        event_link(trace, selection.rank, gap.next_event, tr("Ended by")),
    ]
    return (section(tr("Device idle"), lines),)


def _capture(document: Document, rank: int) -> tuple[Section, ...]:
    trace = _trace(document, rank)
    about = trace.metadata
    ranks = f"{rank} / {about.world_size}" if about.world_size is not None else str(rank)
    whole = section(
        document.label,
        (
            Line(tr("Rank"), ranks),
            text_line(tr("Device"), about.device),
            bytes_line(tr("Device memory"), about.device_memory_bytes),
            text_line(tr("Host"), about.host),
            text_line(tr("Profiler level"), about.profiler_level),
            Line(tr("Events"), format_count(len(trace.events))),
            duration_line(tr("Covers"), trace.time_range.duration_ns),
            *(moment_lines(tr("From"), 0, about.epoch_ns) if about.epoch_ns is not None else ()),
            Line(tr("Origin"), tr("measured") if trace.origin.value == "measured" else tr("simulated")),
            text_line(tr("Format"), trace.source.format),
            text_line(tr("Path"), trace.source.path),
        ),
    )
    software = section(tr("Software"), (Line(name, version) for name, version in about.software.items()))
    parallel = section(tr("Parallel sizes"), (Line(name, str(size)) for name, size in about.parallel_sizes.items()))
    return whole, software, parallel
