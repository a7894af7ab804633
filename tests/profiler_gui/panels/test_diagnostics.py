from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from engine.core.errors import SourcePosition
from engine.trace import Diagnostic, Severity
from profiler_gui.panels.diagnostics import DiagnosticsTable, diagnostics_of
from tests.support.panes import drawn

LOSS = Diagnostic("short-row", Severity.DATA_LOSS, 3, "rows end early", SourcePosition(Path("kernel.csv"), row=7))
NOTICE = Diagnostic("rounded", Severity.NOTICE, 1, "starts are rounded")
ERROR = Diagnostic("broken", Severity.ERROR, 1, "a table could not be read")


@pytest.fixture
def pane(world, qtbot):
    pane = DiagnosticsTable(world.context)
    qtbot.addWidget(pane)
    return pane


def with_diagnostics(document):
    (entry,) = document.job.ranks
    trace = replace(entry.trace, diagnostics=(NOTICE, LOSS))
    job = replace(document.job, ranks=(replace(entry, trace=trace),), diagnostics=(ERROR,))
    return replace(document, job=job)


def test_diagnostics_stand_by_severity_with_their_rank():
    found = diagnostics_of(with_diagnostics(drawn("gpu 7 | A |")))
    assert found == ((None, ERROR), (0, LOSS), (0, NOTICE))


def test_the_table_gives_count_message_and_first_position(world, pane):
    world.session.show(with_diagnostics(drawn("gpu 7 | A |")))
    table = pane._table.view.table
    texts = [[table.index(row, column).data() for column in range(table.columnCount())] for row in range(3)]
    assert texts[0] == ["Error", "job", "broken", "1", "a table could not be read", ""]
    assert texts[1] == ["Data loss", "0", "short-row", "3", "rows end early", "kernel.csv, row 7"]


def test_the_number_of_diagnostics_stands_in_the_title(world, pane):
    world.session.show(with_diagnostics(drawn("gpu 7 | A |")))
    assert pane.windowTitle() == "Diagnostics (3)"
    assert "errors: 1, losses of data: 1, notices: 1" in [label.text() for label in pane.findChildren(QLabel)]


def test_a_chosen_diagnostic_is_shown_whole(world, pane):
    world.session.show(with_diagnostics(drawn("gpu 7 | A |")))
    view = pane._table.view
    view.setCurrentIndex(view.table.index(1, 0))
    assert pane._whole.text() == "rows end early\nkernel.csv, row 7"
    assert not pane._whole.isHidden()


def test_a_capture_of_which_everything_was_used_says_so(world, pane):
    world.session.show(drawn("gpu 7 | A |"))
    assert pane.windowTitle() == "Diagnostics"
    assert "Everything in the capture was used." in [label.text() for label in pane.findChildren(QLabel)]
