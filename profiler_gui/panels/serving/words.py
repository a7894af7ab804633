"""What a service says in words: who was late and why, what would have prevented it, what one request did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from profiler_gui.item_models.serving_tables import change_text
from profiler_gui.toolkit.labels import sentence
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.serving.jitter import Jitter, LateRequest
    from engine.analyses.serving.jitter_parts import Cause
    from engine.analyses.serving.tables import ServedRun
    from engine.workloads.serving.prevention import JitterReport, Prevention
    from profiler_gui.session.serving_runs import Served

_BECAUSE = {
    "PLACES": "it waited for a place in the batch while {running} sequences ran and up to {waiting} requests waited",
    "TOKENS": "the tokens of each iteration went to other prompts, the longest ({tokens} tokens) of request {blamed}",
    "BLOCKS": "it waited for KV blocks while {running} sequences held them",
    "PREEMPTED": "it lost its KV blocks to others: {running} sequences needed more than there are",
    "PROMPT": "other prompts were computed, the longest ({tokens} tokens) of request {blamed}",
    "ITERATION": "an iteration of {running} sequences was under way when it came",
    "COMPANY": "the idle engine waited for more requests to come",
    "OWN_PROMPT": "its own prompt took that long to compute",
    "BATCH": "{running} sequences got their tokens in the same iterations",
}
_CAUSES = {
    "PLACES": "no place in the batch",
    "TOKENS": "no tokens left in iterations",
    "BLOCKS": "no KV blocks",
    "PREEMPTED": "preempted",
    "PROMPT": "prompts of others",
    "ITERATION": "iteration under way",
    "COMPANY": "engine waited for more requests",
    "OWN_PROMPT": "its own prompt",
    "BATCH": "others in the batch",
}
_WAITS = {"FIRST": "first token", "GAP": "gap between tokens", "MEAN": "time per token"}
_PHASES = ("queued", "prefill", "decode", "preempted")
_STATUSES = ("answered", "refused: the queue was full", "timed out while it waited", "too long ever to fit")


def cause_text(cause: Cause) -> str:
    """Returns a cause in few words."""
    return tr(_CAUSES[cause.name])


def cause_texts() -> tuple[str, ...]:
    """Returns all causes in few words."""
    return tuple(tr(text) for text in _CAUSES.values())


def wait_text(late: LateRequest) -> str:
    """Returns what of a request was late."""
    return tr(_WAITS[late.limit.name])


def late_text(late: LateRequest) -> str:
    """Returns the sentence about a late request, with full stop."""
    because = tr(
        _BECAUSE[late.cause.name],
        running=format_count(late.running),
        waiting=format_count(late.waiting),
        tokens=format_count(late.blamed_tokens),
        blamed=late.blamed if late.blamed >= 0 else "–",
    )
    return tr(
        "Request {request} was late by {excess}: {because} ({part} of {whole}; {what} took {taken}).",
        request=late.request,
        excess=format_duration_ns(late.taken_ns - late.limit_ns),
        because=because,
        part=format_duration_ns(late.parts_ns[late.cause]),
        whole=format_duration_ns(late.end_ns - late.start_ns),
        what=wait_text(late),
        taken=format_duration_ns(late.taken_ns),
    )


def prevention_text(item: Prevention) -> str:
    """Returns what a limit would have changed, with full stop."""
    template = (
        "{setting} = {after} instead of {before} would have prevented it: {late_after} late instead of {late_before}."
        if item.prevents
        else "{setting} = {after} instead of {before} makes fewer late: {late_after} instead of {late_before}."
    )
    text = tr(
        template,
        setting=item.setting,
        after=item.after,
        before=item.before,
        late_after=format_count(item.late_after),
        late_before=format_count(item.late_before),
    )
    if item.unserved_after > 0:
        text += " " + tr("{count} requests stay unanswered for it.", count=format_count(item.unserved_after))
    if item.others_more > 0:
        text += " " + tr("{count} more are late in another way for it.", count=format_count(item.others_more))
    return text


def preventions_of(report: JitterReport, late: LateRequest | None) -> list[str]:
    """Returns what would have prevented a late request; of all causes where None."""
    chosen = [item for item in report.preventions if late is None or item.cause is late.cause]
    texts = [prevention_text(item) for item in chosen]
    return texts or [sentence(text) for text in report.unprevented]


def late_summary(found: Jitter) -> str:
    """Returns how many were late, and how many for which cause."""
    if not found.late and found.limits.are_given:
        return tr("Nobody was late: {count} requests answered.", count=format_count(found.requests))
    if not found.late:
        return tr(
            "No request stands out: half of {count} had their first token within {median}. "
            "State slo_ttft_ms to call that late.",
            count=format_count(found.requests),
            median=format_duration_ns(found.limits.median_first_token_ns),
        )
    causes = ", ".join(f"{format_count(count)} × {cause_text(cause)}" for cause, count in found.causes.items())
    limits = found.limits
    what = tr("the service's limits") if limits.are_given else tr("twice the median and the 99th percentile")
    return tr(
        "{first} of {requests} first tokens and {between} answers were late by {what}: {causes}",
        first=format_count(found.late_first),
        requests=format_count(found.requests),
        between=format_count(found.late_between),
        what=what,
        causes=causes,
    )


def request_tip(run: ServedRun, request: int) -> str:
    """Returns what one request did, a line per fact."""
    asked, phases = run.requests, run.phases
    own = phases.request == request
    lines = [
        tr(
            "Request {request}: {prompt} tokens asked, {output} answered",
            request=request,
            prompt=format_count(int(asked.prompt_tokens[request])),
            output=format_count(int(asked.output_tokens[request])),
        ),
        tr(_STATUSES[int(asked.status[request])]),
    ]
    lengths = np.bincount(phases.kind[own], weights=(phases.end_ns - phases.start_ns)[own], minlength=len(_PHASES))
    lines += [
        f"{tr(name)} {format_duration_ns(length)}" for name, length in zip(_PHASES, lengths, strict=True) if length
    ]
    if asked.cached_tokens[request]:
        lines.append(tr("{count} tokens from the prefix cache", count=format_count(int(asked.cached_tokens[request]))))
    return "\n".join(lines)


def phase_names() -> tuple[str, ...]:
    """Returns what requests do, in the order of their numbers."""
    return tuple(tr(name) for name in _PHASES)


def facts_of(before: Served | None, served: Served) -> list[tuple[str, str]]:
    """Returns names and values of what a service gave, with what it gave before toggles where that is another run."""
    was = before.analysis if before is not None and before is not served else None
    now = served.analysis
    good = (was.goodput_per_s if was else None, now.goodput_per_s)
    return [
        (tr("Requests answered"), f"{format_count(now.finished)} / {format_count(now.requests)}"),
        (tr("Requests per second"), changed(was.requests_per_s if was else None, now.requests_per_s, _rate)),
        (tr("Goodput"), changed(*good, _rate) if good[1] is not None else tr("no limits set")),
        (tr("Tokens per second"), changed(was.output_tokens_per_s if was else None, now.output_tokens_per_s, _rate)),
        (tr("Sequences at once"), changed(was.mean_batch if was else None, now.mean_batch, _rate)),
        (tr("Prompt tokens from the cache"), format_ratio(now.prefix_hit_ratio)),
        (tr("Computed for nothing"), format_ratio(now.padding_ratio)),
        (tr("Waiting for a place"), format_ratio(now.queue_ratio)),
        (tr("Device waits for the host"), format_ratio(now.host_bound_ratio)),
        (tr("KV blocks in use at most"), format_ratio(now.peak_kv_ratio)),
        (tr("Preemptions"), format_count(now.preemptions)),
        (tr("Memory of a device at most"), format_bytes(served.peak_memory_bytes)),
    ]


def changed(before: float | None, after: float | None, text: Callable[[float], str]) -> str:
    """Returns a value, and where it came from: ``"230 → 150 (−35 %)"``."""
    if after is None:
        return "–"
    if before is None:
        return text(after)
    return f"{text(before)} → {text(after)}" + (f" ({change_text(after / before - 1)})" if before else "")


def _rate(value: float) -> str:
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
