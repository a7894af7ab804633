"""Static batching, for comparison: a batch is formed, padded to its longest prompt, and stays to its longest answer."""

import numpy as np

from engine.analyses.serving.tables import (
    AdmissionLimit,
    Iterations,
    PhaseKind,
    Phases,
    RequestStatus,
    ServedRequests,
    ServedRun,
)
from engine.core.arrays import Float64Array, Int64Array
from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.trace.strings import ABSENT
from engine.workloads.serving.engine_state import COLUMN_COUNT
from engine.workloads.serving.iteration_prices import IterationPrices, across, along
from engine.workloads.serving.request_stream import RequestStream
from engine.workloads.serving.settings import ServingSettings


class _Books:
    """What happened so far, batch by batch."""

    def __init__(self, stream: RequestStream) -> None:
        count = len(stream)
        self.scheduled_ns = np.full(count, ABSENT, dtype=np.int64)
        self.first_ns = np.full(count, ABSENT, dtype=np.int64)
        self.last_ns = np.full(count, ABSENT, dtype=np.int64)
        self.status = np.full(count, RequestStatus.FINISHED, dtype=np.uint8)
        self.steps: list[Int64Array] = []


def serve_static(
    stream: RequestStream,
    settings: ServingSettings,
    prices: IterationPrices,
    block_count: int,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> ServedRun:
    """Returns what a service with static batching makes of a stream. A loop over batches, each priced at once.

    Keys and values are reserved for the padded prompt and the longest answer of the batch, so fewer requests fit.

    Raises:
        ScenarioError: Requests that come after the end of others (closed loop, sessions).
        OperationCancelled: Cancelled.
    """
    if (stream.after != ABSENT).any():
        raise ScenarioError('serving.batching = "static" needs requests that do not wait for each other')
    books = _Books(stream)
    order = np.argsort(stream.arrival_ns, kind="stable")
    done, now_ns = 0, 0
    while done < len(order):
        cancel.check()
        progress(done / len(order), f"{done:,} of {len(order):,} requests")
        first = int(order[done])
        if _blocks(stream, order[done : done + 1], settings) > block_count:
            books.status[first] = RequestStatus.TOO_LONG
            done += 1
            continue
        begin_ns = _begin_ns(stream, order, done, settings, now_ns)
        come = order[done : done + settings.max_batch]
        come = come[stream.arrival_ns[come] <= begin_ns]
        while _blocks(stream, come, settings) > block_count:
            come = come[:-1]
        now_ns = _run_batch(stream, come, prices, begin_ns, books, settings)
        done += len(come)
    return _served(stream, books, settings, block_count)


def _begin_ns(stream: RequestStream, order: Int64Array, done: int, settings: ServingSettings, now_ns: int) -> int:
    """Returns when the next batch begins: full, or after the first of it has waited as long as it may."""
    arrivals = stream.arrival_ns[order[done : done + settings.max_batch]]
    until = int(arrivals[0]) + settings.max_wait_ns
    if len(arrivals) == settings.max_batch:
        until = min(until, int(arrivals[-1]))
    return max(now_ns, until)


def _blocks(stream: RequestStream, chosen: Int64Array, settings: ServingSettings) -> int:
    tokens = int(stream.prompt_tokens[chosen].max()) + int(stream.output_tokens[chosen].max())
    return -(-tokens // settings.block_tokens) * len(chosen)


def _run_batch(
    stream: RequestStream,
    chosen: Int64Array,
    prices: IterationPrices,
    begin_ns: int,
    books: _Books,
    settings: ServingSettings,
) -> int:
    """Runs one batch and returns when it ends."""
    count, longest = len(chosen), int(stream.prompt_tokens[chosen].max())
    answers = stream.output_tokens[chosen]
    steps = int(answers.max())
    chunk = across(prices.queries, prices.keys, prices.chunk_ns, float(longest), float(longest)) * count
    head = along(prices.sequences, prices.head_ns, float(count))
    device: Float64Array = np.full(steps, along(prices.tokens, prices.linear_ns, float(count)) + head)
    device[0] = along(prices.tokens, prices.linear_ns, float(count * longest)) + chunk + head
    for step in range(1, steps):  # contexts grow by a token; a few hundred look-ups per batch
        device[step] += across(prices.sequences, prices.contexts, prices.decode_ns, float(count), float(longest + step))
    graph = np.arange(steps) > 0 if prices.graph_mode else np.zeros(steps, dtype=np.bool_)
    engine = prices.engine_ns + prices.engine_sequence_ns * count
    dispatch = np.where(graph, prices.graph_host_ns, prices.eager_host_ns)
    ends = begin_ns + np.cumsum(np.rint(engine + np.maximum(device, dispatch)).astype(np.int64))
    books.scheduled_ns[chosen] = begin_ns
    books.first_ns[chosen] = ends[0]
    books.last_ns[chosen] = ends[answers - 1]
    alive = np.count_nonzero(answers[None, :] > np.arange(steps)[:, None], axis=1)
    real = int(stream.prompt_tokens[chosen].sum())
    rows = np.zeros((steps, COLUMN_COUNT), dtype=np.int64)
    rows[:, 0], rows[:, 1] = np.concatenate(([begin_ns], ends[:-1])), ends
    rows[:, 2], rows[:, 3] = np.rint(engine + dispatch), np.rint(device)
    rows[0, 4], rows[1:, 5] = real, alive[1:]
    rows[0, 6], rows[1:, 6] = count * longest - real, count - alive[1:]
    rows[:, 7] = count
    come = np.searchsorted(np.sort(stream.arrival_ns), rows[:, 0], side="right")
    rows[:, 8] = np.maximum(come - np.count_nonzero(books.scheduled_ns >= 0), 0)
    rows[:, 9] = _blocks(stream, chosen, settings)
    # Whoever waits now waits for the whole batch to end: for a place.
    rows[:, 11] = np.where(rows[:, 8] > 0, AdmissionLimit.PLACES, AdmissionLimit.NONE)
    books.steps.append(rows)
    return int(ends[-1])


def _served(stream: RequestStream, books: _Books, settings: ServingSettings, block_count: int) -> ServedRun:
    rows = np.concatenate(books.steps or [np.empty((0, COLUMN_COUNT), dtype=np.int64)])
    done = np.flatnonzero(books.status == RequestStatus.FINISHED).astype(np.int32)
    kinds = np.repeat(np.array([PhaseKind.QUEUED, PhaseKind.PREFILL, PhaseKind.DECODE], dtype=np.uint8), len(done))
    starts = np.concatenate((stream.arrival_ns[done], books.scheduled_ns[done], books.first_ns[done]))
    ends = np.concatenate((books.scheduled_ns[done], books.first_ns[done], books.last_ns[done]))
    order = np.argsort(starts, kind="stable")
    order = order[(ends > starts)[order]]
    return ServedRun(
        requests=ServedRequests(
            arrival_ns=stream.arrival_ns,
            prompt_tokens=stream.prompt_tokens,
            output_tokens=np.where(books.status == RequestStatus.FINISHED, stream.output_tokens, 0),
            session=stream.session,
            scheduled_ns=books.scheduled_ns,
            first_token_ns=books.first_ns,
            last_token_ns=books.last_ns,
            cached_tokens=np.zeros(len(stream), dtype=np.int64),
            preemptions=np.zeros(len(stream), dtype=np.int32),
            status=books.status,
        ),
        iterations=Iterations(*(np.ascontiguousarray(rows[:, column]) for column in range(COLUMN_COUNT))),
        phases=Phases(np.tile(done, 3)[order], kinds[order], starts[order], ends[order]),
        kv_block_count=block_count,
        kv_block_tokens=settings.block_tokens,
    )
