"""Prefix cache: blocks of keys and values of prompts are kept for requests that begin alike."""

from pathlib import Path

import numpy as np

from engine.core.number_format import format_ratio
from engine.optimizations.answers import already_on, applies, capture_unchanged, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.serving.service import check_served_capture, only_continuous, service_of
from engine.workloads.scenario import Scenario
from engine.workloads.serving.recorded_requests import recorded_requests
from engine.workloads.serving.request_stream import continued
from engine.workloads.serving.settings import ServingSettings
from engine.workloads.serving.settings_file import optimized

ID = "serving.prefix_cache"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    now = service_of(scenario)
    if optimized(now, {ID: parameters}) == now:
        size = f"{now.prefix_cache_tokens:,} tokens" if now.prefix_cache_tokens else "whatever memory leaves"
        return already_on(f"the service keeps blocks of prompts ({size})")
    return only_continuous(now, "a prefix cache") or _shared(now)


def _shared(settings: ServingSettings) -> Applicability:
    """Returns whether prompts begin alike, and how much of them."""
    requests = settings.requests
    if requests.file:
        return _recorded(requests.file)
    size = settings.block_tokens
    shared = min(requests.shared_tokens, round(requests.prompt.mean)) if requests.shared_prefixes else 0
    whole = shared // size * size
    if requests.turns == 1 and not whole:
        why = f"they share {shared} tokens, a block has {size}" if shared else "each begins differently"
        return no_effect(f"prompts share no block of keys and values: {why}")
    said = f"turn after turn of {requests.turns} in a session repeats what was said" if requests.turns > 1 else ""
    if whole:
        ratio = format_ratio(whole / requests.prompt.mean)
        told = f"{whole:,} of {requests.prompt.mean:,.0f} tokens of a prompt ({ratio}) are one of "
        said = f"{told}{requests.shared_prefixes:,} shared texts{'; ' if said else ''}{said}"
    return applies(said)


def _recorded(file: str) -> Applicability:
    """Returns whether recorded sessions go on from what was said. Raises ScenarioError where they cannot be read."""
    stream = recorded_requests(Path(file))
    count = int(np.count_nonzero(continued(stream)))
    if not count:
        return no_effect(f"no turn of a session in {Path(file).name} is long enough to begin with the one before")
    return applies(f"{count:,} of {len(stream):,} recorded requests have a later turn that can begin with them")


PREFIX_CACHE = Optimization(
    id=ID,
    title="Prefix cache",
    group=Group.SERVING,
    summary=(
        "Blocks of keys and values stay after a request, so that a prompt that begins with the same tokens computes "
        "only the rest."
    ),
    parameters=(
        Parameter(
            "tokens",
            "Most tokens kept while nobody uses them; 0 for whatever memory leaves",
            0,
            minimum=0,
            provenance="vLLM keeps whatever memory leaves; a fixed size (prefix_cache_size) is the simulator's term",
        ),
    ),
    switches=(
        Switch(
            "vllm-ascend",
            "",
            "--enable-prefix-caching",
            "vllm-ascend docs/source/user_guide/ (upstream vLLM engine arguments)",
            "prefix_cache_enable and prefix_cache_size are terms of the simulator; vLLM's cache has no size of its own",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=capture_unchanged,
    check_capture=check_served_capture,
    risk="none for results; several guides turn it off together with MTP or a pool of keys and values",
    undo="--no-enable-prefix-caching",
    verify="hit rate and time to the first token, once every shared text was seen",
)
