"""Which loss of the step a finding belongs to: remedies are ranked loss by loss, the largest first."""

from dataclasses import dataclass

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Category, Finding
from engine.core.number_format import format_duration_ns, format_ratio

_PIPELINE_RULES = ("pipeline.stage_imbalance", "pipeline.bubbles")
_CAUSES = (Category.FUSION, Category.COMPUTE)


@dataclass(frozen=True, slots=True)
class Loss:
    """A part of the step that is lost, and what it is lost by.

    Attributes:
        id: Stable: ``"waiting for stage 2"``, or the finding's rule and place.
        title: For people, with its size.
        cost_ns: Per step, on the rank that loses most.
    """

    id: str
    title: str
    cost_ns: float


def loss_of(examination: Examination, finding: Finding) -> Loss:
    """Returns the loss a finding is a cause of.

    Waiting is followed to the rank or stage the others wait for: what makes that one compute longer is why they wait.
    Everything else is a loss of its own.
    """
    own = Loss(f"{finding.rule} {finding.problem}", finding.problem, finding.cost_ns or 0.0)
    place = finding.evidence[0].rank if finding.evidence else None
    is_cause = finding.rule in _PIPELINE_RULES or (finding.category in _CAUSES and place is not None)
    if not is_cause:
        return own
    stage = _stage_loss(examination)
    stages = examination.summary.communication.stages
    if stage is not None and (finding.rule in _PIPELINE_RULES or stages.get(place or 0) == stage[0]):
        return max(stage[1], own, key=lambda item: item.cost_ns)
    late = _late_rank_loss(examination, place)
    return own if late is None else max(late, own, key=lambda item: item.cost_ns)


def _stage_loss(examination: Examination) -> tuple[int, Loss] | None:
    """Returns the pipeline stage the others wait for most, and that waiting on the rank with most of it."""
    stages = examination.summary.communication.stages
    waits: dict[int, dict[int, float]] = {}
    for rank, window in examination.windows.items():
        for item in examination.collectives(rank):
            late = None if item.late_rank is None else stages.get(item.late_rank)
            if late is not None and late != stages.get(rank):
                by_rank = waits.setdefault(late, {})
                by_rank[rank] = by_rank.get(rank, 0.0) + (item.wait_ns or 0) / window.step_count
    if not waits:
        return None
    stage = max(waits, key=lambda each: max(waits[each].values()))
    cost_ns = max(waits[stage].values())
    if examination.share(cost_ns) < WORTH_RATIO:
        return None
    return stage, Loss(f"waiting for stage {stage + 1}", _title(examination, f"stage {stage + 1}", cost_ns), cost_ns)


def _late_rank_loss(examination: Examination, rank: int | None) -> Loss | None:
    for late in examination.summary.communication.slow_ranks:
        if late.rank != rank or rank not in examination.windows:
            continue
        cost_ns = late.cost_ns / examination.windows[rank].step_count
        if examination.share(cost_ns) >= WORTH_RATIO:
            return Loss(f"waiting for rank {rank}", _title(examination, f"rank {rank}", cost_ns), cost_ns)
    return None


def _title(examination: Examination, whom: str, cost_ns: float) -> str:
    share = format_ratio(examination.share(cost_ns))
    return f"Waiting for {whom}: up to {format_duration_ns(cost_ns)} per step ({share})"
