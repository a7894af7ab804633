"""Text of users and captures made harmless for each kind of file: HTML, Markdown, spreadsheets."""

import html
import re

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&@$]|:(?=//)|(?<=www)\.)")
"""Characters that mean something wherever they stand, and those that make bare addresses links."""
_MARKDOWN_START = re.compile(r"^([-+=]|\d+(?=[.)](?:\s|$)))")
"""What begins a list or a line under a heading at the start of a text; after a number the point is escaped."""
_SPACE = re.compile(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u2066-\u206f\u3000\ufeff]+")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "|", "%")
"""Spreadsheets take a cell that begins so for a formula (some after turning full-width signs into ASCII)."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
LONGEST_CELL = 32_767
"""Characters a cell of an Excel sheet may hold."""


def html_text(text: str) -> str:
    """Returns text for HTML and SVG, inside elements and quoted attributes; what no file can hold is replaced."""
    return html.escape(_encodable(_NOT_XML.sub("\ufffd", text)), quote=True)


def markdown_text(text: str) -> str:
    """Returns text for one line of Markdown, tables included: every character that could mean something is escaped."""
    escaped = _MARKDOWN.sub(r"\\\1", _one_line(text))
    start = _MARKDOWN_START.match(escaped)
    if start is None:
        return escaped
    end = start.end()
    return f"{escaped[:end]}\\{escaped[end:]}" if start[1][0].isdigit() else f"\\{escaped}"


def markdown_code(text: str) -> str:
    """Returns text as a code span, for use outside tables: fenced by more backticks than it holds in a row."""
    line = _one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest or not line else f"{fence}{line}{fence}"


def spreadsheet_text(text: str) -> str:
    """Returns text for a cell of a CSV file: what could be taken for a formula begins with an apostrophe."""
    safe = _encodable(text.replace("\x00", "\ufffd"))
    return f"'{safe}" if safe.lstrip(" ").startswith(_FORMULA_STARTS) else safe


def sheet_text(text: str) -> str:
    """Returns text for a cell of an Excel sheet, which is written as text, never as a formula; cut where too long."""
    safe = _encodable(text)
    return safe if len(safe) <= LONGEST_CELL else safe[: LONGEST_CELL - 1] + "…"


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", _encodable(text)).strip()


def _encodable(text: str) -> str:
    """Returns text without lone surrogates, which UTF-8 cannot hold."""
    return _SURROGATES.sub("\ufffd", text)
