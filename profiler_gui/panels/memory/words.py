"""What the Memory page says in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes, format_count, format_ratio
from engine.core.units import MIB
from profiler_gui.toolkit.time_axis import time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's tables and analyses are imported after the first paint
    from engine.analyses.memory import MemoryAnalysis
    from engine.trace import Trace


@dataclass(frozen=True, slots=True)
class Provenance:
    """How the page knows what it shows.

    Attributes:
        badge: A few words, always in view.
        explanation: A sentence or two, for the tooltip.
    """

    badge: str
    explanation: str


def provenance_of(trace: Trace, memory: MemoryAnalysis) -> Provenance:
    """Returns whether levels and blocks were measured, and whether with addresses."""
    from engine.analyses.memory import NET_CHANGE
    from engine.trace import Origin

    if trace.origin is Origin.SIMULATED:
        return Provenance(tr("SIMULATED"), tr("The allocator of the simulated runtime produced these blocks."))
    if memory.component.endswith(NET_CHANGE):
        return Provenance(
            tr("RECONSTRUCTED (from blocks)"),
            tr(
                "The capture records blocks but no totals: the line adds every block when it is allocated and takes it "
                "back when it is freed. What was allocated before the capture is unknown, so peaks are lower bounds."
            ),
        )
    if bool(np.any(trace.memory.allocations.address >= 0)):
        return Provenance(
            tr("MEASURED (with addresses)"), tr("The framework's allocator recorded every block with its address.")
        )
    kind = tr("database") if trace.source.format.endswith("db") else tr("csv")
    return Provenance(
        tr("RECORDED ({kind}, no addresses)", kind=kind),
        tr(
            "The profiler wrote levels and blocks of the framework's allocator, but no addresses: where blocks lay, "
            "and which gaps could not be used, is not known from this capture."
        ),
    )


def missing_text(rank: int) -> str:
    """Returns what to do to see memory of a rank next time."""
    return tr(
        "The capture of rank {rank} records no memory: profile with profile_memory=True to see it here.", rank=rank
    )


def mib_text(size_bytes: int) -> str:
    """Returns ``"10,282.75 MiB"``: up to two decimals, as allocators and profilers write it."""
    return f"{size_bytes / MIB:,.2f}".rstrip("0").rstrip(".") + " MiB"


def summary_text(memory: MemoryAnalysis) -> str:
    """Returns peak, reserved, when, and what else the process holds, in one sentence."""
    where = tr("host") if memory.device < 0 else tr("device {number}", number=memory.device)
    allocated = memory.peak_allocated_bytes
    if allocated is None:
        return tr("{component} on {where}: no allocated memory was recorded.", component=memory.component, where=where)
    of = ""
    if memory.peak_reserved_bytes is not None:
        of = tr(" of {reserved} reserved", reserved=mib_text(memory.peak_reserved_bytes))
    text = tr(
        "{component}, {where}: at most {allocated} allocated{of}",
        component=memory.component,
        where=where,
        allocated=mib_text(allocated),
        of=of,
    )
    if memory.peak_at_ns is not None:
        text += tr(", at {moment}", moment=time_text(memory.peak_at_ns, resolution_ns=1000))
    if memory.other_bytes is not None:
        text += tr("; HCCL, workspaces and other memory of the process {size}", size=mib_text(memory.other_bytes))
    headroom = memory.headroom_bytes
    if headroom is not None:
        text += tr("; {size} of the device free at the reserved peak", size=format_bytes(headroom))
    return f"{text}."


def fragmentation_text(memory: MemoryAnalysis) -> str:
    """Returns the fragmentation line; "" where reserved memory was not recorded."""
    if memory.fragmentation_ratio is None:
        return ""
    return tr("External fragmentation at the peaks: {share}", share=format_ratio(memory.fragmentation_ratio))


def fragmentation_definition() -> str:
    """Returns what the fragmentation line means and what it does not."""
    return tr(
        "1 − peak allocated ÷ peak reserved. At any other moment reserved − allocated is the allocator's cache, which "
        "it uses again: that is no fragmentation. How much of it was stranded (free, in partly used segments, smaller "
        "than what was asked) needs addresses or a replay."
    )


def growth_text(memory: MemoryAnalysis) -> str:
    """Returns how the reserved peak grew from step to step; "" with fewer than two steps."""
    slope = memory.reserved_slope_bytes_per_step
    if slope is None:
        return ""
    if round(slope) == 0:
        return tr("The reserved peak did not grow from step to step.")
    direction = tr("grew") if slope > 0 else tr("shrank")
    return tr(
        "The reserved peak {direction} by {size} per step (least squares).",
        direction=direction,
        size=format_bytes(abs(slope)),
    )


def leak_text(memory: MemoryAnalysis) -> str:
    """Returns what the list of leaks rests on."""
    unfreed = tr(
        "{count} blocks ({size}) were allocated in the capture and are alive at its end.",
        count=format_count(memory.unfreed_count),
        size=format_bytes(memory.unfreed_bytes),
    )
    if len(memory.steps) < 2:
        reason = tr("Leaks show only where a recorded step follows another; this capture has fewer than two.")
    elif memory.leaks:
        reason = tr("Below: blocks of a step that were never freed in the capture, though another step followed.")
    else:
        reason = tr("No block of a step was left behind when another step followed.")
    return f"{reason} {unfreed}" if memory.unfreed_count else reason
