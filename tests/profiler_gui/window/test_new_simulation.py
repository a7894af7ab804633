from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from engine.trace.trace import Origin
from engine.workloads.bench.history import append_history
from engine.workloads.results import RunStatus
from engine.workloads.scenario import Recompute
from engine.workloads.scenario_file import read_scenario, scenario_from_document
from engine.workloads.simulate import simulate
from profiler_gui.session.document import Run
from profiler_gui.session.simulating import directory_of_run
from profiler_gui.window.open_paths import open_paths
from profiler_gui.window.simulation.dialog import NewSimulation
from profiler_gui.window.simulation.fields import LENGTHS, blamed_path, value_at, with_value
from tests.support.benchmarks import benchmark_runs
from tests.support.panes import pane_world
from tests.support.services import service_document, service_text
from tests.support.windows import built_window, drawn_document

SCENARIO = """
name = "small job"
[model]
preset = "gpt-oss-20b"
layers = 4
[device]
preset = "910b2"
count = 2
[batch]
micro = 2
global = 8
sequence_length = { distribution = "lognormal", mean = 2048.0, sigma = 0.4, min = 64, max = 4096 }
[memory]
limit_bytes = 60_000_000_001
on_out_of_memory = "split"
[memory.long_lived]
per_step = 2.4
[optimizations]
"fusion.attention" = {}
"""


@pytest.fixture
def world(qapp, tmp_path):
    made = pane_world(qapp, tmp_path)
    yield made
    made.close()


@pytest.fixture
def runs(world, monkeypatch):
    asked = []
    monkeypatch.setattr(world.session, "simulate", lambda *request: asked.append(request))
    return asked


@pytest.fixture
def dialog(world, qtbot, runs):
    dialog = NewSimulation(world.context)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def choose(dialog, path, value):
    control = dialog.form.controls[path]
    control.set_value(value)
    control.changed.emit()
    dialog.check()


def test_what_stands_there_at_first_runs_to_its_end(dialog):
    assert dialog.check()
    result = simulate(scenario_from_document(dialog.form.document, Path()))
    assert result.status is RunStatus.DONE


def test_what_stands_there_at_first_can_be_run(dialog):
    assert dialog.run_button.isEnabled()
    assert not dialog.run_b_button.isEnabled()


def test_a_scenario_keeps_what_the_form_has_no_control_for(dialog, scenario_file, tmp_path):
    dialog.open_scenario(scenario_file)
    saved = tmp_path / "saved.toml"
    dialog.save_scenario(saved)
    assert read_scenario(saved) == read_scenario(scenario_file)
    assert dialog.form.document["memory"]["limit_bytes"] == 60_000_000_001
    assert dialog.form.document["model"]["layers"] == 4


def test_a_change_reaches_the_scenario_and_nothing_else_does(dialog, scenario_file):
    dialog.open_scenario(scenario_file)
    before = dialog.form.document
    choose(dialog, ("run", "steps"), 40)
    choose(dialog, LENGTHS, 1024)
    after = dialog.form.document
    assert after["run"] == {"steps": 40}
    assert after["batch"]["sequence_length"] == 1024
    assert {key: after[key] for key in ("model", "memory", "optimizations")} == {
        key: before[key] for key in ("model", "memory", "optimizations")
    }


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("parallel", "tensor"), 3, "parallel.tensor = 3 does not divide"),
        (("batch", "global"), 7, "batch.global = 7 is not divisible"),
        (("run", "profile_steps"), [99], "run.profile_steps names step 99"),
    ],
)
def test_an_error_of_the_engine_stands_beside_its_field(dialog, path, value, words):
    choose(dialog, ("parallel", "data"), 0)
    choose(dialog, ("parallel", "pipeline"), 1)
    choose(dialog, ("device", "count"), 3 if path == ("parallel", "tensor") else 8)
    choose(dialog, path, value)
    problem = dialog.form.controls[path].problem
    assert words in problem.text()
    assert problem.isVisibleTo(dialog)
    assert not dialog.run_button.isEnabled()
    shown = [label for label in dialog.findChildren(QLabel) if label.text() == problem.text()]
    assert shown == [problem]


def test_an_error_about_no_field_stands_below_the_form(dialog, scenario_file):
    scenario_file.write_text(SCENARIO.replace("layers = 4", "layer = 4"), encoding="utf-8")
    dialog.open_scenario(scenario_file)
    assert "layer" in dialog.problem.text()
    assert dialog.problem.isVisibleTo(dialog)


def test_it_runs_as_run_a_and_with_a_capture_open_as_run_b(dialog, world, runs):
    dialog.run_button.click()
    document, _, directory, run = runs.pop()
    assert run is Run.A
    assert document == dialog.form.document
    assert directory.name == "gpt-oss-20b-1"
    dialog._on_busy(False)
    world.session.show(drawn_document("gpu 7 | AA |"))
    dialog.directory.setText("/somewhere/else")
    dialog.run_b_button.click()
    assert runs[0][2:] == (Path("/somewhere/else/gpt-oss-20b-1"), Run.B)


def test_progress_shows_while_it_runs_and_closing_gives_the_run_up(dialog, world, monkeypatch):
    cancelled = []
    monkeypatch.setattr(world.session, "cancel", lambda: cancelled.append(True))
    dialog.run_button.click()
    world.session.busy_changed.emit(True)
    world.session.progress_changed.emit(0.25, "step 2 of 8")
    assert dialog.stage.text() == "step 2 of 8"
    assert dialog.bar.value() == 250
    assert dialog.cancel_button.isVisibleTo(dialog)
    dialog.reject()
    assert cancelled == [True]


