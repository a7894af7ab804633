from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QSettings

from profiler_gui.toolkit.preferences import SHARED_SETTINGS
from profiler_gui.toolkit.settings import MAX_CAPTURES, Choice, SettingDescriptor, SettingsStore

SIZE = SettingDescriptor("view/size", 10, "Size", minimum=5, maximum=50)
SHOWN = SettingDescriptor("view/shown", True, "Shown")
MODE = SettingDescriptor("view/mode", "a", "Mode", choices=(Choice("a", "A"), Choice("b", "B")))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "settings.ini"


def store(path, *migrations):
    return SettingsStore(path, (SIZE, SHOWN, MODE), migrations)


def test_values_come_back_with_their_types(qapp, path):
    first = store(path)
    first.set_value(SIZE, 20)
    first.set_value(SHOWN, False)
    first.set_value(MODE, "b")
    first.sync()
    again = store(path)
    assert (again.value(SIZE), again.value(SHOWN), again.value(MODE)) == (20, False, "b")


def test_what_is_not_allowed_in_the_file_is_the_default(qapp, path):
    path.write_text("[view]\nsize=9999\nshown=perhaps\nmode=c\n", encoding="utf-8")
    settings = store(path)
    assert (settings.value(SIZE), settings.value(SHOWN), settings.value(MODE)) == (10, True, "a")


def test_what_is_not_allowed_is_not_stored(qapp, path):
    with pytest.raises(ValueError, match="view/size"):
        store(path).set_value(SIZE, 4)


def test_a_change_is_announced_once(qapp, qtbot, path):
    settings = store(path)
    with qtbot.waitSignal(settings.changed) as changed:
        settings.set_value(SIZE, 11)
    assert changed.args == ["view/size"]
    with qtbot.assertNotEmitted(settings.changed):
        settings.set_value(SIZE, 11)


def test_two_settings_of_one_id_are_a_mistake(qapp, path):
    with pytest.raises(ValueError, match="twice"):
        SettingsStore(path, (SIZE, SIZE))


def test_an_older_file_is_brought_up_to_date_once(qapp, path):
    path.write_text("schema_version=1\n[old]\nsize=33\n", encoding="utf-8")
    calls = []

    def rename(file: QSettings) -> None:
        calls.append(1)
        file.setValue("view/size", file.value("old/size"))

    first = store(path, rename)
    assert first.value(SIZE) == 33
    first.sync()
    assert store(path, rename).value(SIZE) == 33
    assert len(calls) == 1


def test_recent_captures_are_distinct_latest_first_and_limited(qapp, path):
    settings = store(path)
    for number in range(15):
        settings.add_recent((Path(f"/run{number}"),))
    settings.add_recent((Path("/run5"), Path("/run6")))
    settings.add_recent((Path("/run14"),))
    assert settings.recent[:2] == ((Path("/run14"),), (Path("/run5"), Path("/run6")))
    assert len(settings.recent) == 12
    settings.sync()
    assert store(path).recent == settings.recent
    settings.clear_recent()
    assert store(path).recent == ()


def test_one_recent_capture_survives_the_file(qapp, path):
    settings = store(path)
    settings.add_recent((Path("/only"),))
    settings.sync()
    assert store(path).recent == ((Path("/only"),),)


def test_states_are_kept_and_forgotten(qapp, path):
    settings = store(path)
    settings.save_state("docks", QByteArray(b"\x00\x01"))
    settings.sync()
    assert store(path).state("docks") == QByteArray(b"\x00\x01")
    settings.save_state("docks", QByteArray())
    assert settings.state("docks").isEmpty()


def test_every_shared_setting_can_be_shown_and_has_an_allowed_default(qapp, path):
    settings = SettingsStore(path, SHARED_SETTINGS)
    for descriptor in settings:
        assert descriptor.title
        assert settings.value(descriptor) == descriptor.default


def test_what_is_kept_for_captures_is_forgotten_when_there_are_too_many(tmp_path):
    store = SettingsStore(tmp_path / "settings.ini", ())
    for number in range(MAX_CAPTURES + 1):
        store.save_capture_state(f"k{number}", "marks", "text")
    assert store.capture_state("k0", "marks") == ""
    assert store.capture_state("k1", "marks") == "text"
    store.save_capture_state("k1", "marks", "")
    assert store.capture_state("k1", "marks") == ""
