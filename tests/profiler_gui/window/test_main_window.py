from dataclasses import replace

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QFont, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QMessageBox, QTabBar, QVBoxLayout, QWidget

from engine.trace import Diagnostic, Severity
from profiler_gui.commands.command import Command, KeyPreset, conflicts
from profiler_gui.commands.panes import ALL_DOCKS, PaneFactory, PanePlace
from profiler_gui.item_models.table_view import FilteredTable, TableView
from profiler_gui.item_models.trace_tables import event_table
from profiler_gui.session.document import Run
from profiler_gui.session.failure import Failure
from profiler_gui.session.selection import EventSelection, TrackSelection
from profiler_gui.toolkit.preferences import KEY_PRESET, THEME
from profiler_gui.window.chooser import ranked
from profiler_gui.window.file_dialogs import table_in_view
from profiler_gui.window.images import save_image
from profiler_gui.window.main_window import MainWindow
from profiler_gui.window.messages import CrashReport
from profiler_gui.window.palette import CommandPalette, TrackFinder
from profiler_gui.window.preferences_dialog import Preferences
from profiler_gui.window.rail import Rail
from profiler_gui.window.shortcuts_help import ShortcutsHelp
from tests.support.trace_text import US
from tests.support.windows import built_window, drawn_document

PICTURE = "gpu 7 | AAAA..BB |\nhost 1 | CCCC.... |"


class EventsPane(QWidget):
    def __init__(self, context):
        super().__init__()
        self.table = FilteredTable("Events")
        QVBoxLayout(self).addWidget(self.table)
        self.table.set_table(event_table(context.session.trace))


def fake_factories(log):
    def page_commands(context):
        return (Command("timeline.zoom_in", "Zoom In", lambda: log.append("zoom"), ("W", "Down"), scope="timeline"),)

    def create(context):
        log.append("made")
        return QLineEdit()

    return (
        PaneFactory(
            "overview", "&Overview", PanePlace.PAGE, lambda context: QLabel("sentence"), key="Ctrl+1", docks=ALL_DOCKS
        ),
        PaneFactory("timeline", "&Timeline", PanePlace.PAGE, create, page_commands, key="Ctrl+2", docks=ALL_DOCKS),
        PaneFactory("memory", "&Memory", PanePlace.PAGE, lambda context: QLabel("memory"), key="Ctrl+3"),
        PaneFactory("events", "&Events", PanePlace.BOTTOM, EventsPane),
        PaneFactory("operators", "&Operators", PanePlace.BOTTOM, lambda context: QLabel("operators")),
        PaneFactory("details", "&Details", PanePlace.RIGHT, lambda context: QLabel("details")),
    )


@pytest.fixture
def log():
    return []


@pytest.fixture
def window(qapp, qtbot, tmp_path, log):
    window = built_window(qapp, tmp_path, fake_factories(log))
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    yield window
    window.close()


def session_of(window):
    return window.context.session


def dialog_of(window, kind):
    return next(child for child in window.children() if isinstance(child, kind))


def test_a_track_is_found_by_its_name_and_shown_on_the_timeline(window, qtbot):
    session = session_of(window)
    session.show(drawn_document(PICTURE))
    window.commands.run("view.find_track", session)
    finder = dialog_of(window, TrackFinder)
    assert finder.list.count() == 2
    qtbot.keyClicks(finder.edit, "host")
    qtbot.keyClick(finder.edit, Qt.Key.Key_Return)
    names = [track.name for track in session.trace.tracks]
    assert session.selection == TrackSelection(0, names.index("host 1"))
    assert window.page == "timeline"


def test_an_empty_window_welcomes_and_offers_nothing_that_needs_a_capture(window):
    assert window.stack.currentWidget() is window.welcome
    assert not window.actions_of_commands["edit.find"].isEnabled()
    assert window.actions_of_commands["file.open_folder"].isEnabled()
    assert window.windowTitle() == "CannScope"


def test_a_new_window_fits_its_screen(window):
    fitting = window.screen().availableSize().expandedTo(window.minimumSize())
    assert window.size() == window.size().boundedTo(fitting)


def test_a_capture_shows_the_first_page_its_name_and_its_size(window):
    session_of(window).show(drawn_document(PICTURE, label="run 7"))
    assert window.page == "overview"
    assert window.windowTitle() == "run 7 – CannScope"
    assert window.statusBar().events_label.text() == "3 events"


