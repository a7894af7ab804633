"""The requests a service is asked, drawn by a seed or read from a file."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.units import NS_PER_S
from engine.trace.strings import ABSENT
from engine.workloads.serving.settings import Arrival, RequestSettings, TokenLengths


@dataclass(frozen=True, slots=True, eq=False)
class RequestStream:
    """Requests in order of their number. Arrays of shape (n,).

    A prompt is ``shared_tokens`` of the text ``prefix`` (one text per number), then what was said
    before in the session, then new tokens.

    Attributes:
        arrival_ns: int64, from the start; of a request with ``after``: how long after that one's end.
        prompt_tokens: int64, all of the prompt.
        output_tokens: int64, at least 1.
        session: int32, −1 for none.
        prefix: int32 number of the shared text, −1 for none.
        shared_tokens: int64 tokens of it.
        after: int32 request that must have ended before this one comes, −1 for none.
    """

    arrival_ns: Int64Array
    prompt_tokens: Int64Array
    output_tokens: Int64Array
    session: Int32Array
    prefix: Int32Array
    shared_tokens: Int64Array
    after: Int32Array

    def __len__(self) -> int:
        return len(self.arrival_ns)


def continued(stream: RequestStream) -> BoolArray:
    """Returns which requests have a later turn in their session that begins with all they said, bool, shape (n,).

    Recorded requests do not tell texts: a turn is taken to begin with the one before where it is long enough to.
    """
    order = np.argsort(stream.session, kind="stable")
    this, following = order[:-1], order[1:]
    same = (stream.session[this] == stream.session[following]) & (stream.session[this] != ABSENT)
    said = stream.prompt_tokens[this] + stream.output_tokens[this]
    found = np.zeros(len(stream), dtype=np.bool_)
    found[this] = same & (stream.prompt_tokens[following] >= said)
    return found


def drawn_requests(settings: RequestSettings, seed: int) -> RequestStream:
    """Returns the requests of a stream; the same settings and seed give the same ones."""
    generator = np.random.default_rng([seed, 5])
    count = settings.count
    prompt, output = _lengths(settings.prompt, count, generator), _lengths(settings.output, count, generator)
    think_ns = np.rint(generator.exponential(settings.think_s * NS_PER_S, count)).astype(np.int64)
    arrival_ns, after = _arrivals(settings, generator), np.full(count, ABSENT, dtype=np.int32)
    session = np.full(count, ABSENT, dtype=np.int32)
    number = np.arange(count, dtype=np.int32)
    if settings.arrival is Arrival.CLOSED_LOOP:
        after = np.where(number >= settings.users, number - settings.users, ABSENT).astype(np.int32)
        arrival_ns = np.where(after == ABSENT, 0, think_ns)
    prefix = np.full(count, ABSENT, dtype=np.int32)
    shared = np.zeros(count, dtype=np.int64)
    if settings.shared_prefixes and settings.shared_tokens:
        prefix = generator.integers(0, settings.shared_prefixes, count).astype(np.int32)
        shared = np.minimum(np.full(count, settings.shared_tokens, dtype=np.int64), np.maximum(prompt - 1, 0))
    if settings.turns > 1:
        lanes = settings.users if settings.arrival is Arrival.CLOSED_LOOP else max(-(-count // settings.turns), 1)
        turn = number // lanes % settings.turns
        session = (number % lanes + lanes * (number // (lanes * settings.turns))).astype(np.int32)
        earlier = np.where(turn > 0, number - lanes, ABSENT)
        said = _said_before(prompt, output, earlier)
        follows = (turn > 0) & (settings.arrival is not Arrival.CLOSED_LOOP)
        after = np.where(follows, earlier, after).astype(np.int32)
        arrival_ns = np.where(follows, think_ns, arrival_ns)
        prefix = np.where(turn > 0, prefix[np.maximum(earlier, 0)], prefix).astype(np.int32)
        shared = np.where(turn > 0, shared[np.maximum(earlier, 0)], shared)
        prompt = prompt + said
    return RequestStream(arrival_ns, prompt, output, session, prefix, shared, after)


def _said_before(prompt: Int64Array, output: Int64Array, earlier: Int64Array) -> Int64Array:
    """Returns the tokens of all earlier turns of each request's session. A loop over requests, once per run."""
    said = np.zeros(len(prompt), dtype=np.int64)
    for request in np.flatnonzero(earlier >= 0).tolist():
        before = int(earlier[request])
        said[request] = said[before] + prompt[before] + output[before]
    return said


def _arrivals(settings: RequestSettings, generator: np.random.Generator) -> Int64Array:
    count = settings.count
    if settings.arrival is Arrival.POISSON:
        gaps_s = generator.exponential(1.0 / settings.rate_per_s, count)
    elif settings.arrival is Arrival.BURSTY:
        first = np.arange(count) % settings.burst == 0
        gaps_s = np.where(first, generator.exponential(settings.burst / settings.rate_per_s, count), 0.0)
    else:
        return np.zeros(count, dtype=np.int64)
    gaps_s[0] = 0.0
    return np.rint(np.cumsum(gaps_s) * NS_PER_S).astype(np.int64)


def _lengths(lengths: TokenLengths, count: int, generator: np.random.Generator) -> Int64Array:
    """Returns lengths of the stated mean before clipping: a log-normal's mean is exp(µ + σ²/2)."""
    if lengths.sigma == 0:
        return np.full(count, max(round(lengths.mean), 1), dtype=np.int64)
    center = np.log(lengths.mean) - lengths.sigma**2 / 2
    drawn = np.rint(generator.lognormal(center, lengths.sigma, count)).astype(np.int64)
    return np.clip(drawn, 1, lengths.maximum)
