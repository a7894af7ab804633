from pathlib import Path

import pytest

from engine.workloads.bench.history import append_history
from profiler_gui.session.services import NOBODY
from profiler_gui.session.serving_runs import document_with
from profiler_gui.session.session import Session
from profiler_gui.session.toggles import Toggles
from tests.support.benchmarks import benchmark_runs
from tests.support.patience import PATIENCE_MS
from tests.support.services import service_document, service_text


@pytest.fixture
def session(qapp, tmp_path):
    made = Session(tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
def services(session):
    return session.services


def served_with(qtbot, services, *identifiers):
    session = services.parent()
    session.set_toggles(Toggles(frozenset(identifiers)))
    qtbot.waitUntil(lambda: services.is_complete, timeout=PATIENCE_MS)
    return services.served


def test_a_service_is_served_and_late_requests_are_named(qtbot, services):
    services.open(service_document(), Path())
    assert services.is_open
    qtbot.waitUntil(lambda: services.is_complete, timeout=PATIENCE_MS)
    assert services.served is services.baseline
    assert services.served.analysis.finished == 24
    assert services.report.jitter.late_first > 0
    assert services.report.jitter.listed[0].request >= 0


def test_toggles_serve_again_and_what_was_tried_is_not_run_again(qtbot, services):
    services.open(service_document("static"), Path())
    qtbot.waitUntil(lambda: services.is_complete, timeout=PATIENCE_MS)
    dynamic = served_with(qtbot, services, "serving.dynamic_batching")
    assert dynamic.analysis.requests_per_s > 1.1 * services.baseline.analysis.requests_per_s
    cached = served_with(qtbot, services, "serving.dynamic_batching", "serving.prefix_cache")
    assert cached.analysis.ttft.mean_ns < dynamic.analysis.ttft.mean_ns
    services.parent().undo()
    assert services.served is dynamic
    assert not services.is_busy


def test_points_of_the_curve_come_one_by_one_with_rising_rates(qtbot, services):
    services.open(service_document(), Path())
    qtbot.waitUntil(lambda: services.is_complete, timeout=PATIENCE_MS)
    counts = []
    services.curve_changed.connect(lambda: counts.append(len(services.curves[""])))
    services.sweep()
    qtbot.waitUntil(lambda: not services.is_busy, timeout=PATIENCE_MS)
    rates = [point.rate_per_s for point in services.curves[""]]
    assert rates == sorted(rates)
    assert counts == list(range(len(rates) + 1))


def test_what_a_service_cannot_do_is_said(qtbot, services):
    with qtbot.waitSignal(services.failed, timeout=PATIENCE_MS) as said:
        services.open(service_document() | {"kind": "training"}, Path())
    assert said.args[0].what


def test_giving_up_leaves_the_service_open_and_idle(qtbot, services):
    services.open(service_document(), Path())
    services.cancel()
    assert services.is_open
    assert not services.is_busy
    assert services.served is None


def test_another_service_forgets_what_was_known(qtbot, services):
    services.open(service_document(), Path())
    services.select(3)
    services.open(service_document("static"), Path())
    assert services.request == NOBODY
    assert services.served is None
    services.close_service()
    assert not services.is_open


def test_toggles_stand_beside_what_the_scenario_has_on_itself():
    document = {"name": "a", "optimizations": {"host.graph_mode": {}}}
    both = document_with(document, {"serving.prefix_cache": {"tokens": 9}})
    assert both["optimizations"] == {"host.graph_mode": {}, "serving.prefix_cache": {"tokens": 9}}
    assert document_with(document, {}) == document


def test_a_history_is_read_and_what_is_none_is_said(qtbot, session, tmp_path):
    path = tmp_path / "bench.sqlite"
    append_history(path, benchmark_runs(3))
    session.benchmarks.open(path)
    assert len(session.benchmarks.entries) == 3
    other = tmp_path / "other.sqlite"
    other.write_text(service_text(), encoding="utf-8")
    with qtbot.waitSignal(session.benchmarks.failed):
        session.benchmarks.open(other)
    assert session.benchmarks.path == path


def test_toggles_of_training_leave_a_service_alone(qtbot, services):
    services.open(service_document(), Path())
    qtbot.waitUntil(lambda: services.is_complete, timeout=PATIENCE_MS)
    services.parent().set_toggles(Toggles(frozenset({"fusion.attention"})))
    assert services.served is services.baseline
    assert not services._debounce.isActive()
    assert not services.is_busy
