"""Streams of requests written down by hand."""

from collections.abc import Sequence

import numpy as np

from engine.workloads.serving.request_stream import RequestStream

_NS_PER_MS = 1_000_000


def stream(
    rows: Sequence[tuple[int, int, int]], *, session: int = -1, prefix: int = -1, shared: int = 0
) -> RequestStream:
    """Returns requests of (arrival in ms, tokens of the prompt, tokens of the answer)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    count = len(columns)
    return RequestStream(
        arrival_ns=columns[:, 0] * _NS_PER_MS,
        prompt_tokens=columns[:, 1],
        output_tokens=columns[:, 2],
        session=np.full(count, session, dtype=np.int32),
        prefix=np.full(count, prefix, dtype=np.int32),
        shared_tokens=np.full(count, shared, dtype=np.int64),
        after=np.full(count, -1, dtype=np.int32),
    )
