import pytest
from PySide6.QtGui import QGuiApplication

from engine.analyses.modules import ModuleTime
from profiler_gui.panels.modules import ModulesTree, summary_text
from tests.support.panes import captured


@pytest.fixture(scope="module")
def h100(captures):
    return captured(next((captures / "pytorch").glob("h100*")))


@pytest.fixture
def pane(world, qtbot):
    pane = ModulesTree(world.context)
    qtbot.addWidget(pane)
    return pane


def titles_of(pane):
    proxy = pane._proxy
    return [proxy.index(row, 0).data() for row in range(proxy.rowCount())]


def choose(pane, order):
    pane._order.setCurrentIndex(pane._order.findData(order))


def test_without_a_capture_it_says_what_it_would_show(pane):
    assert "Open a capture" in pane._note.text()


def test_inferred_layers_are_marked_as_such(world, pane, qwen3):
    world.session.show(qwen3)
    assert "were inferred from the period of kernels" in pane._note.text()
    choose(pane, "module")
    proxy = pane._proxy
    layer = next(proxy.index(row, 0) for row in range(proxy.rowCount()) if proxy.index(row, 0).data() == "layer 0")
    assert layer.siblingAtColumn(5).data() == "inferred"


def test_recorded_modules_nest_and_source_lines_can_lead(world, pane, h100):
    world.session.show(h100)
    choose(pane, "module")
    assert "Qwen2Model_0" in " ".join(titles_of(pane))
    choose(pane, "source")
    assert any(".py(" in title for title in titles_of(pane))


def test_a_filter_keeps_what_matches_and_what_leads_to_it(world, pane, h100):
    world.session.show(h100)
    choose(pane, "module")
    pane._filter.setText("DecoderLayer_13")
    (only,) = [title for title in titles_of(pane) if title != "(outside modules)"] or [""]
    assert only
    pane._filter.setText("no such module")
    assert titles_of(pane) == []


def test_opening_a_recorded_module_searches_for_its_events(world, pane, h100):
    world.session.show(h100)
    choose(pane, "module")
    proxy = pane._proxy
    row = next(row for row, title in enumerate(titles_of(pane)) if not title.startswith("("))
    pane._find(proxy.index(row, 0))
    assert len(world.session.matches) > 0
    assert world.shown == ["timeline"]


def test_unfolded_rows_are_copied_with_exact_values(world, pane, qwen3):
    world.session.show(qwen3)
    pane.copy()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:2] == ["Module", "Total (ns)"]
    total_ns = sum(item.total_ns for item in qwen3.summary.rank(0).modules)
    phases = [line.split("\t") for line in lines[1:] if line.split("\t")[0] in titles_of(pane)]
    assert sum(int(cells[1]) for cells in phases) == total_ns


def test_everything_can_be_read_as_one_table(world, pane, qwen3):
    world.session.show(qwen3)
    choose(pane, "table")
    assert pane._table.table.rowCount() == len(qwen3.summary.rank(0).modules)
    pane._filter.setText("layer 3")
    assert 0 < pane._table.table.rowCount() < len(qwen3.summary.rank(0).modules)


def test_the_sentence_tells_recorded_from_missing_modules():
    recorded = (ModuleTime("Net", "", "", 1, 1000, inferred=False),)
    missing = (ModuleTime("(outside modules)", "", "", 1, 1000, inferred=False),)
    assert summary_text(recorded) == "1 µs of computing."
    assert "records no modules" in summary_text(missing)
    assert "no computing" in summary_text(())
