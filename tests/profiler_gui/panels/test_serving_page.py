from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt

from profiler_gui.panels.serving.actions import serving_commands
from profiler_gui.panels.serving.page import ServingPage
from profiler_gui.panels.serving.rows import Order
from profiler_gui.panels.serving.words import late_text, preventions_of, request_tip
from profiler_gui.session.serving_runs import LateFound
from tests.support.patience import PATIENCE_MS
from tests.support.services import served, service_document, service_text


@pytest.fixture
def page(world, qtbot):
    world.context.commands.add(*serving_commands(world.context))
    page = ServingPage(world.context)
    qtbot.addWidget(page)
    page.resize(1200, 800)
    page.show()
    return page


@pytest.fixture
def opened(world, page, tmp_path, monkeypatch):
    """Opens a service that is served at once, in this process."""

    def open_one(batching="continuous"):
        services, document = world.session.services, service_document(batching)
        with monkeypatch.context() as patch:
            patch.setattr(services, "serve", lambda: None)
            services.open(document, tmp_path)
        run, report = served(document)
        services._take(run)
        services._take(LateFound({}, report, is_complete=True))
        return services

    return open_one


def test_without_a_service_the_page_says_what_to_open(page):
    assert page.headline.text().startswith("Open a service")
    assert not page.curve.sweep_button.isEnabled()


def test_the_first_sentence_names_the_latest_request_why_and_what_prevents_it(page, opened):
    services = opened()
    late = services.report.jitter.listed[0]
    text = page.headline.text()
    assert text.startswith(f"Request {late.request} was late by ")
    assert "it waited for a place in the batch while 4 sequences ran" in text
    assert "max_batch" in page.prevention.text()
    assert page.late.table.view.table.rowCount() == len(services.report.jitter.listed)


def test_dynamic_batching_by_a_click_serves_again_and_says_what_it_gains(page, opened, qtbot):
    services = opened("static")
    qtbot.mouseClick(page.toggles.boxes["serving.dynamic_batching"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: services.is_complete and services.served is not services.baseline, timeout=PATIENCE_MS)
    assert services.served.analysis.requests_per_s > 1.1 * services.baseline.analysis.requests_per_s
    assert "→" in page.facts.text()
    assert "(−" in page.latencies.table.index(0, 1).data()
    page.resize(1130, 680)  # of a window of 1280×800
    qtbot.waitUntil(lambda: page.latencies.viewport().width() < 500)
    assert page.latencies.horizontalHeader().length() <= page.latencies.viewport().width()


def test_the_prefix_cache_by_its_command_serves_again_and_first_tokens_come_earlier(world, page, opened, qtbot):
    services = opened()
    assert world.context.commands.run("serving.toggle_prefix_cache", world.session)
    assert page.toggles.boxes["serving.prefix_cache"].isChecked()
    qtbot.waitUntil(lambda: services.is_complete and services.served is not services.baseline, timeout=PATIENCE_MS)
    assert services.served.analysis.prefix_hit_ratio > 0.5
    assert services.served.analysis.ttft.mean_ns < services.baseline.analysis.ttft.mean_ns
    assert world.session.can_undo


def test_what_the_service_has_on_already_cannot_be_pressed(page, opened):
    opened()
    assert not page.toggles.boxes["serving.chunked_prefill"].isEnabled()
    assert page.toggles.boxes["serving.prefix_cache"].isEnabled()


def test_a_click_on_a_row_selects_its_request_and_tells_about_it(page, opened, qtbot):
    services = opened()
    box = page.plots.requests.getViewBox()
    qtbot.waitUntil(lambda: box.width() > 100)
    request = page.plots.request_at(box.mapViewToScene(QPointF(1e6, 2.5)))
    assert request == page.plots.lanes.rows.order[2]
    page.plots.request_chosen.emit(request)
    assert services.request == request
    assert f"Request {request} " in page.headline.text()
    assert f"Request {request}:" in request_tip(services.served.run, request)


def test_a_late_request_of_the_list_is_brought_into_view(page, opened):
    services = opened()
    page.order.setCurrentIndex(page.order.findData(Order.ARRIVAL))
    page.order.activated.emit(page.order.currentIndex())
    page.plots.requests.getViewBox().setYRange(0, 6, padding=0)
    last = max(late.request for late in services.report.jitter.listed)
    page.late.request_chosen.emit(last)
    assert last in page.plots.requests_in_view


def test_commands_walk_over_late_requests(world, page, opened):
    services = opened()
    listed = [late.request for late in services.report.jitter.listed]
    for wanted in listed[:2]:
        assert world.context.commands.run("serving.next_late", world.session)
        assert services.request == wanted
    assert world.context.commands.run("serving.previous_late", world.session)
    assert services.request == listed[0]
    assert world.shown[-1] == "serving"


def test_keys_walk_over_rows_and_zoom(page, opened, qtbot):
    services = opened()
    qtbot.keyClick(page.plots, Qt.Key.Key_Down)
    qtbot.keyClick(page.plots, Qt.Key.Key_Down)
    assert services.request == page.plots.lanes.rows.order[1]
    qtbot.keyClick(page.plots, Qt.Key.Key_Return)
    start_ns, end_ns = page.plots.requests.getViewBox().viewRange()[0]
    requests = services.served.run.requests
    assert start_ns <= requests.arrival_ns[services.request] < requests.last_token_ns[services.request] <= end_ns
    qtbot.keyClick(page.plots, Qt.Key.Key_Home)
    assert page.plots.requests.getViewBox().viewRange()[1] == [0, len(requests)]


def test_the_curve_fills_while_the_sweep_runs(page, opened, qtbot):
    services = opened()
    page.tabs.setCurrentWidget(page.curve)
    qtbot.mouseClick(page.curve.sweep_button, Qt.MouseButton.LeftButton)
    assert not page.curve.sweep_button.isEnabled()
    qtbot.waitUntil(lambda: not services.is_busy, timeout=PATIENCE_MS)
    assert len(page.curve.points) == len(services.curves[""]) > 5
    assert page.curve.state.text().startswith("Up to ")


def test_a_file_that_is_none_is_said_and_a_service_of_a_file_opens(world, page, qtbot, tmp_path):
    from profiler_gui.panels.serving.actions import open_service

    broken, good = tmp_path / "broken.toml", tmp_path / "service.toml"
    broken.write_text("not = [toml", encoding="utf-8")
    good.write_text(service_text(), encoding="utf-8")
    with qtbot.waitSignal(world.session.services.failed):
        open_service(world.context, broken)
    broken.write_text('format = 1\nname = "job"\n', encoding="utf-8")
    with qtbot.waitSignal(world.session.services.failed) as failed:
        open_service(world.context, broken)
    assert failed.args[0].where == str(broken)
    assert "New Simulation" in failed.args[0].advice
    assert not world.session.services.is_open
    open_service(world.context, good)
    assert world.session.services.place.name == "chat"
    assert world.shown == ["serving"]
    world.session.services.cancel()


def test_every_cause_has_a_sentence_and_costs_are_told(qapp):
    from engine.analyses.serving.jitter_parts import Cause

    _, report = served(service_document())
    late = report.jitter.listed[0]
    for cause in Cause:
        assert late_text(replace(late, cause=cause, parts_ns=dict.fromkeys(Cause, 5_000_000))).endswith(").")
    prevention = replace(report.preventions[0], cause=late.cause, unserved_after=3, others_more=2)
    told = preventions_of(replace(report, preventions=(prevention,)), late)[0]
    assert "3 requests stay unanswered" in told
    assert "2 more are late in another way" in told
