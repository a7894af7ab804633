"""A simulated service: what its requests lose time to."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Toggle, Unit
from engine.advisor.rules.rule import Rule, loss
from engine.advisor.service_losses import BATCHING, batch_variants, phase_ratios
from engine.analyses.serving.latency import ServingAnalysis
from engine.analyses.serving.tables import AdmissionLimit, PhaseKind
from engine.core.errors import MissingDataError
from engine.core.number_format import format_count, format_duration_ns, format_ratio
from engine.optimizations.interface import Switch
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings import Batching
from engine.workloads.serving.simulate import ServingResult

GUIDE = "vllm-ascend docs/source/user_guide/ (upstream vLLM engine arguments)"
_ROOMY_RATIO = 0.5
"""Below this share of blocks in use twice as many sequences fit."""
_REASONS = {
    AdmissionLimit.NONE: "requests come while an iteration is under way",
    AdmissionLimit.PLACES: "the batch is full while they wait",
    AdmissionLimit.TOKENS: "the tokens of an iteration are used up by others",
    AdmissionLimit.BLOCKS: "no blocks of keys and values are free for them",
}


def answered_service(examination: Examination) -> tuple[ServingAnalysis, ServingResult]:
    """Returns what a service came to; raises MissingDataError where it answered nobody."""
    side = examination.side
    if side is None or side.serving is None or side.service is None or not side.serving.finished:
        raise MissingDataError("answered requests", "serve at least one request")
    return side.serving, side.service


def _percent(name: str, ratio: float) -> Evidence:
    return Evidence(name, ratio, Unit.RATIO)


def queueing(examination: Examination) -> Sequence[Finding]:
    """Returns the time requests wait for a place, with the limit that keeps them out longest."""
    _, service = answered_service(examination)
    ratio = phase_ratios(service.run)[PhaseKind.QUEUED]
    if ratio < WORTH_RATIO:
        return ()
    steps = service.run.iterations
    length_ns = np.where(steps.waiting > 0, steps.end_ns - steps.start_ns, 0)
    by_limit = np.bincount(steps.limit, weights=length_ns, minlength=len(AdmissionLimit))
    limit = AdmissionLimit(int(by_limit.argmax()))
    cost_ns = ratio * examination.step_ns
    toggles = [Toggle(BATCHING, tuple(batch_variants(service.scenario)))] if limit is not AdmissionLimit.BLOCKS else []
    others = ("serving.prefix_cache", "host.graph_mode", "serving.quantization")
    return [
        loss(
            examination,
            "service.queueing",
            Category.SERVING,
            f"Requests wait {format_duration_ns(cost_ns)} for a place on average ({format_ratio(ratio)} of their time)",
            _REASONS[limit],
            cost_ns,
            (
                _percent("time in the queue", ratio),
                Evidence("requests waiting at most", float(steps.waiting.max(initial=0)), Unit.COUNT),
                Evidence("sequences at once at most", float(steps.running.max(initial=0)), Unit.COUNT),
            ),
            (*toggles, *(Toggle(identifier) for identifier in others)),
        )
    ]


def host_bound(examination: Examination) -> Sequence[Finding]:
    """Returns the time in which the device waits for the engine's program."""
    analysis, service = answered_service(examination)
    spent = phase_ratios(service.run)
    ratio = (analysis.host_bound_ratio or 0.0) * (spent[PhaseKind.PREFILL] + spent[PhaseKind.DECODE])
    if ratio < WORTH_RATIO:
        return ()
    steps = service.run.iterations
    decodes = steps.prefill_tokens == 0
    host_ns, device_ns = (
        float(np.mean(column[decodes])) if decodes.any() else 0.0 for column in (steps.host_ns, steps.device_ns)
    )
    return [
        loss(
            examination,
            "service.host_bound",
            Category.HOST,
            f"The device waits for the host in {format_ratio(analysis.host_bound_ratio)} of the iterations' time",
            f"an iteration of answers costs the host {format_duration_ns(host_ns)} and the device "
            f"{format_duration_ns(device_ns)}",
            ratio * examination.step_ns,
            (_percent("iterations' time in which the device waits", analysis.host_bound_ratio or 0.0),),
            (Toggle("host.graph_mode"), Toggle("serving.speculative")),
        )
    ]


def padding(examination: Examination) -> Sequence[Finding]:
    """Returns the tokens computed for nothing."""
    analysis, service = answered_service(examination)
    spent = phase_ratios(service.run)
    ratio = analysis.padding_ratio * (spent[PhaseKind.PREFILL] + spent[PhaseKind.DECODE])
    if ratio < WORTH_RATIO:
        return ()
    static = service.settings.batching is Batching.STATIC
    cause = (
        "batches are padded to their longest prompt and stay until their longest answer"
        if static
        else f"prompts are padded to multiples of {service.settings.bucket_tokens} tokens"
    )
    return [
        loss(
            examination,
            "service.padding",
            Category.SERVING,
            f"{format_ratio(analysis.padding_ratio)} of the tokens are computed for nothing",
            cause,
            ratio * examination.step_ns,
            (_percent("padding among computed tokens", analysis.padding_ratio),),
            (Toggle(BATCHING, tuple(batch_variants(service.scenario))),) if static else (),
        )
    ]


