"""The main job of the product, done in the window by clicks: simulate, find, toggle, rerun, compare, export."""

import tomllib
from importlib import resources

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QCheckBox, QFileDialog, QLabel

from engine.workloads.results import RunStatus
from engine.workloads.scenario_text import scenario_text
from profiler_gui.window.simulation.dialog import NewSimulation
from tests.support.patience import PATIENCE_MS
from tests.support.windows import built_window

AMC = "memory.amc"


@pytest.fixture
def window(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    yield window
    window.close()


@pytest.fixture
def scenario_file(tmp_path):
    """The shipped fragmentation case, closer to its memory limit: so 200 steps show what else takes 1,500."""
    shipped = resources.files("engine.workloads").joinpath("scenarios", "fragmentation_slowdown.toml")
    scenario = tomllib.loads(shipped.read_text(encoding="utf-8"))
    scenario["memory"]["limit_bytes"] = 9_300_000_000
    scenario["run"] = {"steps": 200, "profile_steps": [180]}
    path = tmp_path / "fragmentation.toml"
    path.write_text(scenario_text(scenario), encoding="utf-8")
    return path


def click(qtbot, button):
    """Presses a button with the mouse; a checkbox on its box."""
    assert button.isEnabled(), button.text()
    place = QPoint(8, button.height() // 2) if isinstance(button, QCheckBox) else button.rect().center()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton, pos=place)


def button_of(widget, text):
    """Returns the one button in view that says ``text``."""
    buttons = [item for item in widget.findChildren(QAbstractButton) if item.isVisible()]
    (found,) = [item for item in buttons if item.text().replace("&", "") == text]
    return found


def page_of(window):
    return window.stack.currentWidget().pane


@pytest.mark.slow
def test_simulate_find_toggle_rerun_compare_export(window, qtbot, scenario_file, tmp_path, monkeypatch):
    session = window.context.session
    failures = []
    session.failed.connect(failures.append)
    session.reruns.failed.connect(failures.append)

    # Simulate: from the first page, with a scenario from a file.
    click(qtbot, button_of(window.welcome, "New simulation…"))
    dialog = window.findChild(NewSimulation)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(scenario_file), ""))
    click(qtbot, button_of(dialog, "Open Scenario…"))
    click(qtbot, dialog.run_button)
    qtbot.waitUntil(lambda: session.summary is not None and not session.is_busy, timeout=PATIENCE_MS)
    assert failures == []
    assert window.page == "overview"
    assert session.document.is_simulated

    # Find: the first screen says what costs the most, and leads there.
    overview = page_of(window)
    click(qtbot, button_of(overview, "Try What Could Help"))
    qtbot.waitUntil(lambda: session.reruns.advice is not None or bool(failures), timeout=PATIENCE_MS)
    assert failures == []
    said = " ".join(label.text() for label in overview.findChildren(QLabel))
    assert "What to change first" in said
    assert "scattered" in said or "stranded" in said or "fragment" in said
    overview._memory_sentence.linkActivated.emit("memory")
    assert window.page == "memory"

    # Toggle: the dock beside the What-if page says that it applies, and what is real about it.
    click(qtbot, button_of(window.rail, "What-if"))
    panel = window.docks["optimizations"].host.make()
    qtbot.waitUntil(lambda: session.reruns.is_described, timeout=PATIENCE_MS)
    row = panel.rows[AMC]
    panel._area.ensureWidgetVisible(row)
    assert row.chip.kind == "simulator"
    click(qtbot, row.box)
    assert session.toggles.on == {AMC}

    # Rerun and compare.
    reruns = session.reruns
    qtbot.waitUntil(lambda: reruns.compared[1].timeline is not None or bool(failures), timeout=PATIENCE_MS)
    assert failures == []
    before, after = reruns.compared
    assert before.side.status is after.side.status is RunStatus.DONE
    assert after.side.mean_step_ns < 0.95 * before.side.mean_step_ns
    assert max(after.side.stranded_bytes.values()) < max(before.side.stranded_bytes.values()) / 2
    whatif = page_of(window)
    assert "→" in whatif.headline.text()
    assert "reserved −" in whatif.headline.text()
    assert whatif.summary.waterfall.rungs[1].value_text.startswith("▼")
    assert whatif.memory._before.over_steps
    assert len(whatif.memory._before.reserved.x) == 200
    for index in range(whatif.tabs.count()):
        whatif.tabs.setCurrentIndex(index)
        assert not whatif.grab().isNull()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert session.toggles.on == frozenset()
    qtbot.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert [run.number for run in reruns.compared] == [0, 1]

    # Export the report.
    report = tmp_path / "advice.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(report), "HTML (*.html)"))
    window.show_pane("advice")
    advice = window.docks["advice"].host.make()
    qtbot.waitUntil(lambda: not reruns.is_busy, timeout=PATIENCE_MS)
    with qtbot.waitSignal(reruns.reported, timeout=PATIENCE_MS):
        click(qtbot, advice.export)
    assert failures == []
    assert report.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")
