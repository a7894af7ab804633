"""Speculative decoding: tokens are guessed, and all guesses of a sequence are checked in one iteration."""

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
from engine.workloads.serving.settings_file import USUAL_ACCEPTANCE_RATIO, USUAL_GUESSES, optimized

ID = "serving.speculative"
_GUIDE = "vllm-ascend docs/source/user_guide/feature_guide/speculative_decoding.md"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    now = service_of(scenario)
    then = optimized(now, {ID: parameters})
    if then == now:
        return already_on(f"{now.speculative_tokens} tokens are guessed per iteration and sequence")
    settled = only_continuous(now, "guessing tokens")
    if settled is not None:
        return settled
    if mean_answer(now) == 1.0:
        return no_effect("answers are one token: there is nothing to guess")
    if then.acceptance_ratio == 0.0:
        return no_effect("no guess is ever right (acceptance = 0)")
    guesses, ratio = then.speculative_tokens, then.acceptance_ratio
    tokens = 1 + sum(ratio**place for place in range(1, guesses + 1))
    return applies(f"an iteration gives {tokens:.2f} tokens of a sequence on average and computes {1 + guesses}")


SPECULATIVE = Optimization(
    id=ID,
    title="Speculative decoding",
    group=Group.SERVING,
    summary=(
        "Next tokens of every sequence are guessed and checked together: right guesses save iterations, wrong ones "
        "cost their computing. Guessing itself is free here, as with n-grams or suffixes of what was said."
    ),
    parameters=(
        Parameter("tokens", "Tokens guessed per iteration and sequence", USUAL_GUESSES, minimum=1, maximum=16),
        Parameter(
            "acceptance",
            "Chance that a guess is right after right ones",
            USUAL_ACCEPTANCE_RATIO,
            minimum=0.0,
            maximum=1.0,
            provenance=(
                "0.44 gives the 23.9 % of guesses that suffix decoding of Qwen3-32B had right in vllm-ascend's table "
                "(at 182b75ea, suffix_speculative_decoding.md)"
            ),
        ),
    ),
    switches=(
        Switch(
            "vllm-ascend",
            "",
            '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}\'',
            _GUIDE,
            "a draft model (eagle3, mtp) costs iterations of its own, which are not simulated",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=check_served_capture,
    risk="the share of right guesses depends on the texts: measure it first; gains shrink with the batch",
    undo="leave --speculative-config out",
    verify="accept rate in the engine's log, and time per token",
)
