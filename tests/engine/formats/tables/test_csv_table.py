import csv
import io
import math
import tempfile
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.core.errors import OperationCancelled, TraceSyntaxError
from engine.core.progress import CancelToken
from engine.core.units import MAX_TIME_NS
from engine.formats.reader import ReadContext
from engine.formats.tables import cell_numbers
from engine.formats.tables.csv_rows import read_row, row_offsets
from engine.formats.tables.csv_table import CellKind, Column, TableColumns, number_titles, read_columns
from engine.trace import DiagnosticLog, StringInterner

TEXT = Column("text", CellKind.TEXT, {"a": 1})
NUMBER = Column("number", CellKind.DECIMAL, {"b": 1000})


def read(path: Path, content: str | bytes, *columns: Column) -> tuple[TableColumns, StringInterner, DiagnosticLog]:
    path = path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    strings, log = StringInterner(), DiagnosticLog()
    return read_columns(path, columns or (TEXT, NUMBER), strings, log, ReadContext()), strings, log


def texts(table: TableColumns, strings: StringInterner, key: str = "text") -> list[str]:
    return strings.table().texts(table.text(key))


def counts(log: DiagnosticLog) -> dict[str, int]:
    return {item.code: item.count for item in log.diagnostics()}


def scaled(text: str, scale: int) -> int:
    data = np.frombuffer(text.encode(), dtype=np.uint8)
    values = np.empty(1, dtype=np.int64)
    cell_numbers.parse_scaled(data, np.array([0]), np.array([len(data)]), scale, values)
    return int(values[0])


def test_epoch_microseconds_with_three_decimals_are_exact(tmp_path: Path) -> None:
    table, _, _ = read(tmp_path, "a,b\nx,1736412474730135.223\t\n")
    assert table.decimal("number").tolist() == [1_736_412_474_730_135_223]


@example(922_337_203_685_478, "0006", 1000)
@example(0, "0000004999999999999999", 1 << 20)
@example(922_337_203_685_477_581, "7", 1)
@example(922_337_203_685_477_581, "5000000000000000001", 1)
@settings(max_examples=300)
@given(st.integers(-(10**9), 10**15), st.text("0123456789", max_size=26), st.sampled_from([1, 1000, 1024, 1 << 20]))
def test_decimal_text_is_scaled_like_exact_arithmetic(whole: int, fraction: str, scale: int) -> None:
    text = f"{whole}.{fraction}" if fraction else str(whole)
    exact = round(Fraction(text) * scale)  # half to even
    if abs(exact) < MAX_TIME_NS:
        assert scaled(text, scale) == exact


@given(st.integers(0, 10**6), st.integers(-8, 9))
def test_exponents_are_understood(mantissa: int, exponent: int) -> None:
    exact = (Decimal(mantissa).scaleb(exponent) * 1000).to_integral_value(rounding=ROUND_HALF_EVEN)
    assert scaled(f"{mantissa}E{exponent:+d}", 1000) == int(exact)


@pytest.mark.parametrize("text", ["12x", "1.2.3", "--1", "1e", ".", "+", "9" * 30, "inf", "1 2"])
def test_text_that_is_no_number_counts_as_missing(text: str, tmp_path: Path) -> None:
    table, _, log = read(tmp_path, f"a,b\nx,{text}\ny,1\n")
    assert table.decimal("number").tolist() == [-1, 1000]
    assert counts(log) == {"unreadable-table-cell": 1}


@pytest.mark.parametrize("text", ["", "N/A", "NA", "n/a", "nan", "None", "null", "-", " \t"])
def test_words_for_no_value_are_missing_and_no_fault(text: str, tmp_path: Path) -> None:
    table, _, log = read(tmp_path, f"a,b\nx,{text}\n")
    assert table.decimal("number", missing=-7).tolist() == [-7]
    assert counts(log) == {}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_as_python_reads_them(number: float) -> None:
    data = np.frombuffer(repr(number).encode(), dtype=np.uint8)
    values, status = np.empty(1), np.empty(1, dtype=np.uint8)
    cell_numbers.parse_floats(data, np.array([0]), np.array([len(data)]), values, status)
    assert status[0] == cell_numbers.HARD or values[0] == number


def test_quoted_cells_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    content = 'a,b\r\n"one, ""two""\nthree",1\r\nplain,2\r\n'
    table, strings, log = read(tmp_path, content)
    assert texts(table, strings) == ['one, "two"\nthree', "plain"]
    assert table.decimal("number").tolist() == [1000, 2000]
    assert counts(log) == {}


def test_a_line_end_may_be_lf_or_crlf_in_one_file(tmp_path: Path) -> None:
    table, strings, _ = read(tmp_path, "a,b\r\nx,1\ny,2\r\nz,3")
    assert texts(table, strings) == ["x", "y", "z"]
    assert table.decimal("number").tolist() == [1000, 2000, 3000]


def test_a_byte_order_mark_is_no_part_of_the_first_title(tmp_path: Path) -> None:
    table, _, _ = read(tmp_path, "\ufeffa,b\nx,1\n")
    assert table.titles == ("a", "b")


def test_rows_with_another_number_of_cells_are_counted_and_left_out(tmp_path: Path) -> None:
    table, strings, log = read(tmp_path, "a,b\nx,1\ny,2,3\nz\n\nw,4\n")
    assert texts(table, strings) == ["x", "w"]
    assert counts(log) == {"broken-table-row": 2}


def test_a_quote_that_is_never_closed_costs_one_row(tmp_path: Path) -> None:
    table, strings, log = read(tmp_path, 'a,b\nx,1\n"y,2\nz,3\n')
    assert texts(table, strings) == ["x", "z"]
    assert counts(log) == {"broken-table-row": 1}


