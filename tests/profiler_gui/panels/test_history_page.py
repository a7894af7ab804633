import pytest
from PySide6.QtCore import QPointF

from engine.workloads.bench.history import append_history
from profiler_gui.panels.history.page import HistoryPage
from profiler_gui.panels.history.words import entry_text, history_sentence, names_of
from tests.support.benchmarks import benchmark_runs


@pytest.fixture
def page(world, qtbot):
    page = HistoryPage(world.context)
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    return page


@pytest.fixture
def history(tmp_path):
    def write(*arguments, **keywords):
        path = tmp_path / "bench.sqlite"
        append_history(path, benchmark_runs(*arguments, **keywords))
        return path

    return write


def test_without_a_history_the_page_says_how_to_get_one(page):
    assert "cannscope bench" in page.headline.text()


def test_an_injected_regression_is_named_marked_and_seen(world, page, history):
    world.session.benchmarks.open(history(10, worse_from=7))
    text = page.headline.text()
    assert text.startswith("chat got worse on 2026-10-08 08:00 (build 7): ms per token")
    assert "(+12 %)" in text
    assert "The gate failed" in text
    assert text.endswith("Of 2 runs since then 2 failed.")
    assert page.plots.failed_count == 3
    low, high = page.plots.plots[0].viewRange()[1]
    fallen = 3500 * 0.1 / (high - low)
    assert fallen > 0.3


def test_noise_is_not_told_as_a_regression(world, page, history):
    world.session.benchmarks.open(history(10))
    assert page.headline.text() == "chat: 10 runs, none worse than the one before."
    assert page.plots.failed_count == 0


def test_a_click_on_a_run_marks_it_in_the_table(world, page, history, qtbot):
    world.session.benchmarks.open(history(6, worse_from=3))
    plot = page.plots.plots[0]
    qtbot.waitUntil(lambda: plot.getViewBox().width() > 100)
    point = plot.getViewBox().mapViewToScene(QPointF(4.0, page.runs[4].measured.tokens_per_s))
    assert page.plots.run_at(point) == 4
    page.plots.run_chosen.emit(4)
    assert page.table.view.table.source_row(page.table.view.currentIndex()) == 4


def test_runs_stand_by_date_where_that_is_wanted(world, page, history):
    world.session.benchmarks.open(history(4))
    page.by_time.setChecked(True)
    left, right = page.plots.plots[0].viewRange()[0]
    assert left < page.runs[0].recorded_at.timestamp() < page.runs[-1].recorded_at.timestamp() < right


def test_a_gate_that_failed_from_the_first_run_on_is_told():
    runs = benchmark_runs(2, worse_from=0)
    assert history_sentence(runs) == (
        "chat failed its gate on 2026-10-01 08:00 (build 0). The gate failed: 10 % worse than the baseline. "
        "Of 1 runs since then 1 failed."
    )
    assert history_sentence(()) == ""
    assert names_of(runs) == ("chat",)
    assert "gate FAILED" in entry_text(runs[0])