def test_it_closes_when_the_run_opens(dialog, world):
    dialog.run_button.click()
    world.session.busy_changed.emit(True)
    world.session.document_changed.emit()
    assert not dialog.isVisible()


def test_the_last_scenario_is_there_again(dialog, world, qtbot):
    choose(dialog, ("memory", "recompute"), str(Recompute.FULL))
    dialog.run_button.click()
    again = NewSimulation(world.context)
    qtbot.addWidget(again)
    assert again.form.document["memory"]["recompute"] == "full"


def test_a_new_run_never_takes_the_directory_of_an_old_one(tmp_path):
    assert directory_of_run("a job/β", tmp_path).name == "a-job-β-1"
    (tmp_path / "a-job-β-1").mkdir()
    assert directory_of_run("a job/β", tmp_path).name == "a-job-β-2"
    assert directory_of_run("../..", tmp_path).parent == tmp_path
    assert directory_of_run("../..", tmp_path).name == "run-1"


def test_messages_are_laid_at_the_door_of_the_nearest_field():
    known = [("parallel", "data"), ("batch", "sequence_length"), ("name",)]
    assert blamed_path("parallel: data 4 × tensor 2 …", known) == ("parallel", "data")
    assert blamed_path("batch.sequence_length.mean is 0", known) == ("batch", "sequence_length")
    assert blamed_path("model.heads = 3", known) is None
    assert blamed_path("", known) is None


def test_values_are_put_into_tables_and_taken_out_of_them():
    assert with_value({}, ("a", "b"), 1) == {"a": {"b": 1}}
    assert with_value({"a": {"b": 1}}, ("a", "b"), None) == {}
    assert value_at({"a": {"b": 1}}, ("a", "b")) == 1
    assert value_at({"a": 3}, ("a", "b")) is None


def test_the_menu_leads_to_the_form_and_a_run_says_that_it_is_simulated(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path, ())
    qtbot.addWidget(window)
    window.show()
    session = window.context.session
    assert window.commands.run("file.new_simulation", session)
    form = window.findChild(NewSimulation)
    assert form.isVisible()
    document = drawn_document("gpu 7 | AA |")
    session.show(document)
    assert not window.header.simulated.isVisibleTo(window)
    entry = document.job.ranks[0]
    trace = replace(entry.trace, origin=Origin.SIMULATED)
    run = replace(document, job=replace(document.job, ranks=(replace(entry, trace=trace),)))
    session.show(run, Run.B)
    assert window.header.simulated.text() == "SIMULATED · Run B"
    session.show(run)
    assert window.header.simulated.text() == "SIMULATED · Run A + B"
    assert "(simulated)" in window.windowTitle()
    window.close()


def test_what_stands_there_of_a_service_at_first_can_be_run(dialog, runs):
    dialog._kind.setCurrentIndex(dialog._kind.findData("serving"))
    dialog._change_kind()
    assert dialog.check()
    dialog.run_button.click()
    assert runs[0][0]["kind"] == "serving"
    assert runs[0][0]["serving"]["requests"]["count"] == 200


def test_a_service_of_a_file_keeps_what_has_no_control_and_takes_changes(dialog, tmp_path):
    path, saved = tmp_path / "service.toml", tmp_path / "saved.toml"
    text = service_text("static").replace("prompt_tokens = 6400", "prompt_tokens = { mean = 6400, sigma = 0.5 }")
    path.write_text(text, encoding="utf-8")
    dialog.open_scenario(path)
    dialog.save_scenario(saved)
    assert read_scenario(saved) == read_scenario(path)
    choose(dialog, ("serving", "prefix_cache"), True)
    assert dialog.form.document["serving"]["prefix_cache"] is True
    assert dialog.form.document["serving"]["batching"] == "static"


def test_what_a_service_cannot_do_stands_beside_its_field(dialog, tmp_path):
    path = tmp_path / "service.toml"
    path.write_text(service_text().replace("count = 1\n", "count = 3\n"), encoding="utf-8")
    dialog.open_scenario(path)
    choose(dialog, ("parallel", "tensor"), 3)
    assert "parallel.tensor = 3 does not divide" in dialog.form.controls["parallel", "tensor"].problem.text()
    assert not dialog.run_button.isEnabled()


def test_a_service_of_the_form_opens_as_a_capture_with_its_requests_served(qapp, qtbot, tmp_path):
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.show()
    session = window.context.session
    session.simulate(service_document(), tmp_path, tmp_path / "runs" / "chat-1")
    qtbot.waitUntil(lambda: session.services.is_complete and session.job_summary is not None, timeout=60_000)
    assert session.document.is_simulated
    assert session.services.served.analysis.finished == 24
    window.show_pane("serving")
    assert window.page == "serving"
    page = window.stack.currentWidget().pane
    assert page.headline.text().startswith("Request ")
    window.close_capture()
    assert not session.services.is_open
    window.close()


def test_without_a_capture_services_and_histories_open_by_their_files(qapp, qtbot, tmp_path):
    service, history = tmp_path / "service.toml", tmp_path / "bench.sqlite"
    service.write_text(service_text(), encoding="utf-8")
    append_history(history, benchmark_runs(4, worse_from=2))
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.show()
    open_paths(window.context, (history,))
    assert window.page == "history"
    assert "got worse" in window.stack.currentWidget().pane.headline.text()
    open_paths(window.context, (service,))
    assert window.page == "serving"
    assert window.context.session.services.is_open
    window.close()
