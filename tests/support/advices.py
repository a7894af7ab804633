"""Advices made by hand, with text as users and captures may hold it."""

from engine.advisor.examination import Examination
from engine.advisor.findings import Category, Evidence, Finding, Severity, Unit
from engine.advisor.losses import Loss
from engine.advisor.recommendations import (
    Advice,
    Combined,
    GainMethod,
    NotChecked,
    Passed,
    PredictedGain,
    Recommendation,
)
from engine.analyses.fusion import Range3
from engine.core.units import NS_PER_MS
from engine.optimizations.interface import Conflict, Switch
from engine.trace.trace import TimeRange
from tests.support.examinations import examination_of, rank_summary


def gain_ms(
    low: float, expected: float, high: float, method: GainMethod = GainMethod.RERUN, assumption: str = "as recorded"
) -> PredictedGain:
    """Returns a gain on a step of 100 ms."""
    time_ns = Range3(low * NS_PER_MS, expected * NS_PER_MS, high * NS_PER_MS)
    return PredictedGain(time_ns, Range3(low / 100, expected / 100, high / 100), None, method, (assumption,))


UNKNOWN_GAIN = PredictedGain(None, None, None, GainMethod.NOT_QUANTIFIABLE, ())


def recommendation(
    identifier: str = "fusion.swiglu",
    gain: PredictedGain = UNKNOWN_GAIN,
    *,
    text: str = "plain",
    cost_ms: float | None = 10.0,
    loss_ms: float | None = None,
    stops_run: bool = False,
) -> Recommendation:
    """Returns a recommendation whose every text is ``text``."""
    cost = None if cost_ms is None else cost_ms * NS_PER_MS
    evidence = Evidence(text, 1.5e6, Unit.NS, None, 0, TimeRange(0, 5_000), (1, 2), text)
    finding = Finding(
        "rule.made", Category.FUSION, text, text, cost, 0.1, Severity.HIGH, (evidence,), (), stops_run, (text,)
    )
    return Recommendation(
        id=identifier,
        title=text,
        category=Category.FUSION,
        severity=Severity.HIGH,
        findings=(finding,),
        loss=Loss("loss", text, (loss_ms if loss_ms is not None else cost_ms or 0.0) * NS_PER_MS),
        optimization=identifier,
        needs=(),
        parameters={},
        gain=gain,
        how_to_apply=(Switch(text, text, text, text, text),),
        conflicts=(Conflict(text, text),),
        risk=text,
        undo=text,
        verify=text,
    )


def advice_of(*items: Recommendation, text: str = "plain", examination: Examination | None = None) -> Advice:
    """Returns an advice with these recommendations and ``text`` wherever text may stand."""
    return Advice(
        examination=examination or examination_of(rank_summary()),
        recommendations=items,
        findings=tuple(finding for item in items for finding in item.findings),
        checked_and_fine=("rule.fine",),
        not_checked=(NotChecked("rule.other", text),),
        passed=(Passed("memory.amc", "simulator only", text),),
        combined=Combined(("fusion.swiglu", "fusion.rope"), gain_ms(1, 2, 3), 5.0 * NS_PER_MS),
        notes=(text,),
    )
