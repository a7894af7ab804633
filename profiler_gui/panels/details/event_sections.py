"""The sections of one event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from engine.core.number_format import format_bytes, format_count, format_duration_ns
from engine.trace.tables import INSTANT, UNFINISHED
from profiler_gui.panels.details.collective_sections import collective_lines
from profiler_gui.panels.details.event_facts import EventFacts
from profiler_gui.panels.details.sections import (
    Line,
    Section,
    duration_line,
    moment_lines,
    section,
    text_line,
)
from profiler_gui.session.selection import AllocationSelection, EventSelection, Selection, TrackSelection
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.trace import Trace
    from profiler_gui.session.document import Document

MAX_ARGUMENT_CHARS = 20_000
"""Longer arguments are cut, and say so: a message box of megabytes helps nobody."""

MAX_LINK_CHARS = 64
"""Names of GPU kernels are whole signatures; the event that a link selects shows its name in full."""


def first_sections(document: Document, rank: int, event: int) -> tuple[Section, ...]:
    """Returns what the tables say of an event without any search."""
    trace = document.job.rank_trace(rank).trace
    return tuple(part for part in (_basics(trace, rank, event), _kernel(trace, event)) if part.lines)


def event_sections(document: Document, rank: int, facts: EventFacts) -> tuple[Section, ...]:
    """Returns everything known of an event."""
    trace = document.job.rank_trace(rank).trace
    parts = (
        _basics(trace, rank, facts.event, facts),
        _kernel(trace, facts.event),
        _communication(document, rank, facts),
        _launches(trace, rank, facts),
        _memory(trace, rank, facts),
        _flows(trace, rank, facts),
        _arguments(facts),
    )
    return tuple(part for part in parts if part.lines)


def event_link(trace: Trace, rank: int, event: int, label: str = "") -> Line | None:
    """Returns a link to an event: its name (the beginning of a long one) and duration; None for −1."""
    if event < 0:
        return None
    name = trace.name(event)
    shown = name if len(name) <= MAX_LINK_CHARS else f"{name[:MAX_LINK_CHARS]}…"
    text = f"{shown} · {format_duration_ns(int(trace.events.duration_ns[event]))}"
    return Line(label, text, EventSelection(rank, event))


def _basics(trace: Trace, rank: int, event: int, facts: EventFacts | None = None) -> Section:
    events = trace.events
    flags, start_ns = int(events.flags[event]), int(events.start_ns[event])
    parent, track = int(events.parent[event]), int(events.track[event])
    is_instant = bool(flags & int(INSTANT))
    duration_ns = int(events.duration_ns[event])
    correlation = int(events.correlation[event])
    lines: list[Line | None] = [
        text_line(tr("Category"), trace.category(event)),
        Line(tr("Track"), track_title(trace, track), TrackSelection(rank, track)),
        *moment_lines(tr("Start"), start_ns, trace.metadata.epoch_ns),
        Line(tr("Duration"), tr("a moment")) if is_instant else duration_line(tr("Duration"), duration_ns),
        Line("", tr("its end was not recorded")) if flags & int(UNFINISHED) else None,
    ]
    if facts is not None and not is_instant:
        lines.append(duration_line(tr("Self time"), facts.self_ns))
        lines.append(Line(tr("Children"), format_count(facts.child_count)) if facts.child_count else None)
    lines += [
        Line(tr("Depth"), str(int(events.depth[event]))),
        event_link(trace, rank, parent, tr("Inside")),
        Line(tr("Correlation"), str(correlation)) if correlation >= 0 else None,
    ]
    return section(trace.name(event) or tr("(no name)"), lines)


def track_title(trace: Trace, track: int) -> str:
    """Returns ``"Process › Track"``."""
    item = trace.tracks[track]
    return f"{trace.tracks[item.parent].name} › {item.name}" if item.parent >= 0 else item.name


def _kernel(trace: Trace, event: int) -> Section:
    row = int(trace.kernel_row_of_event[event])
    if row < 0:
        return Section(tr("Kernel"), ())
    kernels, text = trace.kernels, trace.strings.text
    blocks, step = int(kernels.block_count[row]), int(kernels.step[row])
    return section(
        tr("Kernel"),
        (
            text_line(tr("Type"), text(int(kernels.op_type[row]))),
            text_line(tr("Core"), text(int(kernels.core_type[row]))),
            text_line(tr("Input shapes"), text(int(kernels.input_shapes[row]))),
            text_line(tr("Input types"), text(int(kernels.input_types[row]))),
            text_line(tr("Output shapes"), text(int(kernels.output_shapes[row]))),
            text_line(tr("Output types"), text(int(kernels.output_types[row]))),
            Line(tr("Cores used"), str(blocks)) if blocks >= 0 else None,
            Line(tr("Step"), str(step)) if step >= 0 else None,
        ),
    )


def _communication(document: Document, rank: int, facts: EventFacts) -> Section:
    title = tr("Communication")
    if document.summary is not None:
        collectives = document.summary.communication.collectives.get(rank, ())
        # A loop over collectives of one rank: thousands at most.
        for index, item in enumerate(collectives):
            if item.event == facts.event:
                return section(title, collective_lines(rank, index, item, links_to_event=False))
    if facts.exposed_ns is None:
        return Section(title, ())
    trace = document.job.rank_trace(rank).trace
    hidden_ns = int(trace.events.duration_ns[facts.event]) - facts.exposed_ns
    return section(
        title, (duration_line(tr("Exposed"), facts.exposed_ns), duration_line(tr("Hidden behind computing"), hidden_ns))
    )


def _launches(trace: Trace, rank: int, facts: EventFacts) -> Section:
    lines: list[Line | None] = [event_link(trace, rank, facts.launch, tr("Launched by"))]
    if facts.operator != facts.launch:
        lines.append(event_link(trace, rank, facts.operator, tr("Operator")))
    if facts.launch >= 0:
        starts_ns = trace.events.start_ns
        lines.append(duration_line(tr("Launch to start"), int(starts_ns[facts.event]) - int(starts_ns[facts.launch])))
    if facts.task_count:
        total = format_duration_ns(facts.task_ns)
        count = format_count(facts.task_count)
        lines.append(Line(tr("Device tasks"), tr("{count}, {total} in sum", count=count, total=total)))
        lines += [event_link(trace, rank, task) for task in facts.tasks]
        lines.append(_rest(facts.task_count - len(facts.tasks)))
    return section(tr("Launch"), lines)


def _memory(trace: Trace, rank: int, facts: EventFacts) -> Section:
    blocks = trace.memory.allocations
    if not facts.allocation_count:
        return Section(tr("Memory"), ())
    count, total = format_count(facts.allocation_count), format_bytes(facts.allocated_bytes)
    lines: list[Line | None] = [Line(tr("Allocated"), tr("blocks: {count}, {total}", count=count, total=total))]
    for row in facts.allocations:
        target: Selection = AllocationSelection(rank, row)
        text = format_bytes(int(blocks.size_bytes[row]))
        lines.append(Line("", tr("block of {size}", size=text), target))
    lines.append(_rest(facts.allocation_count - len(facts.allocations)))
    return section(tr("Memory"), lines)


def _flows(trace: Trace, rank: int, facts: EventFacts) -> Section:
    lines: list[Line | None] = []
    for label, arrows in ((tr("From"), facts.incoming), (tr("To"), facts.outgoing)):
        for kind, other in arrows:
            link = event_link(trace, rank, other)
            if link is not None:
                lines.append(Line(f"{label} ({kind})" if kind else label, link.text, link.target))
    lines.append(_rest(facts.flow_count - len(facts.incoming) - len(facts.outgoing)))
    return section(tr("Arrows"), lines)


def _rest(count: int) -> Line | None:
    return Line("", tr("and {count} more", count=format_count(count))) if count > 0 else None


def _arguments(facts: EventFacts) -> Section:
    if facts.arguments_error:
        text = tr("could not be read: {reason}", reason=facts.arguments_error)
        return Section(tr("Arguments"), (Line("", text),))
    return Section(tr("Arguments"), argument_lines(facts.arguments))


def argument_lines(arguments: Mapping[str, Any]) -> tuple[Line, ...]:
    """Returns a line per argument in the order of the source."""
    return tuple(Line(str(key), _argument_text(value), is_verbatim=True) for key, value in arguments.items())


def _argument_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_ARGUMENT_CHARS:
        return text
    cut = format_count(len(text) - MAX_ARGUMENT_CHARS)
    return text[:MAX_ARGUMENT_CHARS] + tr("… ({count} more characters)", count=cut)
