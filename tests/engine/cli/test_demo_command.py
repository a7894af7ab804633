import json
from dataclasses import replace

import pytest

from engine.analyses.step_history import step_history
from engine.cli import demo as command
from engine.cli.app import build_cli, run
from engine.cli.opening import open_capture
from engine.core.errors import ExportError
from engine.core.progress import no_progress
from engine.report.demo import CURES, demo_scenario, run_demo


@pytest.fixture
def short(monkeypatch):
    """The demonstration with few steps."""
    scenario = demo_scenario()
    few = replace(scenario, run=replace(scenario.run, steps=40, profile_steps=(39,)))
    monkeypatch.setattr(command, "demo_scenario", lambda: few)
    return few


def test_it_prints_one_document_and_leaves_captures_and_a_report(short, cannscope, tmp_path):
    code, out, _ = cannscope("demo", "-o", tmp_path / "demo", "--no-gui", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "cannscope.demo/1"
    assert [item["allocator"] for item in document["runs"]] == ["caching", "expandable", "amc"]
    assert all(item["steps"] == 40 for item in document["runs"])
    assert [item["optimization"] for item in document["runs"]] == [None, "memory.expandable_segments", "memory.amc"]
    assert document["runs"][0]["gain_us"] is None
    assert document["advice"]["schema"] == "cannscope.advice/1"
    assert document["provenance"]["seed"] == short.seed
    assert "<html" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    report = (tmp_path / "demo" / "report.md").read_text(encoding="utf-8")
    assert "Nothing here was measured" in report
    job = open_capture([tmp_path / "demo" / "caching"], no_progress)
    assert len(step_history(job.ranks[0].trace)) == 40


def test_the_text_names_the_allocators_and_where_the_captures_are(short, cannscope, tmp_path):
    _, out, _ = cannscope("demo", "-o", tmp_path, "--no-gui")
    assert "expandable ends at" in out
    assert str(tmp_path / "caching") in out.replace("\n", "")


def test_the_window_opens_on_the_run_as_it_stands_unless_it_is_not_wanted(short, tmp_path, capsys):
    shown = []
    cli = build_cli(lambda paths: shown.append(paths) or 0)
    assert run(cli, ["demo", "-o", str(tmp_path)]) == 0
    assert shown == [[tmp_path / "caching"]]
    assert run(cli, ["demo", "-o", str(tmp_path), "--no-gui"]) == 0
    assert len(shown) == 1


def test_a_place_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    scenario = demo_scenario()
    few = replace(scenario, run=replace(scenario.run, steps=2, profile_steps=(1,)))
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError):
        run_demo(few, tmp_path / "file")


@pytest.mark.slow
def test_the_shipped_job_slows_down_by_a_fifth_and_what_the_advice_names_first_cures_it(tmp_path):
    demonstration = run_demo(demo_scenario(), tmp_path)
    runs = demonstration.runs
    first = demonstration.advice.recommendations[0]
    assert first.id in CURES.values()
    assert first.gain.time_ns.expected == pytest.approx(demonstration.gains_ns[first.id])
    slowdown = runs[0].course.slowdown
    assert slowdown is not None
    assert slowdown.loss_ratio >= 0.2
    assert "memory is fragmented" in runs[0].course.sentence
    for other in runs[1:]:
        assert other.course.slowdown is None
        assert other.last_ns < 0.85 * runs[0].last_ns
