import ast

import pytest

from profiler_gui.toolkit.translations import CatalogueTranslator, catalogue_of, tr
from tests.support.captures import REPOSITORY


@pytest.fixture
def chinese(qapp):
    translator = CatalogueTranslator({"{count} events": "{count} 个事件"})
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


def test_english_stands_in_the_source(qapp):
    assert tr("{count} events", count=3) == "3 events"


def test_a_catalogue_translates_before_values_are_filled_in(chinese):
    assert tr("{count} events", count=3) == "3 个事件"
    assert tr("Cancel") == "Cancel"


def test_the_chinese_catalogue_is_there_and_keeps_every_named_place():
    for source, translated in catalogue_of("zh_CN").items():
        for name in source.split("{")[1:]:
            assert "{" + name.partition("}")[0] + "}" in translated, source


def test_english_needs_no_catalogue():
    assert catalogue_of("en") == {}


def test_every_text_of_the_chinese_catalogue_still_stands_in_the_source():
    used = {
        node.value
        for path in (REPOSITORY / "profiler_gui").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(catalogue_of("zh_CN")) - used == set()


def test_menus_keep_their_mnemonics_in_chinese():
    for source, translated in catalogue_of("zh_CN").items():
        assert ("&" in source) == ("&" in translated), source
