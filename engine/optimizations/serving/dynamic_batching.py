"""Dynamic (continuous) batching: sequences join and leave the batch at every iteration."""

from engine.core.number_format import format_duration_ns
from engine.optimizations.answers import already_on, applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.serving.service import check_served_capture, mean_answer, service_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings import Arrival, Batching
from engine.workloads.serving.settings_file import KEEP_WAIT_MS, optimized

ID = "serving.dynamic_batching"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    now = service_of(scenario)
    then = optimized(now, {ID: parameters})
    if then == now:
        wait = f", an idle engine waits {format_duration_ns(now.max_wait_ns)}" if now.max_wait_ns else ""
        return already_on(f"up to {now.max_batch} sequences join and leave at every iteration{wait}")
    requests = now.requests
    alone = requests.arrival is Arrival.CLOSED_LOOP and requests.users == 1 and not requests.file
    if alone or max(now.max_batch, then.max_batch) == 1:
        return no_effect("there is never more than one sequence at a time")
    if now.batching is Batching.STATIC:
        if mean_answer(now) == 1.0 and requests.prompt.sigma == 0.0 and then.max_batch == now.max_batch:
            return no_effect("all prompts are of one length and all answers one token: batches end together anyway")
        return applies(
            f"batches of up to {now.max_batch} are padded to their longest prompt and stay until their longest answer; "
            f"up to {then.max_batch} sequences would join and leave at every iteration"
        )
    return applies(
        f"up to {then.max_batch} sequences instead of {now.max_batch}, an idle engine waits "
        f"{format_duration_ns(then.max_wait_ns)} instead of {format_duration_ns(now.max_wait_ns)}"
    )


DYNAMIC_BATCHING = Optimization(
    id=ID,
    title="Dynamic batching",
    group=Group.SERVING,
    summary=(
        "Finished sequences leave the batch at once and waiting requests take their places, iteration by iteration, "
        "instead of batches that are padded and stay together."
    ),
    parameters=(
        Parameter(
            "max_batch", "Sequences at once; 0 leaves the scenario's", 0, minimum=0, provenance="as the scenario says"
        ),
        Parameter(
            "max_wait_ms",
            "How long an idle engine waits for company, ms; -1 leaves the scenario's",
            KEEP_WAIT_MS,
            minimum=KEEP_WAIT_MS,
            provenance="as the scenario says",
        ),
    ),
    switches=(
        Switch(
            "vllm-ascend",
            "",
            "--max-num-seqs N --max-num-batched-tokens M",
            "vllm-ascend docs/source/user_guide/ (upstream vLLM engine arguments)",
            "vLLM always batches continuously; its engine has no waiting time of its own",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=check_served_capture,
    risk="more sequences at once make each answer slower (time per token) and need more keys and values",
    undo="set --max-num-seqs back",
    verify="tokens/s and time per token at the same rate of requests, after a minute of load",
)