def test_a_pane_is_made_when_it_is_first_seen_and_only_then(window, log):
    session_of(window).show(drawn_document(PICTURE))
    assert log == []
    window.show_pane("timeline")
    window.show_pane("overview")
    window.show_pane("timeline")
    assert log == ["made"]


def test_docks_make_their_panes_with_the_capture_not_before(window):
    assert window.docks["events"].host.pane is None
    session_of(window).show(drawn_document(PICTURE))
    assert isinstance(window.docks["events"].host.pane, EventsPane)


def test_rank_and_step_boxes_drive_the_session(window):
    session = session_of(window)
    session.show(drawn_document(PICTURE, "gpu 7 | BB |"))
    assert [window.header.rank.itemText(index) for index in range(2)] == ["Rank 0", "Rank 1"]
    window.header.rank.setCurrentIndex(1)
    window.header.rank.activated.emit(1)
    assert session.rank == 1
    session.back()
    assert window.header.rank.currentData() == 0


def test_a_second_run_can_be_exchanged_from_the_header(window):
    session = session_of(window)
    session.show(drawn_document(PICTURE, label="first"))
    session.show(drawn_document(PICTURE, label="second"), Run.B)
    assert window.header.run_b.currentText() == "second"
    assert window.windowTitle() == "first ↔ second – CannScope"
    window.commands.run("file.exchange_runs", session)
    assert window.header.run_a.currentText() == "second"


def test_keys_of_a_page_work_only_while_it_is_in_view(window, qtbot, log):
    session_of(window).show(drawn_document(PICTURE))
    qtbot.keyClick(window, Qt.Key.Key_W)
    assert log == []
    window.show_pane("timeline")
    window.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_W)
    assert log == ["made", "zoom"]


def test_arrows_stay_with_a_table_that_has_the_focus_and_letters_go_to_the_page(window, qtbot, log):
    session_of(window).show(drawn_document(PICTURE))
    window.show_pane("timeline")
    window.activateWindow()
    view = window.docks["events"].host.pane.table.view
    view.setFocus()
    view.selectRow(0)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.currentIndex().row() == 1
    assert log == ["made"]
    qtbot.keyClick(view, Qt.Key.Key_W)
    assert log == ["made", "zoom"]


def test_typing_into_a_line_is_never_taken_for_a_shortcut(window, qtbot, log):
    session_of(window).show(drawn_document(PICTURE))
    window.show_pane("timeline")
    window.commands.run("edit.find", session_of(window))
    edit = window.search_bar.edit
    qtbot.keyClicks(edit, "wq/?")
    assert edit.text() == "wq/?"
    assert log == ["made"]


