from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from engine.advisor.bottlenecks import Bottleneck, Loss
from engine.advisor.findings import Category, Evidence, Unit
from engine.advisor.recommendations import NotChecked, Passed
from engine.advisor.tuning import Round
from engine.trace.trace import TimeRange
from profiler_gui.panels.advice.actions import advice_commands
from profiler_gui.panels.advice.card import details_html
from profiler_gui.panels.advice.panel import AdvicePanel
from profiler_gui.panels.overview.page import OverviewPage
from profiler_gui.panels.whatif.tuning import TuningView
from profiler_gui.session import advising
from profiler_gui.session.advising import TuningBegun, TuningEnded, TuningRound, advise_in_worker
from profiler_gui.session.document import Run
from profiler_gui.session.failure import Failure
from profiler_gui.session.following import evidence_place, toggles_with
from profiler_gui.session.rerun_state import Activity
from profiler_gui.session.rerunning import Described, SubjectPlace
from profiler_gui.session.selection import EventSelection, RangeSelection
from profiler_gui.session.toggles import Toggles
from profiler_gui.session.worker import JobContext
from tests.support.panes import drawn
from tests.support.whatif_samples import (
    sample_advice,
    sample_applicability,
    sample_finding,
    sample_recommendation,
    sample_registry,
    sample_side,
)


@pytest.fixture
def asked(world, monkeypatch):
    """What the worker would be asked; nothing runs."""
    asked = []
    monkeypatch.setattr(
        world.session.reruns._job, "start", lambda call, *arguments, **_: asked.append((call.__name__, *arguments))
    )
    monkeypatch.setattr("engine.optimizations.catalogue.optimization_registry", sample_registry)
    return asked


@pytest.fixture
def panel(world, qtbot, asked):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    world.context.commands.add(*advice_commands(world.context))
    panel = AdvicePanel(world.context)
    qtbot.addWidget(panel)
    panel.resize(380, 700)
    panel.show()
    yield panel
    world.session.reruns.cancel()


def advise(world):
    world.session.reruns._take(sample_advice())


def test_advice_is_looked_for_when_there_is_nothing_else_to_do(panel, world, asked, qtbot):
    assert {name for name, *_ in asked} == {"describe_in_worker"}
    asked.clear()
    world.session.reruns._take_last(Described(sample_applicability(), {}))
    qtbot.waitUntil(lambda: bool(asked), timeout=5000)
    assert asked[0][0] == "advise_in_worker"


def test_recommendations_are_listed_with_gain_and_severity(panel, world):
    advise(world)
    first, second = panel.cards
    assert first.gain.text() == "▲ high · 36.00 ms … 48.00 ms … 62.00 ms per step (5.9 %) (rerun)"
    assert second.gain.text() == "▽ low · not quantifiable"
    assert first.problem.text() == "Cross-entropy runs unfused: 100.1 ms per step."
    assert panel.checked.text().splitlines()[:3] == ["Checked and fine:", "✓ Deadlocks", "✓ Links slower than others"]
    assert "Not recommended: Managed memory: simulator only" in panel.checked.text()


def test_what_was_not_checked_or_recommended_is_called_by_its_title(monkeypatch):
    lacking = (NotChecked("memory.leak", "no log"), NotChecked("of.another.version", "no log"))
    advice = SimpleNamespace(
        recommendations=(),
        checked_and_fine=("memory.leak",),
        not_checked=lacking,
        passed=(Passed("fusion.attention", "already on", "112 kernels"),),
        combined=None,
        notes=(),
    )
    monkeypatch.setattr(advising, "_advice", lambda *_: advice)
    place = SubjectPlace((), (), "", Path())
    advised = advise_in_worker(JobContext(lambda _: None, lambda: False), place, afresh=False)
    (title,) = advised.fine
    assert title != "memory.leak"
    assert advised.not_checked == (f"{title}: no log", "of.another.version: no log")
    assert advised.passed == ("Fused attention: already on: 112 kernels",)


def test_show_selects_the_evidence_and_goes_there(panel, world):
    advise(world)
    panel.cards[0].show_button.click()
    assert world.session.selection == EventSelection(0, 1)
    assert world.shown[-1] == "timeline"


def test_try_presses_the_toggle_and_goes_to_what_it_gives(panel, world):
    advise(world)
    panel.cards[0].try_button.click()
    assert world.session.toggles.on == {"fusion.attention"}
    assert world.shown[-1] == "whatif"
    assert not panel.cards[1].try_button.isEnabled()


def test_the_switch_is_copied_and_details_unfold(panel, world):
    advise(world)
    panel.cards[0].copy_button.click()
    assert QGuiApplication.clipboard().text() == "set fusion.attention"
    panel.cards[0].more.click()
    assert not panel.cards[0].details.isHidden()
    assert "a note &lt;b&gt;" in panel.cards[0].details.text()
    panel.cards[0].more.click()
    assert panel.cards[0].details.isHidden()