def preemption(examination: Examination) -> Sequence[Finding]:
    """Returns the time preempted requests lose, waiting and computing again."""
    analysis, service = answered_service(examination)
    ratio = phase_ratios(service.run)[PhaseKind.PREEMPTED]
    if not analysis.preemptions or ratio < WORTH_RATIO:
        return ()
    places = max(service.settings.max_batch // 2, 1)
    fewer = Action(
        id="service.fewer_sequences",
        title="Admit fewer sequences at once",
        how_to_apply=(Switch("vllm-ascend", "", f"--max-num-seqs {places}", GUIDE, "or --gpu-memory-utilization up"),),
        estimate=None,
        risk="requests wait longer for a place where preemptions were cheap",
        undo=f"--max-num-seqs {service.settings.max_batch}",
        verify="preemptions in the engine's log, and p99 of the time per token",
        change=_with_half_the_places,
    )
    return [
        loss(
            examination,
            "service.preemption",
            Category.MEMORY,
            f"{format_count(analysis.preemptions)} times a sequence had to leave ({format_ratio(ratio)} of the time)",
            f"up to {int(service.run.iterations.running.max())} sequences need more keys and values than the "
            f"{format_count(service.run.kv_block_count)} blocks there are",
            ratio * examination.step_ns,
            (_percent("time preempted", ratio), _percent("blocks in use at most", analysis.peak_kv_ratio or 0.0)),
            (Toggle("serving.quantization"), fewer),
        )
    ]


def _with_half_the_places(scenario: Scenario) -> Scenario:
    places = max(scenario.serving.max_batch // 2, 1)
    return replace(scenario, serving=replace(scenario.serving, max_batch=places))


def prompts(examination: Examination) -> Sequence[Finding]:
    """Returns the time prompts take, where they repeat what was computed before and nobody kept it."""
    analysis, service = answered_service(examination)
    requests = service.settings.requests
    repeats = bool(requests.shared_prefixes and requests.shared_tokens) or requests.turns > 1
    ratio = phase_ratios(service.run)[PhaseKind.PREFILL]
    if service.settings.prefix_cache or not repeats or ratio < WORTH_RATIO:
        return ()
    return [
        loss(
            examination,
            "service.prompts",
            Category.SERVING,
            f"Computing prompts takes {format_ratio(ratio)} of the requests' time, and prompts begin alike",
            "keys and values of what prompts share are computed for each of them",
            ratio * examination.step_ns,
            (_percent("time in prefill", ratio), _percent("prompts found in a cache", analysis.prefix_hit_ratio)),
            (Toggle("serving.prefix_cache"),),
        )
    ]


def useless_cache(examination: Examination) -> Sequence[Finding]:
    """Returns a prefix cache that finds nothing."""
    analysis, service = answered_service(examination)
    if not service.settings.prefix_cache or analysis.prefix_hit_ratio > 0.0:
        return ()
    off = Action(
        id="service.no_prefix_cache",
        title="Leave the prefix cache out, or route requests that begin alike to the same service",
        how_to_apply=(Switch("vllm-ascend", "", "--no-enable-prefix-caching", GUIDE),),
        estimate=None,
        risk="none to results",
        undo="--enable-prefix-caching",
        verify="hit rate in the engine's log",
    )
    return [
        loss(
            examination,
            "service.useless_cache",
            Category.SERVING,
            "The prefix cache is on and finds nothing",
            "prompts share no whole block of keys and values, or what they share is evicted before it is asked again",
            0.0,
            (_percent("prompts found in the cache", 0.0),),
            (off,),
        )
    ]


def small_batch(examination: Examination) -> Sequence[Finding]:
    """Returns requests that wait for places while keys and values have room for many more sequences."""
    analysis, service = answered_service(examination)
    steps = service.run.iterations
    waits = float(np.mean(steps.limit == AdmissionLimit.PLACES)) if len(steps) else 0.0
    ratio = phase_ratios(service.run)[PhaseKind.QUEUED] * waits
    full = analysis.peak_kv_ratio or 0.0
    if ratio < WORTH_RATIO or full > _ROOMY_RATIO:
        return ()
    return [
        loss(
            examination,
            "service.small_batch",
            Category.SERVING,
            f"Requests wait while {format_ratio(1.0 - full)} of the room for keys and values is never used",
            f"at most {service.settings.max_batch} sequences run at once, and an iteration reads all weights for them",
            ratio * examination.step_ns,
            (_percent("blocks in use at most", full), _percent("iterations with a full batch and a queue", waits)),
            (Toggle(BATCHING, tuple(batch_variants(service.scenario))),),
        )
    ]


RULES = (
    Rule("service.queueing", "Requests waiting for a place", queueing, of_services=True),
    Rule("service.small_batch", "Room for more sequences at once", small_batch, of_services=True),
    Rule("service.host_bound", "Device waiting for the engine", host_bound, of_services=True),
    Rule("service.padding", "Tokens computed for nothing", padding, of_services=True),
    Rule("service.preemption", "Sequences that had to leave", preemption, of_services=True),
    Rule("service.prompts", "Prompts computed again and again", prompts, of_services=True),
    Rule("service.useless_cache", "A prefix cache that finds nothing", useless_cache, of_services=True),
)