def test_a_stray_quote_does_not_swallow_the_rows_after_it(tmp_path: Path) -> None:
    table, strings, log = read(tmp_path, 'a,b\n"x,1\ny,2\n"z",3\nw,4\n')
    assert texts(table, strings) == ["y", "z", "w"]
    assert counts(log) == {"broken-table-row": 1}


def test_a_comma_at_the_end_of_every_line_is_an_empty_column(tmp_path: Path) -> None:
    table, strings, log = read(tmp_path, "a,b,\nx,1,\n")
    assert table.titles == ("a", "b", "")
    assert texts(table, strings) == ["x"]
    assert counts(log) == {}


def test_text_after_a_closing_quote_keeps_the_quotes(tmp_path: Path) -> None:
    table, strings, _ = read(tmp_path, 'a,b\n"x"y,1\n')
    assert texts(table, strings) == ['"x"y']


def test_rows_without_a_needed_value_are_counted_and_left_out(tmp_path: Path) -> None:
    needed = Column("number", CellKind.DECIMAL, {"b": 1}, needed=True)
    table, strings, log = read(tmp_path, "a,b\nx,N/A\ny,2\n", TEXT, needed)
    assert texts(table, strings) == ["y"]
    assert table.row.tolist() == [1]
    assert counts(log) == {"incomplete-table-row": 1}


def test_columns_are_found_by_any_of_their_titles_in_any_case(tmp_path: Path) -> None:
    column = Column("number", CellKind.DECIMAL, {"Size(MB)": 1 << 20, "Size(KB)": 1 << 10})
    table, _, _ = read(tmp_path, "size(kb)\n0.5\n", column)
    assert table.decimal("number").tolist() == [512]


def test_a_missing_needed_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceSyntaxError, match="no column c or d"):
        read(tmp_path, "a,b\nx,1\n", Column("c", CellKind.TEXT, {"c": 1, "d": 1}, needed=True))


def test_a_missing_column_reads_as_absent(tmp_path: Path) -> None:
    table, _, _ = read(tmp_path, "a\nx\n", TEXT)
    assert table.decimal("number").tolist() == [-1]
    assert table.text("other").tolist() == [-1]


def test_an_empty_file_has_no_titles(tmp_path: Path) -> None:
    with pytest.raises(TraceSyntaxError, match="empty"):
        read(tmp_path, b"")


def test_a_table_of_titles_has_no_rows(tmp_path: Path) -> None:
    assert len(read(tmp_path, "a,b")[0]) == 0
    assert len(read(tmp_path, "a,b\n")[0]) == 0


def test_bytes_that_are_no_utf8_are_counted(tmp_path: Path) -> None:
    table, strings, log = read(tmp_path, b"a,b\n\xb2\xe2,1\n")
    assert "\N{REPLACEMENT CHARACTER}" in texts(table, strings)[0]
    assert counts(log) == {"invalid-utf8": 1}


def test_unicode_names_are_kept(tmp_path: Path) -> None:
    table, strings, _ = read(tmp_path, "a,b\n算子_前向,1\n")
    assert texts(table, strings) == ["算子_前向"]


def test_one_column_can_be_read_in_two_ways(tmp_path: Path) -> None:
    table, strings, _ = read(tmp_path, "b\n1.5\n", Column("text", CellKind.TEXT, {"b": 1}), NUMBER)
    assert texts(table, strings) == ["1.5"]
    assert table.decimal("number").tolist() == [1500]


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=8), st.integers(-99, 99)), max_size=40))
def test_whatever_pythons_csv_writes_is_read_back(rows: list[tuple[str, int]]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["a", "b"])
    writer.writerows(rows)
    with tempfile.TemporaryDirectory() as directory:
        table, strings, log = read(Path(directory), buffer.getvalue())
        offsets = row_offsets(Path(directory) / "table.csv")
    assert texts(table, strings) == [text for text, _ in rows]
    assert table.decimal("number", missing=0).tolist() == [number * 1000 for _, number in rows]
    assert counts(log) == {}
    assert len(offsets) == len(rows)


def test_many_rows_cross_blocks(tmp_path: Path) -> None:
    count = 40_000
    body = "".join(f"name{index % 7},{index}\n" for index in range(count))
    table, strings, _ = read(tmp_path, "a,b\n" + body)
    assert table.decimal("number").tolist() == [index * 1000 for index in range(count)]
    assert texts(table, strings)[:8] == [f"name{index % 7}" for index in range(8)]
    assert read_row(tmp_path / "table.csv", int(row_offsets(tmp_path / "table.csv")[-1])) == {
        "a": f"name{(count - 1) % 7}",
        "b": str(count - 1),
    }


def test_reading_stops_when_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\nx,1\n")
    with pytest.raises(OperationCancelled):
        read_columns(path, [TEXT], StringInterner(), DiagnosticLog(), ReadContext(cancel=CancelToken(lambda: True)))


def test_columns_of_numbers_are_told_from_text(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("n,t,epoch,noise,none\n1,x,1736412474730135.223,8827.472999999998,N/A\n,2,1,1e300,\n")
    _, numeric = number_titles(path, ReadContext())
    assert numeric == {"n", "noise", "none"}
    strings = StringInterner()
    columns = [Column(title, CellKind.FLOAT, {title: 1}) for title in ("n", "noise")]
    table = read_columns(path, columns, strings, DiagnosticLog(), ReadContext())
    assert table.columns["noise"].tolist() == [8827.472999999998, 1e300]
    assert table.columns["n"][0] == 1.0
    assert math.isnan(table.columns["n"][1])