def test_texts_of_captures_are_escaped():
    assert "<img" not in details_html(sample_recommendation(risk="<img src=x>"))


def test_a_report_is_written_by_the_worker_in_the_format_of_its_name(panel, world, asked, monkeypatch, tmp_path):
    world.session.reruns._known.advice = sample_advice()
    panel._update()
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "advice"), "Markdown (*.md)"), raising=True
    )
    assert panel.export.isEnabled()
    panel.export.click()
    assert asked[-1][0] == "report_in_worker"
    assert asked[-1][2] == tmp_path / "advice.md"


def test_a_subject_that_cannot_be_rerun_says_why(panel, world):
    world.session.reruns._activity = Activity.DESCRIBING
    world.session.reruns._take_failure(Failure("the trace has no device task"))
    assert panel.state.text() == "Cannot be rerun: the trace has no device task"
    world.session.close_run(Run.A)
    assert panel.state.text().startswith("Open a capture")


def test_the_panel_stays_narrow(panel, world):
    advise(world)
    for card in panel.cards:
        card.more.click()
    assert panel.minimumSizeHint().width() <= 380


def test_evidence_without_a_place_leads_to_the_page_of_its_category():
    document = drawn("gpu 7 | AAAA..BB |")
    lost = sample_finding(evidence=(Evidence("kernels", 1, Unit.COUNT, rank=7, events=(1,)),))
    assert evidence_place(lost, document) == ("fusion", None)
    whole = sample_finding(category=Category.MEMORY, evidence=(Evidence("bytes", 1, Unit.BYTES),))
    assert evidence_place(whole, document) == ("memory", None)
    ranged = sample_finding(evidence=(Evidence("gap", 1, Unit.NS, rank=0, range=TimeRange(5, 9)),))
    assert evidence_place(ranged, document) == ("timeline", RangeSelection(0, 5, 9))
    beyond = sample_finding(evidence=(Evidence("kernels", 1, Unit.COUNT, rank=0, events=(10**6,)),))
    assert evidence_place(beyond, document) == ("fusion", None)


def test_what_must_be_on_with_it_is_switched_on_too(monkeypatch):
    monkeypatch.setattr("engine.optimizations.catalogue.optimization_registry", sample_registry)
    toggles = toggles_with(Toggles(), "memory.offload", "communication.chunking:chunks=8,share=0.5")
    assert toggles.chosen == {"communication.chunking": {"chunks": 8}, "memory.amc": {}, "memory.offload": {}}


def test_the_first_screen_ranks_what_to_change_once_it_was_rerun(world, qtbot, asked):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    page = OverviewPage(world.context)
    qtbot.addWidget(page)
    page.resize(900, 700)
    page.show()
    assert page._findings.heading.text() == "What costs the most"
    advise(world)
    assert page._findings.heading.text() == "What to change first"
    assert len(page._findings.buttons) == 2
    (button,) = page._findings.try_buttons
    button.click()
    assert world.session.toggles.on == {"fusion.attention"}
    assert world.shown[-1] == "whatif"
    page._findings.buttons[0].click()
    assert world.session.selection == EventSelection(0, 1)
    world.session.reruns.cancel()


def tuning_round(number, step_ms):
    return Round(
        number=number,
        bottleneck=Bottleneck(Loss.HOST, 0.27),
        added="fusion.attention",
        enabled=("fusion.attention",),
        side=sample_side(step_ms),
        gain_ratio=0.1,
        attempts=(),
    )


def test_tuning_appears_round_by_round(world, qtbot, asked):
    world.session.show(drawn("gpu 7 | AAAA..BB |"))
    reruns = world.session.reruns
    reruns.tune()
    assert asked[-1][0] == "tune_in_worker"
    view = TuningView(world.context.theme)
    qtbot.addWidget(view)
    view.resize(700, 500)
    view.show()
    reruns._take(TuningBegun(sample_side(812)))
    reruns._take(TuningRound(tuning_round(1, 700)))
    view.show_tuning(reruns.tuning, Activity.TUNING, can_begin=True)
    assert view.rounds.topLevelItemCount() == 1
    assert view.stop.isVisible()
    reruns._take(TuningRound(tuning_round(2, 406)))
    reruns._take(TuningEnded({"fusion.rope": "gains too little"}))
    view.show_tuning(reruns.tuning, Activity.NOTHING, can_begin=True)
    texts = [view.rounds.topLevelItem(1).text(column) for column in range(5)]
    assert texts == ["2", "host-bound (27 %)", "fusion.attention", "406.0 ms", "+10 %"]
    assert "All rounds together: 1.21×." in view.note.text()
    assert view.chart.column_rect(2).height() > view.chart.column_rect(0).height()
    assert view.chart.caption == "tokens per second"
    view.chart.set_sides([sample_side(tokens_per_s=None)])
    assert view.chart.caption.startswith("time of a step")
    assert not view.grab().isNull()
    assert view.tune.isEnabled()
