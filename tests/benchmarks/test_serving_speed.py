"""How long a service of many requests takes; the promise: 100,000 requests in 60 s."""

import time

import numpy as np
import pytest

from engine.analyses.serving.jitter import jitter, late_limits
from engine.analyses.serving.latency import serving_analysis
from engine.workloads.serving.request_stream import drawn_requests
from engine.workloads.serving.serve import serve
from engine.workloads.serving.settings import Arrival, RequestSettings, ServingSettings, TokenLengths
from tests.support.serving_prices import simple_prices

pytestmark = pytest.mark.benchmark
REQUESTS = 100_000
PROMISED_S = 60.0
MOST_TIMES_A_SUM = 400
"""Times one sequence's part of an iteration may take what adding one number to a sum takes: it looks up its tokens,
blocks and phase, and writes them back."""


def asked(count: int):
    lengths = TokenLengths(600, 1.0, 8_000), TokenLengths(200, 0.6, 2_000)
    return drawn_requests(RequestSettings(Arrival.POISSON, 3.0, count=count, prompt=lengths[0], output=lengths[1]), 0)


def test_a_hundred_thousand_requests_take_within_a_minute():
    serve(asked(10), ServingSettings(), simple_prices(), 10_000)
    stream = asked(REQUESTS)
    began = time.thread_time()
    run = serve(stream, ServingSettings(max_batch=64), simple_prices(), 40_000)
    analysis = serving_analysis(run)
    found = jitter(run, late_limits(run))
    taken_s = time.thread_time() - began
    numbers = np.ones(int(run.iterations.running.sum()))
    began = time.thread_time()
    np.add.accumulate(numbers)
    sum_s = time.thread_time() - began
    told = (
        f"{len(run.iterations):,} iterations: {taken_s:.2f} s, {taken_s / sum_s:.0f} sums of {len(numbers):,} numbers"
    )
    assert analysis.finished == REQUESTS == found.requests
    assert taken_s <= PROMISED_S, told
    assert taken_s <= MOST_TIMES_A_SUM * sum_s, told
