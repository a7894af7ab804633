"""From findings to ranked advice: reruns, refusals, and what is honest to say without one."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.advisor.advise import advise
from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Estimate, Evidence, Finding, Toggle, Unit
from engine.advisor.ranking import ranked
from engine.advisor.recommendations import GainMethod
from engine.advisor.rules.communication import OPEN_PEERS
from engine.advisor.rules.rule import Rule, danger, loss
from engine.analyses.fusion import Range3
from engine.core.errors import MissingDataError
from engine.core.registry import Registry
from engine.core.units import NS_PER_MS
from engine.optimizations.catalogue import optimization_registry
from tests.support.advices import UNKNOWN_GAIN, gain_ms, recommendation
from tests.support.examinations import examination_of, rank_summary

EVIDENCE = (Evidence("measured", 1.0, Unit.COUNT),)


def rules(*found: Toggle | Action, cost_ms: float = 10.0) -> Registry[Rule]:
    def check(examination: Examination) -> Sequence[Finding]:
        return [loss(examination, "made.rule", Category.HOST, "slow", "because", cost_ms * NS_PER_MS, EVIDENCE, found)]

    return Registry([Rule("made.rule", "made", check)])


def advice_for(registry: Registry[Rule]) -> object:
    return advise(examination_of(rank_summary()), None, registry, optimization_registry())


def test_a_rule_that_finds_nothing_is_fine_and_one_that_lacks_data_is_not() -> None:
    def lacks(examination: Examination) -> Sequence[Finding]:
        del examination
        raise MissingDataError("kernels", "record them")

    found = advice_for(Registry([Rule("a.fine", "a", lambda _: []), Rule("b.blind", "b", lacks)]))
    assert found.checked_and_fine == ("a.fine",)
    assert [(item.rule, item.reason) for item in found.not_checked] == [
        ("b.blind", "the trace has no kernels; record them")
    ]


def test_what_cannot_be_rerun_is_told_as_reckoned_and_without_an_estimate_as_not_quantifiable() -> None:
    reckoned = Estimate(Range3(1e6, 2e6, 3e6), None, ("reckoned so",))
    found = advice_for(
        rules(
            Toggle("parallel.unheard_of", estimate=reckoned),
            Action("act", "Do it", (), None, "none", "undo it", "look again"),
        )
    )
    methods = {item.id: item.gain.method for item in found.recommendations}
    assert methods == {"parallel.unheard_of": GainMethod.ANALYTIC, "act": GainMethod.NOT_QUANTIFIABLE}
    assert found.recommendations[0].optimization is None


def test_what_only_a_simulator_can_do_is_never_advised_on_a_capture() -> None:
    found = advice_for(rules(Toggle("memory.amc"), Toggle("communication.topk_compression")))
    assert found.recommendations == ()
    assert {(item.id, item.verdict) for item in found.passed} == {
        ("memory.amc", "simulator only"),
        ("communication.topk_compression", "simulator only"),
    }


def test_one_remedy_of_two_findings_is_one_recommendation() -> None:
    remedy = Action("act", "Do it", (), None, "none", "undo it", "look again")

    def check(examination: Examination) -> Sequence[Finding]:
        return [
            danger("made.rule", Category.MEMORY, "full", "because", EVIDENCE, (remedy,)),
            loss(examination, "made.rule", Category.MEMORY, "slow", "because", 5e6, EVIDENCE, (remedy,)),
        ]

    found = advice_for(Registry([Rule("made.rule", "made", check)]))
    (item,) = found.recommendations
    assert [finding.problem for finding in item.findings] == ["slow", "full"] or len(item.findings) == 2


def test_what_stops_the_run_comes_first_and_unknown_gains_last() -> None:
    order = ranked([
        recommendation("unknown", UNKNOWN_GAIN, cost_ms=90.0),
        recommendation("small", gain_ms(1, 1, 1)),
        recommendation("large", gain_ms(10, 20, 30)),
        recommendation("stop", UNKNOWN_GAIN, stops_run=True, cost_ms=None),
    ])  # fmt: skip
    assert [item.id for item in order] == ["stop", "large", "small", "unknown"]


def test_remedies_of_the_largest_loss_come_before_larger_gains_elsewhere() -> None:
    order = ranked([
        recommendation("busier", gain_ms(20, 25, 30), loss_ms=20.0),
        recommendation("balance", gain_ms(4, 5, 6), loss_ms=40.0),
        recommendation("uncertain", gain_ms(0, 6, 9), loss_ms=40.0),
    ])  # fmt: skip
    assert [item.id for item in order] == ["balance", "uncertain", "busier"]


def test_what_may_cost_accuracy_comes_after_what_does_not() -> None:
    order = ranked([
        recommendation("communication.topk_compression", gain_ms(20, 25, 30)),
        recommendation("communication.overlap_gradients", gain_ms(4, 5, 6)),
    ])  # fmt: skip
    assert [item.id for item in order] == ["communication.overlap_gradients", "communication.topk_compression"]


def test_missing_captures_come_first_only_where_they_hide_the_largest_loss() -> None:
    peers = recommendation(OPEN_PEERS, UNKNOWN_GAIN, cost_ms=70.0)
    other = recommendation("other", gain_ms(4, 5, 6), loss_ms=20.0)
    assert ranked([other, peers])[0].id == OPEN_PEERS
    assert ranked([recommendation("other", gain_ms(4, 5, 6), loss_ms=80.0), peers])[0].id == "other"


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.floats(1, 90)), max_size=8))
def test_ranking_loses_nothing_and_does_not_depend_on_the_order_given(values: list[tuple[float, float, float]]) -> None:
    items = [
        recommendation(f"r{n}", gain_ms(min(a, b), max(a, b), max(a, b)), loss_ms=c)
        for n, (a, b, c) in enumerate(values)
    ]
    once, again = ranked(items), ranked(list(reversed(items)))
    assert [item.id for item in once] == [item.id for item in again]
    assert len(once) == len(items)
