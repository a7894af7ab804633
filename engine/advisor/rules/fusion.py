"""Chains of small operators that one real fused operator replaces."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Estimate, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, loss
from engine.analyses.fusion import FusionCandidate, Range3
from engine.core.number_format import format_count, format_duration_ns
from engine.optimizations.interface import Switch
from engine.trace.trace import TimeRange

_OPTIMIZATIONS = {
    "cross_entropy": "fusion.cross_entropy",
    "attention": "fusion.attention",
    "softmax_dropout": "fusion.softmax_dropout",
    "scaled_masked_softmax": "fusion.softmax_dropout",
    "rms_norm": "fusion.rms_norm",
    "swiglu": "fusion.swiglu",
    "rope": "fusion.rope",
    "add_norm": "fusion.add_norm",
    "optimizer": "fusion.optimizer",
    "gradient_norm": "fusion.optimizer",
    "gradient_accumulation": "fusion.gradient_accumulation",
    "matmul_collective": "fusion.matmul_all_reduce",
}
"""Pattern of the fusion analysis → optimization of the catalogue that applies it."""
_LISTED_EVENTS = 24
_OP_PLUGIN = "op-plugin docs/zh/custom_APIs"


def optimization_of_pattern(pattern: str) -> str | None:
    """Returns the id of the optimization that applies a pattern of the fusion analysis; None where none does."""
    return _OPTIMIZATIONS.get(pattern)


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate on the rank where it would win most; times and counts per step."""

    rank: int
    candidate: FusionCandidate
    total_ns: float
    saving_ns: Range3
    occurrences: float
    kernels: float


def unfused(examination: Examination) -> Sequence[Finding]:
    """Returns one finding per pattern that could win a hundredth of the step, on the rank where it wins most."""
    best: dict[str, _Found] = {}
    for entry in examination.with_kernels():
        count = examination.windows[entry.rank].step_count
        for candidate in entry.fusion_candidates:
            saving = candidate.saving_ns
            found = _Found(
                entry.rank,
                candidate,
                candidate.total_ns / count,
                Range3(saving.low / count, saving.expected / count, saving.high / count),
                candidate.count / count,
                candidate.launches / count,
            )
            known = best.get(candidate.pattern)
            if candidate.replacement and (known is None or found.saving_ns.expected > known.saving_ns.expected):
                best[candidate.pattern] = found
    worth = [item for item in best.values() if examination.share(item.saving_ns.high) >= WORTH_RATIO]
    worth.sort(key=lambda item: -item.saving_ns.expected)
    return [_finding(examination, item) for item in worth]


def _finding(examination: Examination, found: _Found) -> Finding:
    candidate, rank = found.candidate, found.rank
    where = f"rank {rank}"
    stage = examination.summary.communication.stages.get(rank)
    if stage is not None:
        where += f" (stage {stage + 1} of {max(examination.summary.communication.stages.values()) + 1})"
    first = candidate.occurrences[0] if candidate.occurrences else None
    events = tuple(event for item in candidate.occurrences for event in item.events)[:_LISTED_EVENTS]
    evidence = (
        Evidence(
            f"device time of the unfused operators: {_lowered(candidate.title)}",
            found.total_ns,
            Unit.NS,
            rank=rank,
            range=TimeRange(first.start_ns, first.end_ns) if first else None,
            events=events,
            how=f"{format_count(round(found.occurrences))} occurrences matched by {candidate.matched_by}, per step",
        ),
        Evidence("what one operator would save", found.saving_ns.expected, Unit.NS, rank=rank, how=candidate.reason),
        Evidence("kernels that would become one per occurrence", found.kernels, Unit.COUNT, rank=rank),
    )
    return loss(
        examination,
        "fusion.unfused",
        Category.FUSION,
        f"{candidate.title} runs unfused on {where}: {format_duration_ns(found.total_ns)} per step in "
        f"{format_count(round(found.kernels))} kernels",
        f"each of them is launched and moves its data on its own; limited by {candidate.bound}",
        found.saving_ns.expected,
        evidence,
        (_remedy(examination, found),),
    )


def _remedy(examination: Examination, found: _Found) -> Toggle | Action:
    candidate = found.candidate
    estimate = Estimate(found.saving_ns, None, (candidate.reason, f"rank {found.rank} sets the pace of the step"))
    title = f"Fuse: {_lowered(candidate.title)}"
    switch = _switch(examination, candidate)
    optimization = _OPTIMIZATIONS.get(candidate.pattern)
    if optimization is not None:
        others = () if examination.is_ascend else switch
        return Toggle(optimization, title=title, estimate=estimate, how_to_apply=others)
    return Action(
        id=f"fuse.{candidate.pattern}",
        title=title,
        how_to_apply=switch,
        estimate=estimate,
        risk="numerical results may differ in the last bits: compare the loss of some steps",
        undo="restore the former calls",
        verify=f"device time of these {format_count(round(found.kernels))} kernels, after 2 warm steps",
    )


def _lowered(title: str) -> str:
    """Returns a title as it stands inside a sentence: abbreviations keep their capitals."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _switch(examination: Examination, candidate: FusionCandidate) -> tuple[Switch, ...]:
    framework = "PyTorch"
    documented = "PyTorch documentation"
    if "torch_npu" in candidate.replacement:
        framework, documented = "torch_npu", _OP_PLUGIN
    elif "MindSpeed" in candidate.replacement:
        framework, documented = "MindSpeed", "MindSpeed docs/zh/features"
    versions = _installed(examination, framework)
    return (Switch(framework, versions, candidate.replacement, documented),)


def _installed(examination: Examination, framework: str) -> str:
    """Returns the version the capture ran with, as a phrase; "" where it does not say."""
    for entry in examination.job.ranks:
        version = entry.trace.metadata.software.get(f"{framework.lower()}_version")
        if version:
            return f"captured with {version}"
    return ""


RULES = (Rule("fusion.unfused", "Chains of small operators that a real fused operator replaces", unfused),)
