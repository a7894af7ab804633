import pytest

from profiler_gui.commands.command import Command, CommandRegistry, KeyPreset, conflicts, with_document
from profiler_gui.session.session import Session
from tests.support.windows import drawn_document


def command(command_id, *keys, scope="", **more):
    return Command(command_id, command_id, lambda: None, keys, scope=scope, **more)


def test_ids_are_unique():
    registry = CommandRegistry()
    registry.add(command("a"))
    with pytest.raises(ValueError, match="'a'"):
        registry.add(command("a"))


def test_a_command_runs_only_while_it_is_enabled(qapp, tmp_path):
    ran = []
    session = Session(tmp_path)
    registry = CommandRegistry()
    registry.add(Command("a", "A", lambda: ran.append(1), is_enabled=with_document))
    assert not registry.run("a", session)
    session.show(drawn_document("gpu 7 | A |"))
    assert registry.run("a", session)
    assert ran == [1]
    session.close()


def test_a_preset_replaces_keys():
    item = command("a", "M", preset_keys={KeyPreset.INSIGHT: ("K",)})
    assert item.keys_of(KeyPreset.PERFETTO) == ("M",)
    assert item.keys_of(KeyPreset.INSIGHT) == ("K",)


def test_conflicts_are_found_within_a_scope_and_with_the_whole_window():
    registry = CommandRegistry()
    registry.add(command("a", "W", scope="timeline"), command("b", "W", scope="memory"), command("c", "w"))
    assert {pair[1:] for pair in conflicts(registry, KeyPreset.PERFETTO)} == {("a", "c"), ("b", "c")}


def test_a_plain_title_has_no_mnemonic():
    assert Command("a", "Search && &Find", lambda: None).plain_title == "Search & Find"
