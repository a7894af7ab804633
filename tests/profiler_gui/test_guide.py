"""The user guide says what the window does."""

from profiler_gui.app import pane_factories
from tests.support.key_table import GUIDE, key_table, written_table
from tests.support.windows import built_window


def test_the_keys_in_the_guide_are_those_of_the_commands(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    assert written_table() == key_table(window.commands), "run: python -m tests.support.key_table"
    window.close()


def test_every_page_and_dock_has_a_word_in_the_guide():
    text = GUIDE.read_text(encoding="utf-8")
    missing = [item.id for item in pane_factories() if f"**{item.title.replace('&', '')}**" not in text]
    assert missing == []
