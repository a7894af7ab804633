from dataclasses import replace

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QLabel, QLineEdit, QSpinBox

from engine.optimizations.fitting import Platform
from engine.optimizations.interface import Switch
from engine.optimizations.selection import Refusal
from profiler_gui.panels.optimizations.panel import OptimizationsPanel
from profiler_gui.session.document import Run
from profiler_gui.session.rerunning import Answered, Described
from profiler_gui.toolkit.theme import ThemeMode
from tests.support.panes import drawn
from tests.support.whatif_samples import sample_applicability, sample_registry, sample_whatif

CHUNKING = "communication.chunking"


@pytest.fixture
def asked(world, monkeypatch):
    """What the worker would be asked; nothing runs."""
    asked = []
    monkeypatch.setattr(
        world.session.reruns._job, "start", lambda call, request, **_: asked.append((call.__name__, request))
    )
    monkeypatch.setattr("engine.optimizations.catalogue.optimization_registry", sample_registry)
    return asked


@pytest.fixture
def panel(world, qtbot, asked):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    panel = OptimizationsPanel(world.context)
    qtbot.addWidget(panel)
    panel.resize(380, 700)
    panel.show()
    yield panel
    world.session.reruns.cancel()


def describe(world, environment=None):
    world.session.reruns._take(Described(sample_applicability(), environment or {}))


def chips(panel):
    return {key: row.chip.kind for key, row in panel.rows.items()}


def test_a_panel_in_view_asks_what_its_toggles_do(panel, world, asked):
    assert [name for name, _ in asked] == ["describe_in_worker"]
    assert set(chips(panel).values()) == {"pending", "needs"}
    describe(world)
    assert chips(panel) == {
        "fusion.attention": "applies",
        CHUNKING: "no effect",
        "memory.expandable_segments": "already on",
        "memory.max_split_size": "applies",
        "memory.amc": "twin",
        "memory.offload": "needs",
    }
    assert panel.rows[CHUNKING].reason.text() == "no communication is exposed"


def test_what_it_needs_is_said_until_that_is_on(panel, world):
    describe(world)
    assert panel.rows["memory.offload"].reason.text() == "memory.offload needs memory.amc switched on with it"
    panel.rows["memory.amc"].box.click()
    assert panel.rows["memory.offload"].chip.kind == "unknown"


def test_conflicts_show_on_both_sides_before_either_is_pressed(panel, world):
    describe(world)
    panel.rows["memory.expandable_segments"].box.click()
    assert "conflicts with memory.expandable_segments" in panel.rows["memory.max_split_size"].reason.text()
    panel.rows["memory.expandable_segments"].box.click()
    panel.rows["memory.max_split_size"].box.click()
    assert panel.rows["memory.expandable_segments"].chip.kind == "conflict"


def test_a_switch_the_job_has_on_conflicts(panel, world):
    describe(world, {"ALLOC": "expandable,other"})
    assert panel.rows["memory.max_split_size"].chip.kind == "conflict"


def test_a_click_switches_on_undoably(panel, world):
    panel.rows["fusion.attention"].box.click()
    assert world.session.toggles.on == {"fusion.attention"}
    assert "On: The fusion.attention" not in panel.state.text()  # not described yet
    describe(world)
    assert panel.state.text() == "On: The fusion.attention"
    world.session.undo()
    assert not panel.rows["fusion.attention"].box.isChecked()
    assert not panel.clear.isEnabled()


def test_every_kind_of_parameter_has_an_editor_with_its_range_and_provenance(panel, world):
    row = panel.rows[CHUNKING]
    editors = row.parameters.editors
    assert not row.parameters.isVisible()
    row.box.click()
    assert row.parameters.isVisible()
    kinds = {name: type(editor) for name, editor in editors.items()}
    assert kinds == {
        "chunks": QSpinBox,
        "share": QDoubleSpinBox,
        "exact": QCheckBox,
        "algorithm": QComboBox,
        "label": QLineEdit,
    }
    assert (editors["chunks"].minimum(), editors["chunks"].maximum()) == (2, 64)
    assert "a table" in editors["chunks"].toolTip()
    editors["chunks"].setValue(8)
    editors["share"].setValue(0.25)
    editors["exact"].setChecked(False)
    editors["algorithm"].setCurrentText("mesh")
    editors["label"].setText("x")
    editors["label"].editingFinished.emit()
    assert world.session.toggles.chosen == {
        CHUNKING: {"algorithm": "mesh", "chunks": 8, "exact": False, "label": "x", "share": 0.25}
    }
    editors["chunks"].setValue(4)
    assert "chunks" not in world.session.toggles.chosen[CHUNKING]
    world.session.undo()
    assert editors["chunks"].value() == 8


