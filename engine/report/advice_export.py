"""Writes an advice to a file whose name says the format: .html, .md, .json, .csv or .xlsx."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from engine.advisor.recommendations import Advice
from engine.core.errors import ExportError
from engine.report.advice_document import advice_document
from engine.report.advice_html import advice_html
from engine.report.advice_markdown import advice_markdown
from engine.report.advice_tables import AdviceTable, Cell, advice_tables, recommendations_table
from engine.report.escaping import sheet_text, spreadsheet_text

_WIDEST_COLUMN = 60


def advice_csv(advice: Advice) -> str:
    """Returns one row per recommendation; what could be taken for a formula begins with an apostrophe."""
    table = recommendations_table(advice)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([spreadsheet_text(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def advice_json(advice: Advice) -> str:
    """Returns the document of CLI.md as text."""
    return json.dumps(advice_document(advice), allow_nan=False, indent=2) + "\n"


def write_xlsx(advice: Advice, path: Path) -> None:
    """Writes one sheet per table; every text is written as text, so that none is a formula or a link.

    Raises:
        OSError: The file cannot be written.
    """
    import xlsxwriter  # a file only this command writes: others start without it

    with xlsxwriter.Workbook(str(path)) as book:
        head = book.add_format({"bold": True, "bottom": 1})
        body = book.add_format({"text_wrap": True, "valign": "top"})
        for table in advice_tables(advice):
            sheet = book.add_worksheet(table.title)
            sheet.freeze_panes(1, 0)
            for column, title in enumerate(table.columns):
                sheet.write_string(0, column, title, head)
                sheet.set_column(column, column, _width(table, column))
            for place, row in enumerate(table.rows, start=1):
                for column, cell in enumerate(row):
                    _write_cell(sheet, place, column, cell, body)


def _write_cell(sheet: object, row: int, column: int, cell: Cell, style: object) -> None:
    """Writes one cell by its type; nothing for None."""
    if isinstance(cell, str):
        if cell:
            sheet.write_string(row, column, sheet_text(cell), style)  # type: ignore[attr-defined]  # untyped library
    elif cell is not None:
        sheet.write_number(row, column, cell, style)  # type: ignore[attr-defined]  # untyped library


def _width(table: AdviceTable, column: int) -> int:
    longest = max((len(str(row[column])) for row in table.rows if row[column] is not None), default=0)
    return min(max(longest, len(table.columns[column])) + 2, _WIDEST_COLUMN)


_TEXTS: dict[str, Callable[[Advice], str]] = {
    ".html": advice_html,
    ".htm": advice_html,
    ".md": advice_markdown,
    ".json": advice_json,
    ".csv": advice_csv,
}
FORMATS = (".html", ".md", ".json", ".csv", ".xlsx")


def check_advice_path(path: Path) -> None:
    """Raises ExportError unless the name ends in a known format and its directory exists: before long work begins."""
    if path.suffix.lower() not in (*_TEXTS, ".xlsx"):
        raise ExportError(
            f"{path}: no format is called {path.suffix or 'nothing'}; end the name in {', '.join(FORMATS)}"
        )
    if not path.parent.is_dir():
        raise ExportError(f"{path.parent}: no such directory; create it first")


def write_advice(advice: Advice, path: Path) -> None:
    """Writes the advice in the format of the file's name.

    Raises:
        ExportError: An unknown format, or a file that cannot be written.
    """
    check_advice_path(path)
    try:
        if path.suffix.lower() == ".xlsx":
            write_xlsx(advice, path)
            return
        text = _TEXTS[path.suffix.lower()](advice)
        # Excel takes a CSV file for UTF-8 only where it begins with a byte order mark.
        path.write_text(text, encoding="utf-8-sig" if path.suffix.lower() == ".csv" else "utf-8", newline="")
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}; check the directory") from error
