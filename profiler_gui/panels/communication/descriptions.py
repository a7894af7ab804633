"""A collective in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.core.number_format import format_bytes, format_duration_ns
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the analyses are imported after the first paint
    from engine.analyses.communication import Collective


def short_name(name: str) -> str:
    """Returns a kernel's name without return type, template arguments and parameters (``"at::native::sum"``)."""
    head = re.split(r"[<(]", name.removeprefix("void "), maxsplit=1)[0].strip()
    return head or name


def numbers_text(collective: Collective) -> str:
    """Returns the numbers of a collective in one line."""
    parts = [
        tr("group {name}", name=collective.group_name or collective.group) if collective.group else "",
        format_bytes(collective.bytes) if collective.bytes is not None else "",
        tr("elapsed {duration}", duration=format_duration_ns(collective.elapsed_ns)),
        tr("exposed {duration}", duration=format_duration_ns(collective.exposed_ns)),
    ]
    if collective.wait_ns is not None and collective.transfer_ns is not None:
        parts.append(tr("waiting {duration}", duration=format_duration_ns(collective.wait_ns)))
        parts.append(tr("transfer {duration}", duration=format_duration_ns(collective.transfer_ns)))
    return ", ".join(part for part in parts if part)


def collective_text(rank: int, collective: Collective) -> str:
    """Returns what a tooltip says of a collective."""
    lines = [
        f"{collective.name} · {tr('rank {rank}', rank=rank)}",
        tr("elapsed {duration}", duration=format_duration_ns(collective.elapsed_ns)),
    ]
    if collective.wait_ns is None or collective.transfer_ns is None:
        lines.append(tr("waiting and transfer unsplit: the members are not all open"))
    else:
        lines.append(tr("waiting {duration}", duration=format_duration_ns(collective.wait_ns)))
        lines.append(tr("transfer {duration}", duration=format_duration_ns(collective.transfer_ns)))
    lines.append(tr("exposed {duration}", duration=format_duration_ns(collective.exposed_ns)))
    return "\n".join(lines)
