"""What the address view says in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes, format_count
from profiler_gui.panels.memory.words import Provenance
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables are imported after the first paint
    from engine.runtime.addresses.address_map import AddressMap
    from engine.runtime.addresses.misses import Hole, MissReport


def provenance_of_addresses(mapped: AddressMap) -> Provenance:
    """Returns how the addresses are known."""
    from engine.runtime.addresses.address_map import Basis

    if mapped.basis is Basis.SIMULATED:
        return Provenance(tr("SIMULATED"), tr("The allocator of the simulated runtime gave these addresses."))
    if mapped.basis is Basis.MEASURED:
        return Provenance(tr("MEASURED"), tr("The allocator recorded these addresses."))
    return Provenance(
        tr("RECONSTRUCTED"),
        tr(
            "The capture records sizes and times, no addresses: its log was served again by the policy it names, "
            "{policy}. What was alive before the capture is laid out in equal blocks; where it really lay is unknown.",
            policy=mapped.policy,
        ),
    )


def summary_of_addresses(mapped: AddressMap) -> str:
    """Returns requests, blocks, segments and misses in one sentence."""
    return tr(
        "{policy}: {requests} requests, {blocks} blocks in {segments} segments or page ranges, {misses} requests that "
        "no hole could serve.",
        policy=mapped.policy,
        requests=format_count(mapped.event_count),
        blocks=format_count(len(mapped.blocks)),
        segments=format_count(len(mapped.segments)),
        misses=format_count(len(mapped.misses)),
    )


def class_title(mapped: AddressMap, tag: int) -> str:
    """Returns what a lifetime class is called; that of a recorded log is told by its frees only."""
    from engine.graph.task_graph import BufferTag
    from engine.runtime.addresses.address_map import Basis

    if mapped.basis is not Basis.SIMULATED:
        return tr("not freed in the capture") if tag == BufferTag.LONG_LIVED else tr("block")

    titles = {
        int(BufferTag.PERSISTENT): tr("as long as the job"),
        int(BufferTag.STEP): tr("inside a step"),
        int(BufferTag.TEMPORARY): tr("inside an operator"),
        int(BufferTag.LONG_LIVED): tr("outlives its step"),
    }
    return titles.get(tag, "")


def block_name(mapped: AddressMap, block: int) -> str:
    """Returns what a block is called: its operator, its class, or that it is older."""
    label = int(mapped.blocks.label[block])
    if label >= 0:
        return mapped.labels[label]
    tag = int(mapped.blocks.tag[block])
    if int(mapped.blocks.first_event[block]) < 0 and tag < 0:
        return tr("older than the log")
    title = class_title(mapped, tag) if mapped.has_classes else ""
    return title or tr("block")


def event_text(event: int) -> str:
    """Returns a request by its number, counted from 1."""
    return tr("request {number}", number=format_count(event + 1)) if event >= 0 else tr("before the log")


def block_text(mapped: AddressMap, block: int) -> str:
    """Returns everything about a block, a line each."""
    blocks = mapped.blocks
    ends = int(blocks.last_event[block])
    until = event_text(ends) if ends < mapped.event_count else tr("the end of the log")
    return "\n".join(
        (
            block_name(mapped, block),
            tr(
                "{size} at {address}",
                size=format_bytes(int(blocks.size_bytes[block])),
                address=hex(int(blocks.address[block])),
            ),
            tr("from {start} to {end}", start=event_text(int(blocks.first_event[block])), end=until),
        )
    )


def miss_title(action: int) -> str:
    """Returns what became of a miss."""
    from engine.runtime.allocators.interface import DriverAction

    if action == DriverAction.OUT_OF_MEMORY:
        return tr("out of memory")
    if action == DriverAction.RETRY:
        return tr("cache emptied, tried again")
    return tr("pages mapped") if action == DriverAction.MAP else tr("new segment")


def report_text(report: MissReport) -> str:
    """Returns the first sentence about a miss."""
    pool = tr("large blocks") if report.is_large else tr("small blocks")
    text = tr(
        "{where} needs {size} on stream {stream}, pool of {pool}. Free: {free} in {count} holes; the largest is "
        "{largest}, the largest of its own pool {usable}.",
        where=event_text(report.event).capitalize(),
        size=format_bytes(report.size_bytes),
        stream=report.stream,
        pool=pool,
        free=format_bytes(report.free_bytes),
        count=format_count(report.hole_count),
        largest=format_bytes(report.largest_bytes),
        usable=format_bytes(report.largest_usable_bytes),
    )
    if report.free_bytes >= report.size_bytes > report.largest_usable_bytes:
        text += " " + tr("There is enough free memory, but not in one piece.")
    return text


def refusal_text(hole: Hole, report: MissReport) -> str:
    """Returns the rule that keeps the request out of a hole."""
    from engine.runtime.addresses.misses import Refusal

    match hole.refusal:
        case Refusal.TOO_SMALL:
            return tr("too small by {size}", size=format_bytes(report.size_bytes - hole.size_bytes))
        case Refusal.OTHER_POOL:
            return tr("pool of small blocks") if report.is_large else tr("pool of large blocks")
        case Refusal.OTHER_STREAM:
            return tr("another stream's")
        case Refusal.OTHER_CLASS:
            return tr("another lifetime class's")
        case Refusal.NOT_SPLIT:
            return tr("too large to be split")
        case _:
            return tr("given back during the request")


def pins_text(mapped: AddressMap, hole: Hole) -> str:
    """Returns the blocks that keep the hole's segment from being given back."""
    if not hole.pin_count:
        return tr("none: the segment can be given back")
    parts = []
    for pin in hole.pins:
        age = (
            tr("older than the log")
            if pin.age_events is None
            else tr("{count} requests old", count=format_count(pin.age_events))
        )
        name = block_name(mapped, pin.block)
        parts.append(f"{format_bytes(pin.size_bytes)} {name}" + (f" ({age})" if age != name else ""))
    more = hole.pin_count - len(hole.pins)
    if more > 0:
        parts.append(tr("{count} more", count=format_count(more)))
    return ", ".join(parts)
