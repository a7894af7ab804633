"""Chunked prefill: long prompts are computed in parts beside the answers of others."""

from engine.optimizations.answers import already_on, applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.serving.service import check_served_capture, mean_answer, only_continuous, service_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.settings_file import optimized

ID = "serving.chunked_prefill"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    now = service_of(scenario)
    then = optimized(now, {ID: parameters})
    if then == now:
        return already_on(f"prompts are computed in parts of up to {now.max_batched_tokens:,} tokens beside answers")
    settled = only_continuous(now, "computing prompts in parts")
    if settled is not None:
        return settled
    if mean_answer(now) == 1.0 and then.max_batched_tokens == now.max_batched_tokens:
        return no_effect("answers are one token: there is nothing beside which prompts could be computed")
    if now.chunked_prefill:
        return applies(f"{then.max_batched_tokens:,} tokens per iteration instead of {now.max_batched_tokens:,}")
    return applies(
        f"prompts come whole and first: every answer stands still for up to {now.max_batched_tokens:,} tokens of them"
    )


CHUNKED_PREFILL = Optimization(
    id=ID,
    title="Chunked prefill",
    group=Group.SERVING,
    summary="Long prompts are computed in parts, in the iterations in which others get the tokens of their answers.",
    parameters=(
        Parameter(
            "max_batched_tokens",
            "Tokens of an iteration; 0 leaves the scenario's",
            0,
            minimum=0,
            provenance="as the scenario says",
        ),
    ),
    switches=(
        Switch(
            "vllm-ascend",
            "",
            "--enable-chunked-prefill --max-num-batched-tokens N",
            "vllm-ascend docs/source/user_guide/ (upstream vLLM engine arguments)",
            "fewer tokens: steadier answers, later first tokens",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=check_served_capture,
    risk="first tokens of long prompts come later where iterations are small",
    undo="--no-enable-chunked-prefill",
    verify="p99 of the time per token and of the time to the first token under the same load",
)
