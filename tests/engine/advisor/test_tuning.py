"""The tuning loop: the largest loss first, the best that runs is kept, nothing below 1 % is."""

from importlib import resources
from pathlib import Path

import pytest

from engine.advisor.bottlenecks import LOSSY, Loss, bottlenecks
from engine.advisor.layout_variants import layout_variants
from engine.advisor.tuning import SMALLEST_GAIN_RATIO, total_speedup_ratio, tune
from engine.core.registry import Registry
from engine.optimizations.answers import applies
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Group
from engine.whatif.scenario_side import scenario_side
from engine.whatif.subject import ScenarioSubject, capture_subject
from engine.workloads.scenario_file import read_scenario, scenario_from_document
from tests.support.closed_loop import recorded
from tests.support.sample_optimizations import sample_optimization, sample_registry


def job(**tables):
    document = {
        "name": "small",
        "model": {"layers": 2, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 8000},
        "device": {"preset": "910b2"},
        "batch": {"micro": 1, "global": 1, "sequence_length": 2048},
        "run": {"steps": 3},
    }
    return scenario_from_document({**document, **tables}, Path())


def tuned(scenario, registry, **options):
    loop = tune(ScenarioSubject(scenario), registry, **options)
    rounds = []
    while True:
        try:
            rounds.append(next(loop))
        except StopIteration as end:
            return rounds, end.value


@pytest.fixture(scope="module")
def unfused():
    return tuned(job(), sample_registry())


def test_the_best_of_what_is_made_for_the_largest_loss_is_kept(unfused):
    rounds, _ = unfused

    assert rounds[0].bottleneck.loss is Loss.VECTOR
    assert rounds[0].added == "fusion.attention"
    gains = {item.text: item.gain_ratio for item in rounds[0].attempts}
    assert rounds[0].gain_ratio == max(gains.values())


def test_every_round_begins_where_the_last_one_ended(unfused):
    rounds, _ = unfused
    last = rounds[-1]

    on = {text: {} for text in last.enabled}
    again = scenario_side(job(optimizations=on))
    assert last.side.mean_step_ns == again.mean_step_ns
    start = scenario_side(job())
    assert total_speedup_ratio(rounds) == pytest.approx(again.tokens_per_s / start.tokens_per_s)
    assert [item.number for item in rounds] == list(range(1, len(rounds) + 1))


def test_nothing_below_one_percent_is_kept_and_what_was_tried_in_vain_says_why(unfused):
    rounds, rest = unfused

    assert all(item.gain_ratio >= SMALLEST_GAIN_RATIO for item in rounds)
    assert all(item.reason for item in rest)


def test_rounds_come_one_by_one():
    loop = tune(ScenarioSubject(job()), sample_registry())

    assert next(loop).number == 1


def test_no_more_rounds_than_asked_for():
    assert len(tuned(job(), sample_registry(), rounds=1)[0]) == 1


def test_a_job_out_of_memory_is_made_to_run_first():
    tight = job(memory={"limit_bytes": 3_800_000_000})

    rounds, _ = tuned(tight, optimization_registry(), rounds=1)

    assert scenario_side(tight).status.value == "oom"
    assert rounds[0].bottleneck.loss is Loss.MEMORY
    assert rounds[0].gain_ratio is None
    assert rounds[0].side.status.value == "done"


def test_what_changes_results_is_tried_only_when_asked():
    lossy = [sample_optimization(identifier, Group.COMMUNICATION) for identifier in LOSSY]
    registry = Registry(lossy)
    on_links = {"device": {"preset": "910b2", "count": 2}, "parallel": {"tensor": 2}}

    _, rest = tuned(job(**on_links), registry)
    assert rest == ()
    _, rest = tuned(job(**on_links), registry, lossy=True)
    assert {item.text for item in rest} <= set(LOSSY)


def test_what_only_a_simulator_has_is_not_tried_on_a_capture():
    subject = capture_subject(recorded(job()).job)
    real = sample_optimization("fusion.attention", Group.FUSION, check_capture=lambda plan, parameters: applies("x"))
    only = sample_optimization(
        "fusion.rms_norm", Group.FUSION, check_capture=lambda plan, parameters: applies("x"), simulator_only=True
    )

    loop = tune(subject, Registry((real, only)))

    with pytest.raises(StopIteration) as end:
        next(loop)
    assert {item.text for item in end.value.value} == {"fusion.attention"}


def test_losses_are_ranked_by_their_share_of_the_step():
    found = bottlenecks(scenario_side(job()))

    assert found[0].loss is Loss.VECTOR
    shares = [item.share_ratio for item in found]
    assert shares == sorted(shares, reverse=True)


def test_layouts_to_try_fit_the_job():
    piped = job(
        model={"layers": 4, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 8000},
        device={"preset": "910b2", "count": 4},
        parallel={"pipeline": 2, "data": 2},
        batch={"micro": 2, "global": 16, "sequence_length": 2048},
    )

    found = layout_variants(piped, Loss.BUBBLES)

    assert {"micro": 1} in found
    assert {"pipeline": 1} in found
    assert {"virtual_pipeline": 2, "schedule": "interleaved"} in found
    assert layout_variants(job(), Loss.BUBBLES) == ()


@pytest.mark.slow
def test_five_rounds_make_an_untuned_job_about_three_times_as_fast():
    with resources.as_file(resources.files("engine.workloads").joinpath("scenarios", "tuning_rounds.toml")) as path:
        scenario = read_scenario(path)

    rounds, _ = tuned(scenario, optimization_registry(), rounds=5)

    assert len(rounds) == 5
    assert rounds[0].added == "fusion.attention"
    assert 2.5 < total_speedup_ratio(rounds) < 3.5
