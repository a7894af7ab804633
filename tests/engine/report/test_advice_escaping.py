"""Text of users and captures stays text in every file, whatever it is."""

import csv
import io
import re
import xml.etree.ElementTree as ET
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from engine.report.advice_export import advice_csv, write_xlsx
from engine.report.advice_html import advice_html
from engine.report.advice_markdown import advice_markdown
from engine.report.escaping import html_text, markdown_code, markdown_text, spreadsheet_text
from tests.support.advices import advice_of, gain_ms, recommendation

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://example.invalid","x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "[link](javascript:alert(1))",
    "![x](http://example.invalid)",
    "a | b | c",
    "`code` ``two``",
    "# heading\n\n* list",
    "\ud800 lone surrogate",
    "nul\x00byte",
    "&amp; &lt;",
    "~~gone~~ **bold** __x__ http://example.invalid",
)
TEXTS = st.text(st.characters(), max_size=60)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@given(TEXTS)
@example(HOSTILE[0])
@example(HOSTILE[1])
def test_html_text_is_text_and_no_element(text: str) -> None:
    parser = _Tags()
    parser.feed(f'<p title="{html_text(text)}">{html_text(text)}</p>')
    parser.close()
    assert parser.tags == ["p"]


@given(TEXTS)
@example(HOSTILE[7])
@example(HOSTILE[11])
@example(HOSTILE[15])
@example("1. one")
@example("- minus")
@example("===")
@example("0)")
def test_markdown_text_renders_as_the_text_and_nothing_else(text: str) -> None:
    shown = " ".join(re.sub(r"[\ud800-\udfff]", "\ufffd", text).split())
    parser = _Tags()
    parser.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(f"- {markdown_text(text)}"))
    parser.close()
    assert set(parser.tags) <= {"ul", "li"}
    visible = " ".join("".join(parser.text).split())
    kept = re.sub(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]+", "", shown)
    assert (
        re.sub(r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]+", "", visible) == kept
    )


@given(TEXTS)
@example(HOSTILE[10])
def test_a_markdown_code_span_holds_everything(text: str) -> None:
    parser = _Tags()
    parser.feed(MarkdownIt("commonmark").render(f"- x {markdown_code(text)}"))
    parser.close()
    assert set(parser.tags) <= {"ul", "li", "code"}


@given(TEXTS)
@example(HOSTILE[2])
@example(HOSTILE[6])
def test_no_cell_of_a_csv_file_begins_like_a_formula(text: str) -> None:
    cell = spreadsheet_text(text)
    assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    cell.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_whole_page_holds_no_element_or_script_of_the_text(text: str) -> None:
    plain, hostile = _Tags(), _Tags()
    plain.feed(advice_html(advice_of(recommendation("x", gain_ms(1, 2, 3)))))
    page = advice_html(advice_of(recommendation("x", gain_ms(1, 2, 3), text=text), text=text))
    hostile.feed(page)
    assert hostile.tags == plain.tags
    assert "script" not in hostile.tags
    assert "default-src" in page
    page.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_whole_markdown_document_holds_no_markup_of_the_text(text: str) -> None:
    document = advice_markdown(advice_of(recommendation("x", gain_ms(1, 2, 3), text=text), text=text))
    parser = _Tags()
    parser.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(document))
    assert not set(parser.tags) & {"script", "img", "a", "s", "h4"}
    document.encode("utf-8")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_csv_file_has_one_row_per_recommendation_whatever_it_says(text: str) -> None:
    written = advice_csv(advice_of(recommendation("x", gain_ms(1, 2, 3), text=text)))
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert len(rows) == 1
    assert float(rows[0]["gain_expected_us"]) == 2000.0
    assert not any(str(cell).startswith(("=", "+", "-", "@", "\t")) for cell in rows[0].values())


@settings(max_examples=15)
@given(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4))
def test_a_spreadsheet_holds_text_and_numbers_but_no_formula_and_no_link(
    tmp_path_factory: object, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("sheet") / "advice.xlsx"  # type: ignore[attr-defined]
    write_xlsx(
        advice_of(*(recommendation(str(n), gain_ms(1, 2, 3), text=text) for n, text in enumerate(texts))), Path(path)
    )
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        assert len(sheets) == 5
        for name in sheets:
            root = ET.fromstring(archive.read(name))  # noqa: S314 - our own file
            kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
            assert not kinds & {"f", "hyperlink", "hyperlinks"}