def test_the_real_switch_is_copied_as_it_is(panel, qtbot):
    line = panel.rows["fusion.attention"].switch
    line.button.click()
    assert QGuiApplication.clipboard().text() == "set fusion.attention"
    assert panel.rows["memory.amc"].switch.isHidden()


def test_the_list_is_filtered_by_words_and_by_what_applies(panel, world):
    describe(world)
    panel.filter.setText("ATTENTION")
    assert [key for key, row in panel.rows.items() if not row.isHidden()] == ["fusion.attention"]
    panel.filter.clear()
    panel.only_applying.setChecked(True)
    shown = [key for key, row in panel.rows.items() if not row.isHidden()]
    assert shown == ["fusion.attention", "memory.max_split_size", "memory.offload"]


def test_a_refusal_is_said(panel, world):
    describe(world)
    refusal = Refusal("memory.offload", "memory.offload needs memory.amc switched on with it")
    world.session.reruns._take(Answered({"memory.offload": {}}, sample_whatif("memory.offload", refused=(refusal,))))
    assert panel.state.text() == "Not rerun: memory.offload needs memory.amc switched on with it"


def test_rerun_and_all_off_work_by_their_buttons(panel, world, asked):
    panel.rows["fusion.attention"].box.click()
    panel.rerun.click()
    assert asked[-1][0] == "rerun_in_worker"
    panel.clear.click()
    assert world.session.toggles.on == frozenset()


def test_groups_fold_and_count_what_is_on(panel, world):
    panel.rows["memory.amc"].box.click()
    headings = [group.heading for group in panel._groups]
    assert [heading.text() for heading in headings] == ["Operator fusion", "Communication", "Memory  ·  1 on"]
    headings[0].click()
    assert not panel.rows["fusion.attention"].isVisible()
    headings[0].click()
    assert panel.rows["fusion.attention"].isVisible()


def test_it_copes_with_nothing_open_and_with_the_dark_theme(panel, world):
    describe(world)
    world.context.theme.apply(ThemeMode.DARK)
    assert not panel.grab().isNull()
    world.context.theme.apply(ThemeMode.LIGHT)
    world.session.close_run(Run.A)
    assert "Open a capture" in panel.state.text()
    assert not panel.rerun.isEnabled()


def test_it_stays_narrow_and_every_control_has_a_name(panel, world):
    describe(world)
    panel.rows[CHUNKING].box.click()
    assert panel.minimumSizeHint().width() <= 380
    for kind in (QSpinBox, QDoubleSpinBox, QComboBox, QLineEdit):
        own = [item for item in panel.findChildren(kind) if item.objectName() != "qt_spinbox_lineedit"]
        assert all(control.accessibleName() for control in own)
    assert all(not label.text().endswith("None") for label in panel.findChildren(QLabel))


def test_only_switches_of_the_jobs_devices_are_shown_once_they_are_known(panel, world):
    gpu = Platform(is_ascend=False, is_pytorch=True, is_serving=False)
    switches = (Switch("torch_npu", "", "on_npu()", "docs"), Switch("PyTorch", "", "on_gpu()", "docs"))
    row = panel.rows["fusion.attention"]
    row.optimization = replace(row.optimization, switches=switches)
    row.show_platform(None)
    assert row.switch.button.accessibleName().endswith("on_npu()")

    world.session.reruns._take(Described(sample_applicability(), {}, gpu))

    assert row.switch.button.accessibleName().endswith("on_gpu()")
    row.optimization = replace(row.optimization, switches=switches[:1])
    row.show_platform(gpu)
    assert row.switch.isHidden()
