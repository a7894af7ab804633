"""Requests of a simulated service that were late, and the limits that would have kept them on time."""

from collections.abc import Sequence

from engine.advisor.examination import Examination
from engine.advisor.findings import Action, Category, Estimate, Evidence, Finding, Severity, Unit
from engine.advisor.rules.rule import Rule, danger
from engine.advisor.rules.service import GUIDE, answered_service
from engine.analyses.serving.jitter_words import late_sentence
from engine.optimizations.interface import Switch
from engine.workloads.serving.prevention import Prevention, jitter_report

_SWITCHES = {
    "max_batch": "--max-num-seqs {after}",
    "max_batched_tokens": "--max-num-batched-tokens {after}",
    "chunked_prefill": "--enable-chunked-prefill",
    "prefix_cache": "--enable-prefix-caching",
    "kv_blocks": "--gpu-memory-utilization up, until the engine reports {after} blocks",
}
"""Keys of a scenario that a serving engine has a switch for."""


def late(examination: Examination) -> Sequence[Finding]:
    """Returns late requests with the latest of them, and each limit that was found by serving again."""
    _, service = answered_service(examination)
    report = jitter_report(service)
    found = report.jitter
    if not found.late:
        return ()
    cause = next(iter(found.causes))
    ratio = found.late / found.requests
    return [
        danger(
            "service.late",
            Category.SERVING,
            f"{found.late_first:,} first tokens and {found.late_between:,} answers of {found.requests:,} were late; "
            f"latest: {late_sentence(found.listed[0])}",
            f"mostly because {cause.value}",
            (Evidence("late waits per answered request", ratio, Unit.RATIO, how="docs/serving.md"),),
            tuple(_action(item) for item in report.preventions),
            severity=Severity.MEDIUM,
        )
    ]


def _action(item: Prevention) -> Action:
    known = _SWITCHES.get(item.setting)
    own = Switch("scenario", "", f"serving.{item.setting} = {item.after}", "docs/serving.md")
    real = () if known is None else (Switch("vllm-ascend", "", known.format(after=item.after), GUIDE),)
    return Action(
        id=f"service.limit.{item.setting}",
        title=f"Set {item.setting} to {item.after}",
        how_to_apply=(*real, own),
        estimate=Estimate(None, None, (item.text,)),
        risk="other requests wait longer" if item.costs else "none seen when the same requests were served again",
        undo=f"set {item.setting} to {item.before} again",
        verify="p99 of the time to the first token and of the time per token under the same load",
    )


RULES = (Rule("service.late", "Late requests", late, of_services=True),)
