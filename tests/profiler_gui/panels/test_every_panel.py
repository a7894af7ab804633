"""What holds for each of the panes alike."""

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton, QTableView, QTextBrowser, QTreeView

from profiler_gui.panels.details.panel import DetailsPanel
from profiler_gui.panels.events import EventsTable
from profiler_gui.panels.fusion.page import FusionPage
from profiler_gui.panels.memory.page import MemoryPage
from profiler_gui.panels.modules import ModulesTree
from profiler_gui.panels.operators import OperatorsTable
from profiler_gui.session.document import Run
from profiler_gui.session.selection import EventSelection, RangeSelection
from profiler_gui.toolkit.theme import ThemeMode
from tests.support.panes import drawn
from tests.support.windows import drawn_document

PANES = (DetailsPanel, EventsTable, FusionPage, MemoryPage, ModulesTree, OperatorsTable)
PICTURE = "gpu 7 | AAAA..BB |\nhost 1 | CCCC.... |"


@pytest.fixture(params=PANES, ids=lambda pane: pane.__name__)
def pane(request, world, qtbot):
    pane = request.param(world.context)
    qtbot.addWidget(pane)
    pane.resize(700, 500)
    pane.show()
    return pane


def settle(pane, qtbot):
    call = getattr(pane, "_call", None)
    if call is not None:
        qtbot.waitUntil(lambda: not call.is_running)


def words(pane):
    return " ".join(label.text() for label in pane.findChildren(QLabel) if label.isVisibleTo(pane))


def test_it_copes_with_nothing_then_a_trace_then_its_analyses_then_nothing(pane, world, qtbot):
    for document in (drawn_document(PICTURE), drawn(PICTURE), drawn_document(PICTURE)):
        world.session.show(document)
        settle(pane, qtbot)
    world.session.close_run(Run.A)
    settle(pane, qtbot)
    assert "Open a capture" in words(pane) or isinstance(pane, DetailsPanel)


def test_it_copes_with_any_selection_rank_step_and_theme(pane, world, qtbot, qwen3):
    world.session.show(qwen3)
    for rank in (0, 1, 2, 3, 0):
        world.session.set_rank(rank)
        settle(pane, qtbot)
    world.session.set_step(0)
    world.session.select(RangeSelection(0, 0, 10**8))
    world.session.select(EventSelection(2, 10), reveal=True)
    settle(pane, qtbot)
    world.context.theme.apply(ThemeMode.DARK)
    assert not pane.grab().isNull()
    world.context.theme.apply(ThemeMode.LIGHT)


def test_it_never_takes_the_focus_by_itself(pane, world, qtbot, qwen3):
    elsewhere = QLineEdit()
    qtbot.addWidget(elsewhere)
    elsewhere.show()
    elsewhere.activateWindow()
    elsewhere.setFocus()
    qtbot.waitUntil(elsewhere.hasFocus)
    world.session.show(qwen3)
    world.session.select(EventSelection(0, 5), reveal=True)
    settle(pane, qtbot)
    assert elsewhere.hasFocus()


def test_every_control_has_a_name(pane, world, qtbot, qwen3):
    world.session.show(qwen3)
    settle(pane, qtbot)
    for kind in (QComboBox, QLineEdit, QTableView, QTreeView, QTextBrowser):
        assert all(control.accessibleName() for control in pane.findChildren(kind))
    assert all(button.text() for button in pane.findChildren(QPushButton))


def test_it_fits_into_the_narrow_room_a_small_window_leaves(pane, world, qtbot, qwen3):
    world.session.show(qwen3)
    settle(pane, qtbot)
    assert pane.minimumSizeHint().width() <= 780
    assert pane.minimumSizeHint().height() <= 480
