"""How a service is run: the ``[serving]`` table of a scenario."""

from dataclasses import dataclass
from enum import StrEnum


class Arrival(StrEnum):
    """How requests come."""

    POISSON = "poisson"
    BURSTY = "bursty"
    """Bursts of ``burst`` requests at once, bursts Poisson."""
    CLOSED_LOOP = "closed_loop"
    """``users`` users, each of whom asks again some time after the last answer."""
    AT_ONCE = "at_once"


class Batching(StrEnum):
    """When sequences join and leave the batch."""

    CONTINUOUS = "continuous"
    """Every iteration: finished sequences leave at once, waiting ones join."""
    STATIC = "static"
    """A batch is formed, padded to its longest prompt, and stays until its longest answer is done."""


class Preemption(StrEnum):
    """What happens to a sequence whose keys and values do not fit any more."""

    RECOMPUTE = "recompute"
    SWAP = "swap"


class WeightFormat(StrEnum):
    """How weights are stored and multiplied."""

    BF16 = "bf16"
    W8A8 = "w8a8"
    """Weights and activations int8."""
    W4A16 = "w4a16"
    """Weights of 4 bits, multiplied as BF16."""
    MXFP4 = "mxfp4"
    """Experts of 4 bits with a scale per 32; everything else BF16."""


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """How long prompts or answers are: log-normal around a mean, clipped.

    Attributes:
        mean: Tokens.
        sigma: Standard deviation of the logarithm, 0 for all alike.
        maximum: Longest.
    """

    mean: float
    sigma: float = 0.0
    maximum: int = 1 << 20


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """What the service is asked.

    Attributes:
        arrival: How requests come.
        rate_per_s: Requests per second (POISSON, BURSTY).
        burst: Requests of a burst.
        users: Users (CLOSED_LOOP).
        think_s: Mean time between an answer and the user's next request (CLOSED_LOOP, sessions).
        count: Requests in all.
        prompt: New tokens of a prompt.
        output: Tokens of an answer.
        turns: Requests of one session; each prompt begins with everything said before.
        shared_prefixes: How many different texts prompts begin with, 0 for none.
        shared_tokens: Tokens of such a text, part of the prompt.
        file: Recorded requests (CSV or JSONL); None where they are drawn.
    """

    arrival: Arrival = Arrival.POISSON
    rate_per_s: float = 1.0
    burst: int = 8
    users: int = 1
    think_s: float = 0.0
    count: int = 100
    prompt: TokenLengths = TokenLengths(512)
    output: TokenLengths = TokenLengths(128)
    turns: int = 1
    shared_prefixes: int = 0
    shared_tokens: int = 0
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """How the engine serves.

    Attributes:
        requests: What it is asked.
        batching: Continuous, or static for comparison.
        max_batch: Sequences at once.
        max_wait_ns: How long an idle engine waits for more requests before it begins.
        max_batched_tokens: Tokens of one iteration.
        chunked_prefill: Whether long prompts are computed in parts beside decoding; otherwise prompts come first and
            whole.
        bucket_tokens: Prompts are padded to a multiple of this, 0 for none.
        block_tokens: Tokens of a block of keys and values.
        memory_ratio: Share of the device's memory for weights, activations, and keys and values.
        kv_block_count: Blocks there are; None for what memory leaves.
        preemption: What happens when they run out.
        timeout_ns: How long a request may wait before anything of it ran, 0 for ever.
        max_queue: Requests that may wait, 0 for any number.
        prefix_cache: Whether blocks of prompts are kept for requests that begin alike.
        prefix_cache_tokens: How much is kept, 0 for whatever memory leaves.
        speculative_tokens: Tokens guessed per iteration and sequence, 0 for none.
        acceptance_ratio: Chance that a guessed token is right, given that those before it were.
        weights: Storage of weights.
        graph_mode: Whether decoding replays captured graphs instead of dispatching every operator.
        slo_ttft_ns: Limit on the time to the first token that counts as good, 0 for none.
        slo_tpot_ns: Limit on the time per further token, 0 for none.
    """

    requests: RequestSettings = RequestSettings()
    batching: Batching = Batching.CONTINUOUS
    max_batch: int = 32
    max_wait_ns: int = 0
    max_batched_tokens: int = 8192
    chunked_prefill: bool = True
    bucket_tokens: int = 0
    block_tokens: int = 16
    memory_ratio: float = 0.9
    kv_block_count: int | None = None
    preemption: Preemption = Preemption.RECOMPUTE
    timeout_ns: int = 0
    max_queue: int = 0
    prefix_cache: bool = False
    prefix_cache_tokens: int = 0
    speculative_tokens: int = 0
    acceptance_ratio: float = 0.0
    weights: WeightFormat = WeightFormat.BF16
    graph_mode: bool = False
    slo_ttft_ns: int = 0
    slo_tpot_ns: int = 0