def test_search_lists_all_matches_and_enter_walks_over_them(window, qtbot):
    session = session_of(window)
    session.show(drawn_document("gpu 7 | AB.A.BA |"))
    window.commands.run("edit.find", session)
    bar = window.search_bar
    qtbot.keyClicks(bar.edit, "a")
    bar.search_now()
    assert bar.count_label.text() == "3 matches"
    assert bar.hits.table.rowCount() == 3
    qtbot.keyClick(bar.edit, Qt.Key.Key_Return)
    qtbot.keyClick(bar.edit, Qt.Key.Key_Return)
    assert bar.count_label.text() == "2 / 3"
    assert session.selection == EventSelection(0, 2)
    qtbot.keyClick(bar.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert session.selection == EventSelection(0, 0)
    qtbot.keyClick(bar.edit, Qt.Key.Key_Escape)
    assert not bar.isVisible()
    assert not session.matches.is_active


def test_a_broken_pattern_is_explained_beside_the_search(window):
    session_of(window).show(drawn_document(PICTURE))
    window.search_bar.regex.setChecked(True)
    window.search_bar.edit.setText("(")
    window.search_bar.search_now()
    assert "position 0" in window.search_bar.count_label.text()


def test_the_palette_finds_by_parts_of_words_and_runs(window, qtbot):
    session = session_of(window)
    session.show(drawn_document(PICTURE))
    window.show_palette()
    palette = dialog_of(window, CommandPalette)
    qtbot.keyClicks(palette.edit, "time")
    assert palette.list.currentItem().text().startswith("View · Timeline")
    qtbot.keyClick(palette.edit, Qt.Key.Key_Return)
    assert window.page == "timeline"


def test_ranking_puts_beginnings_first():
    titles = ["Show overview", "Overview", "Zoom over", "Stopover"]
    assert ranked("over", titles) == [1, 0, 2, 3]
    assert ranked("zo ov", titles) == [2]
    assert ranked("", titles) == [0, 1, 2, 3]


def test_the_layout_is_kept_and_the_default_one_can_be_restored(window, qapp, qtbot, tmp_path, log):
    session_of(window).show(drawn_document(PICTURE))
    window.docks["events"].hide()
    window.close()
    again = built_window(qapp, tmp_path, fake_factories(log))
    qtbot.addWidget(again)
    again.show()
    session_of(again).show(drawn_document(PICTURE))
    assert again.docks["events"].isHidden()
    assert not again.docks["details"].isHidden()
    again.commands.run("view.restore_layout", session_of(again))
    assert not again.docks["events"].isHidden()


def test_every_page_keeps_a_layout_of_its_own(window):
    assert all(dock.isHidden() for dock in window.docks)
    session_of(window).show(drawn_document(PICTURE))
    window.docks["details"].hide()
    window.show_pane("memory")
    assert window.docks["events"].isHidden()
    assert not window.docks["details"].isHidden()
    window.show_pane("overview")
    assert not window.docks["events"].isHidden()
    assert window.docks["details"].isHidden()
    window.commands.run("file.close", session_of(window))
    assert all(dock.isHidden() for dock in window.docks)


def test_no_tabs_stay_behind_where_docks_are_hidden(window, qtbot):
    session_of(window).show(drawn_document(PICTURE))
    qtbot.wait(20)
    window.show_pane("memory")
    qtbot.wait(20)
    assert not any(bar.count() for bar in window.findChildren(QTabBar) if bar.isVisible() and bar.parent() is window)


def test_no_tabs_of_docks_stay_behind_however_often_pages_change(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.show()
    session_of(window).show(drawn_document(PICTURE))
    titles = []
    for page in ("whatif", "timeline", "whatif", "timeline", "memory", "whatif"):
        window.show_pane(page)
        qtbot.wait(30)
        bars = [bar for bar in window.findChildren(QTabBar) if bar.isVisible() and bar.parent() is window]
        titles.append([[bar.tabText(index) for index in range(bar.count())] for bar in bars if bar.count()])
    left, below = ["Optimizations", "Recommendations"], ["Events", "Operators", "Modules", "Range", "Diagnostics"]
    assert titles == [[left], [below], [left], [below], [], [left]]
    window.close()


def test_q_hides_the_docks_and_shows_them_again(window, qtbot):
    session_of(window).show(drawn_document(PICTURE))
    qtbot.keyClick(window, Qt.Key.Key_Q)
    assert all(dock.isHidden() for dock in window.docks)
    qtbot.keyClick(window, Qt.Key.Key_Q)
    assert not any(dock.isHidden() for dock in window.docks)


def test_what_was_opened_is_offered_again_until_cleared(window, tmp_path):
    first = drawn_document(PICTURE, label="first")
    session_of(window).show(first)
    assert window.context.settings.recent == (first.paths,)
    window.context.settings.clear_recent()
    assert window.context.settings.recent == ()


def test_dropped_files_are_opened(window, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(session_of(window), "open", lambda paths, run: opened.append(paths))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path))])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    window.dropEvent(event)
    assert opened == [(tmp_path,)]


def test_a_failure_says_what_where_and_what_to_do(window):
    session_of(window).failed.emit(Failure("the content is no trace", "/captures/x", "open one of: …"))
    box = dialog_of(window, QMessageBox)
    assert box.text() == "The content is no trace."
    assert box.informativeText() == "/captures/x\n\nOpen one of: …."
    box.close()


def test_a_crash_shows_a_report_with_the_traceback(window):
    session_of(window).failed.emit(Failure("IndexError: 1", traceback="Traceback …\nIndexError: 1"))
    report = dialog_of(window, CrashReport)
    assert "IndexError: 1" in report.report.toPlainText()
    assert "Python 3" in report.report.toPlainText()
    report.close()


def test_preferences_apply_at_once_and_cancel_takes_them_back(window):
    window.show_preferences()
    dialog = dialog_of(window, Preferences)
    box = dialog.controls[THEME.id]
    box.setCurrentIndex(box.findData("dark"))
    box.activated.emit(box.currentIndex())
    assert window.context.theme.is_dark
    dialog.reject()
    assert window.context.settings.value(THEME) == "system"


def test_the_key_preset_changes_keys_while_the_window_runs(window):
    window.context.settings.set_value(KEY_PRESET, "insight")
    assert window.actions_of_commands["view.palette"].shortcut() == QKeySequence("Ctrl+Shift+P")


