"""The product's own window, with all its panes."""

import sys
from unittest.mock import MagicMock

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit

from engine.analyses.summary import summarize
from profiler_gui import app
from profiler_gui.commands.command import KeyPreset, conflicts
from profiler_gui.session.document import Document
from profiler_gui.session.selection import EventSelection, RangeSelection
from profiler_gui.toolkit.preferences import THEME
from profiler_gui.window.messages import CrashReport
from tests.support.patience import PATIENCE_MS
from tests.support.windows import built_window, drawn_document

PICTURE = "gpu 7 | AAAA..BB |\nhost 1 | CCCC.... |"


@pytest.fixture
def window(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    yield window
    window.close()


def show_everything(window, qtbot):
    for page in window.pages:
        window.show_pane(page.id)
        qtbot.wait(20)
    for dock in window.docks:
        window.show_pane(dock.host.factory.id)
        qtbot.wait(20)


@pytest.mark.parametrize("preset", list(KeyPreset))
def test_no_key_of_the_product_does_two_things(window, preset):
    assert conflicts(window.commands, preset) == ()


def test_every_pane_copes_with_a_capture_whose_analyses_are_still_running(window, qtbot):
    window.context.session.show(drawn_document(PICTURE))
    show_everything(window, qtbot)


def test_every_pane_follows_document_rank_selection_range_and_theme(window, qtbot):
    drawn = drawn_document(PICTURE, "gpu 7 | BB |")
    document = Document(drawn.paths, drawn.label, drawn.job, summarize(drawn.job), 0)
    session = window.context.session
    session.show(document)
    show_everything(window, qtbot)
    session.set_rank(1)
    session.select(EventSelection(0, 0), reveal=True)
    session.select(RangeSelection(0, 1_000, 5_000))
    session.set_step(0)
    window.context.settings.set_value(THEME, "dark")
    qtbot.wait(20)
    window.commands.run("file.close", session)
    qtbot.wait(20)
    session.show(document)
    qtbot.wait(20)
    window.context.settings.set_value(THEME, "light")


def test_every_control_of_the_product_has_an_accessible_name(window, qtbot):
    window.context.session.show(drawn_document(PICTURE))
    show_everything(window, qtbot)
    nameless = [
        f"{type(control).__name__} in {type(control.parent()).__name__}"
        for kind in (QComboBox, QLineEdit, QAbstractButton)
        for control in window.findChildren(kind)
        if not control.accessibleName()
        and not control.objectName().startswith("qt_")
        and not isinstance(control.parent(), QComboBox | QLineEdit)
        and not (isinstance(control, QAbstractButton) and (control.text() or control.objectName()))
        and type(control).__module__.startswith("profiler_gui")
    ]
    assert nameless == []


def test_a_real_job_is_shown_on_every_page(window, qtbot, captures):
    session = window.context.session
    with qtbot.waitSignal(session.summary_changed, timeout=PATIENCE_MS):
        session.open((captures / "ascend" / "910b-qwen3-0.6b-pp2dp2",))
    assert session.document.ranks == (0, 1, 2, 3)
    window.activateWindow()
    for page in window.pages:
        window.show_pane(page.id)
        qtbot.wait(20)
        assert not isinstance(window.focusWidget(), QLineEdit), f"a filter of {page.id} would swallow keys of commands"
    show_everything(window, qtbot)
    session.set_rank(2)
    qtbot.wait(20)


def test_an_unexpected_error_in_a_slot_becomes_a_report(window):
    report = app._crash_reporter(window)
    try:
        raise IndexError(7)  # noqa: TRY301 - the traceback is what is reported
    except IndexError:
        report(*sys.exc_info())
    dialog = next(child for child in window.children() if isinstance(child, CrashReport))
    assert "IndexError: 7" in dialog.report.toPlainText()
    dialog.close()


def test_opening_from_the_command_line_begins_after_the_first_paint(window, monkeypatch, qtbot):
    opened = []
    monkeypatch.setattr(window.context.session, "open", lambda paths, run: opened.append(paths))
    app._after_first_paint(window, ("a", "b"))
    assert opened == [("a", "b")]


def test_fractions_of_a_pixel_are_passed_through(monkeypatch):
    seen = []
    monkeypatch.setattr(QGuiApplication, "setHighDpiScaleFactorRoundingPolicy", seen.append)
    monkeypatch.setattr(app, "QApplication", MagicMock())
    app.create_application(["x"])
    assert seen == [Qt.HighDpiScaleFactorRoundingPolicy.PassThrough]
