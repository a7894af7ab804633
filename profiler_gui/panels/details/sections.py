"""What the Details dock shows: lines of label and value, some of them links to a selection."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.core.number_format import format_bytes, format_duration_ns
from profiler_gui.session.selection import Selection
from profiler_gui.toolkit.theme import Colours
from profiler_gui.toolkit.time_axis import TimeUnit, time_text
from profiler_gui.toolkit.translations import tr

LINK_SCHEME = "select:"


@dataclass(frozen=True, slots=True)
class Line:
    """One fact.

    Attributes:
        label: Already translated; "" continues the line above.
        text: The value, exact enough to copy.
        target: What a click on the value selects; None for plain text.
        is_verbatim: Whether the text keeps its line breaks in a fixed-width font.
    """

    label: str
    text: str
    target: Selection | None = None
    is_verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Facts under a heading; the first section's heading is the title of the whole."""

    title: str
    lines: tuple[Line, ...]


def section(title: str, lines: Iterable[Line | None]) -> Section:
    """Returns a section of the lines that are there."""
    return Section(title, tuple(line for line in lines if line is not None))


def duration_line(label: str, duration_ns: float | None) -> Line | None:
    """Returns a duration as people read it, with the exact ns; None where it is unknown."""
    if duration_ns is None:
        return None
    exact = f"{round(duration_ns):,} ns"
    text = format_duration_ns(duration_ns)
    return Line(label, text if text == exact else f"{text} ({exact})")


def bytes_line(label: str, size_bytes: int | None) -> Line | None:
    """Returns a size as people read it, with the exact bytes; None where it is unknown or absent (−1)."""
    if size_bytes is None or size_bytes < 0:
        return None
    text, exact = format_bytes(size_bytes), f"{size_bytes:,} B"
    return Line(label, text if size_bytes < 1024 else f"{text} ({exact})")


def text_line(label: str, text: str | None) -> Line | None:
    """Returns a text; None where there is none."""
    return Line(label, text) if text else None


def moment_lines(label: str, time_ns: int, epoch_ns: int | None) -> list[Line]:
    """Returns a moment from the trace start and, where the capture tells it, as the time of day."""
    exact, text = f"{time_ns:,} ns", time_text(time_ns)
    lines = [Line(label, text if text == exact else f"{text} ({exact})")]
    if epoch_ns is not None:
        lines.append(Line("", tr("{clock} UTC", clock=time_text(time_ns, TimeUnit.WALL_CLOCK, epoch_ns=epoch_ns))))
    return lines


def targets_of(sections: Sequence[Section]) -> list[Selection]:
    """Returns what the links select, in the order in which ``html_of`` numbers them."""
    return [line.target for part in sections for line in part.lines if line.target is not None]


def html_of(sections: Sequence[Section], colours: Colours) -> str:
    """Returns the sections as rich text; links are ``select:NUMBER``."""
    parts, number = [], 0
    for place, part in enumerate(sections):
        heading = html.escape(part.title)
        size = "large" if place == 0 else "medium"
        parts.append(f'<p style="margin:6px 0 2px 0; font-size:{size}"><b>{heading}</b></p>')
        rows = []
        for line in part.lines:
            value = _value_html(line)
            if line.target is not None:
                value = f'<a href="{LINK_SCHEME}{number}" style="color:{colours.link}">{value}</a>'
                number += 1
            label = html.escape(line.label)
            rows.append(
                f'<tr><td style="color:{colours.faint}; padding-right:10px; white-space:nowrap">{label}</td>'
                f"<td>{value}</td></tr>"
            )
        if rows:
            parts.append(f'<table cellspacing="0" cellpadding="1">{"".join(rows)}</table>')
    return "".join(parts)


def plain_of(sections: Sequence[Section]) -> str:
    """Returns the sections as text: headings, then ``label<TAB>value`` lines."""
    lines: list[str] = []
    for part in sections:
        lines.append(part.title)
        lines += [f"{line.label}\t{line.text}" for line in part.lines]
    return "\n".join(lines) + "\n"


def _value_html(line: Line) -> str:
    text = html.escape(line.text)
    if line.is_verbatim:
        return text.replace("\r\n", "<br>").replace("\n", "<br>").replace(";\t", ";<br>").replace("\t", " ")
    return text