@pytest.mark.parametrize("preset", list(KeyPreset))
def test_no_key_does_two_things(window, preset):
    assert conflicts(window.commands, preset) == ()


def test_the_list_of_keys_names_every_command_that_has_one(window):
    window.show_keys()
    help_dialog = dialog_of(window, ShortcutsHelp)
    texts = [help_dialog.table.item(row, 0).text() for row in range(help_dialog.table.rowCount())]
    assert "Zoom In" in texts
    assert "Keys" in texts
    help_dialog.close()


def test_the_visible_table_is_what_export_means(window, qtbot):
    session_of(window).show(drawn_document(PICTURE))
    qtbot.waitUntil(lambda: table_in_view(window) is not None)
    assert table_in_view(window).accessibleName() == "Events"


@pytest.mark.parametrize("name", ["view.png", "view.svg"])
def test_a_view_is_saved_as_an_image_that_is_not_empty(window, tmp_path, name):
    session_of(window).show(drawn_document(PICTURE))
    save_image(window.stack.currentWidget(), tmp_path / name)
    assert (tmp_path / name).stat().st_size > 200


def test_every_control_has_an_accessible_name(window):
    session_of(window).show(drawn_document(PICTURE))
    nameless = [
        control
        for kind in (QComboBox, QLineEdit, TableView)
        for control in window.findChildren(kind)
        if not control.accessibleName() and not isinstance(control.parent(), QComboBox)
    ]
    nameless += [
        button
        for button in window.findChildren(QAbstractButton)
        if button.isVisible()
        and not (button.accessibleName() or button.text() or button.objectName().startswith("qt_"))
    ]
    log_edit = window._page_hosts["timeline"].pane
    assert [control for control in nameless if control is not log_edit] == []


def test_the_cursor_and_the_selection_are_told_in_the_status_bar(window):
    session = session_of(window)
    session.show(drawn_document(PICTURE))
    session.report_cursor(1500)
    assert window.statusBar().cursor_label.text() == "1.500 µs"
    session.select(EventSelection(0, 0))
    assert window.statusBar().selection_label.text() == "Selected 4 µs"
    assert session.viewport.duration_ns == 8 * US


def test_closing_the_capture_returns_to_the_welcome_page(window):
    session = session_of(window)
    session.show(drawn_document(PICTURE))
    window.commands.run("file.close", session)
    assert window.stack.currentWidget() is window.welcome
    assert isinstance(window, MainWindow)


def test_what_could_not_be_used_is_told_in_the_status_bar_and_leads_to_the_list(window):
    document = drawn_document(PICTURE)
    lost = Diagnostic("bad-row", Severity.DATA_LOSS, 3, "rows without a start")
    notice = Diagnostic("clock", Severity.NOTICE, 1, "no clock")
    button = window.statusBar().diagnostics_button
    session_of(window).show(replace(document, job=replace(document.job, diagnostics=(notice,))))
    assert button.text() == "1 notice"
    session_of(window).show(replace(document, job=replace(document.job, diagnostics=(lost, notice))))
    assert button.text() == "⚠ 1 problem in the capture"
    assert button.toolTip() == "rows without a start\nno clock"
    session_of(window).show(document)
    assert button.isHidden()


def test_the_columns_of_a_table_are_kept(window, qapp, qtbot, tmp_path, log):
    session_of(window).show(drawn_document(PICTURE))
    qtbot.waitUntil(lambda: window.docks["events"].host.pane is not None)
    window.docks["events"].host.pane.table.view.setColumnHidden(1, True)
    window.close()
    again = built_window(qapp, tmp_path, fake_factories(log))
    qtbot.addWidget(again)
    again.show()
    session_of(again).show(drawn_document(PICTURE))
    qtbot.waitUntil(lambda: again.docks["events"].host.pane is not None)
    assert again.docks["events"].host.pane.table.view.isColumnHidden(1)


def test_the_rail_is_wide_enough_for_its_words_in_any_font(qapp, qtbot, log):
    font = QFont(qapp.font())
    large = QFont(font)
    large.setPointSizeF(font.pointSizeF() * 1.5)
    qapp.setFont(large)
    try:
        rail = Rail(fake_factories(log)[:2])
        qtbot.addWidget(rail)
        for button in rail.findChildren(QAbstractButton):
            assert button.width() > button.fontMetrics().horizontalAdvance(button.text())
    finally:
        qapp.setFont(font)
