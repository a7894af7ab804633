"""Serves a stream of requests: iteration after iteration of the compiled engine."""

from dataclasses import dataclass

import numpy as np

from engine.analyses.serving.tables import BlocksLeft, Iterations, PhaseKind, Phases, ServedRequests, ServedRun
from engine.core.arrays import Int32Array, Int64Array
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.trace.strings import ABSENT
from engine.workloads.serving import engine_state as state
from engine.workloads.serving.engine_kernel import advance
from engine.workloads.serving.iteration_prices import IterationPrices
from engine.workloads.serving.kv_blocks import CACHED, FREE, HELD, SHARED, Blocks, new_blocks
from engine.workloads.serving.queues import new_queues, will_come
from engine.workloads.serving.request_stream import RequestStream, continued
from engine.workloads.serving.settings import Preemption, ServingSettings

_ITERATIONS_PER_CALL = 20_000
"""A few tens of ms of work between two looks at the cancel token."""
_SPARE_PHASES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What was logged so far, part by part."""

    iterations: list[Int64Array]
    phases: list[Int64Array]


def serve(
    stream: RequestStream,
    settings: ServingSettings,
    prices: IterationPrices,
    block_count: int,
    seed: int = 0,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> ServedRun:
    """Returns what a service with continuous batching makes of a stream.

    Args:
        stream: The requests.
        settings: Of the engine.
        prices: Of its iterations.
        block_count: Blocks of keys and values there are.
        seed: Of the guesses of speculative decoding.
        progress: Told the share of requests that ended.
        cancel: Looked at every few tens of ms.

    Raises:
        ScenarioError: There is no room for a single block.
        OperationCancelled: Cancelled.
    """
    if block_count < 1:
        raise ScenarioError("serving: no memory is left for keys and values; use more devices or smaller weights")
    rules, requests = _rules(stream, settings), _requests(stream)
    queues = new_queues(len(stream))
    for request in np.flatnonzero(stream.after == ABSENT).tolist():
        will_come(queues, stream.arrival_ns[request], request)
    capacity = -(-settings.prefix_cache_tokens // settings.block_tokens) if settings.prefix_cache_tokens else -1
    blocks = new_blocks(block_count, rules.prefix_count + _highest(stream.session), capacity)
    batch = np.zeros(settings.max_batch, dtype=np.int32)
    counts = np.zeros(8, dtype=np.int64)
    counts[state.BLOCK_COUNT], counts[state.RANDOM] = block_count, seed + 1
    log = state.Log(
        iterations=np.zeros((_ITERATIONS_PER_CALL, state.COLUMN_COUNT), dtype=np.int64),
        phases=np.zeros((8 * settings.max_batch + _SPARE_PHASES, 3), dtype=np.int64),
    )
    rows = _Rows([], [])
    left = len(stream) > 0
    while left:
        cancel.check()
        left = advance(rules, prices, requests, queues, blocks, batch, counts, log, _ITERATIONS_PER_CALL)
        rows.iterations.append(log.iterations[: counts[state.ITERATIONS]].copy())
        rows.phases.append(log.phases[: counts[state.PHASES]].copy())
        progress(counts[state.ENDED] / len(stream), f"{counts[state.ENDED]:,} of {len(stream):,} requests")
    return ServedRun(
        requests=_served(stream, requests),
        iterations=_iterations(rows.iterations),
        phases=closed_phases(np.concatenate(rows.phases or [np.empty((0, 3), dtype=np.int64)])),
        kv_block_count=block_count,
        kv_block_tokens=settings.block_tokens,
        blocks_left=_left(blocks),
    )


def _left(blocks: Blocks) -> BlocksLeft:
    free, held, cached, shared = (int(blocks.counts[place]) for place in (FREE, HELD, CACHED, SHARED))
    return BlocksLeft(free, held + shared, cached)


def _highest(column: Int32Array) -> int:
    return int(column.max(initial=-1)) + 1


def _rules(stream: RequestStream, settings: ServingSettings) -> state.Rules:
    return state.Rules(
        max_batch=settings.max_batch,
        max_wait_ns=settings.max_wait_ns,
        max_tokens=settings.max_batched_tokens,
        chunked=int(settings.chunked_prefill),
        bucket_tokens=settings.bucket_tokens,
        block_tokens=settings.block_tokens,
        swaps=int(settings.preemption is Preemption.SWAP),
        timeout_ns=settings.timeout_ns,
        max_queue=settings.max_queue,
        caches=int(settings.prefix_cache),
        guessed=settings.speculative_tokens,
        acceptance_ratio=settings.acceptance_ratio,
        prefix_count=_highest(stream.prefix),
    )


def _requests(stream: RequestStream) -> state.Requests:
    count = len(stream)

    def filled(value: int) -> Int64Array:
        return np.full(count, value, dtype=np.int64)

    following = np.full(count, ABSENT, dtype=np.int32)
    later = np.flatnonzero(stream.after != ABSENT)
    following[stream.after[later]] = later
    comes_after = stream.after != ABSENT
    return state.Requests(
        arrival_ns=np.where(comes_after, ABSENT, stream.arrival_ns),
        think_ns=np.where(comes_after, stream.arrival_ns, 0),
        prompt=stream.prompt_tokens.astype(np.int64),
        output=stream.output_tokens.astype(np.int64),
        session=stream.session.astype(np.int32),
        prefix=stream.prefix.astype(np.int32),
        shared_tokens=stream.shared_tokens.astype(np.int64),
        next_request=following,
        scheduled_ns=filled(ABSENT),
        first_token_ns=filled(ABSENT),
        last_token_ns=filled(ABSENT),
        cached=filled(0),
        preemptions=np.zeros(count, dtype=np.int32),
        status=np.full(count, state.OPEN, dtype=np.uint8),
        computed=filled(0),
        made=filled(0),
        own_blocks=filled(0),
        shared_blocks=filled(0),
        fresh=filled(0),
        continued=continued(stream).astype(np.uint8),
    )


def _served(stream: RequestStream, requests: state.Requests) -> ServedRequests:
    return ServedRequests(
        arrival_ns=requests.arrival_ns,
        prompt_tokens=stream.prompt_tokens,
        output_tokens=requests.made,
        session=stream.session,
        scheduled_ns=requests.scheduled_ns,
        first_token_ns=requests.first_token_ns,
        last_token_ns=requests.last_token_ns,
        cached_tokens=requests.cached,
        preemptions=requests.preemptions,
        status=requests.status,
    )


def _iterations(parts: list[Int64Array]) -> Iterations:
    rows = np.concatenate(parts or [np.empty((0, state.COLUMN_COUNT), dtype=np.int64)])
    return Iterations(*(np.ascontiguousarray(rows[:, column]) for column in range(rows.shape[1])))


def closed_phases(begins: Int64Array) -> Phases:
    """Returns phases from the moments at which they begin.

    Args:
        begins: int64, shape (n, 3), in order of time per request: request, PhaseKind or −1 for the end, moment in ns.
    """
    order = np.argsort(begins[:, 0], kind="stable")
    request, kind, moment_ns = begins[order].T
    begun = np.flatnonzero(kind >= 0)
    phases = Phases(
        request=request[begun].astype(np.int32),
        kind=kind[begun].astype(np.uint8),
        start_ns=moment_ns[begun],
        end_ns=moment_ns[np.minimum(begun + 1, max(len(moment_ns) - 1, 0))],
    )
    by_time = np.argsort(phases.start_ns, kind="stable")
    visible = by_time[(phases.end_ns > phases.start_ns)[by_time] | (phases.kind[by_time] != PhaseKind.QUEUED)]
    return Phases(phases.request[visible], phases.kind[visible], phases.start_ns[visible], phases.end_ns[visible])
