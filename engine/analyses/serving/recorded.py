"""A served run as tables a trace carries, and back: requests, iterations, what each request was doing when."""

from typing import Any

import numpy as np

from engine.analyses.serving.latency import ServingAnalysis, serving_analysis
from engine.analyses.serving.tables import Iterations, Phases, ServedRequests, ServedRun
from engine.core.arrays import AnyArray, Float64Array
from engine.core.units import NS_PER_US
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace

REQUEST_TABLE, ITERATION_TABLE, PHASE_TABLE = "serving_requests", "serving_iterations", "serving_phases"
"""Names of the tables, and stems of their files in a profiler directory."""
_BLOCK_COUNT, _BLOCK_TOKENS = "KV Blocks In All", "Tokens Per KV Block"
_SLO_TTFT, _SLO_TPOT = "TTFT Limit(us)", "TPOT Limit(us)"
_NUMBER = "Number"
_NEVER = -1.0
_EXACT = 2.0**53
"""Largest number up to which a float64 holds every whole one."""
_REQUESTS = {
    "arrival_ns": "Arrival(us)",
    "prompt_tokens": "Prompt Tokens",
    "output_tokens": "Output Tokens",
    "session": "Session",
    "scheduled_ns": "Scheduled(us)",
    "first_token_ns": "First Token(us)",
    "last_token_ns": "Last Token(us)",
    "cached_tokens": "Cached Tokens",
    "preemptions": "Preemptions",
    "status": "Status",
}
_ITERATIONS = {
    "start_ns": "Start(us)",
    "end_ns": "End(us)",
    "host_ns": "Host(us)",
    "device_ns": "Device(us)",
    "prefill_tokens": "Prompt Tokens",
    "decode_sequences": "Decoding",
    "padded_tokens": "Padding",
    "running": "Running",
    "waiting": "Waiting",
    "kv_blocks": "KV Blocks",
    "cached_blocks": "Cached Blocks",
    "limit": "Limit",
}
_PHASES = {"request": "Request", "kind": "Phase", "start_ns": "Start(us)", "end_ns": "End(us)"}
_DTYPES: dict[str, type[np.integer[Any]]] = {
    "session": np.int32,
    "preemptions": np.int32,
    "status": np.uint8,
    "request": np.int32,
    "kind": np.uint8,
}


def served_tables(run: ServedRun, slo_ttft_ns: int = 0, slo_tpot_ns: int = 0) -> dict[str, RecordedTable]:
    """Returns a run as tables: numbers only, times in µs from the start of the service.

    Args:
        run: The run.
        slo_ttft_ns: Limit of the service on the time to the first token, 0 for none.
        slo_tpot_ns: Limit on the time per further token, 0 for none.
    """
    service = {
        _BLOCK_COUNT: float(run.kv_block_count),
        _BLOCK_TOKENS: float(run.kv_block_tokens),
        _SLO_TTFT: slo_ttft_ns / NS_PER_US,
        _SLO_TPOT: slo_tpot_ns / NS_PER_US,
    }
    return {
        REQUEST_TABLE: _table(REQUEST_TABLE, run.requests, _REQUESTS, service),
        ITERATION_TABLE: _table(ITERATION_TABLE, run.iterations, _ITERATIONS, {}),
        PHASE_TABLE: _table(PHASE_TABLE, run.phases, _PHASES, {}),
    }


def _table(
    name: str, columns: ServedRequests | Iterations | Phases, titles: dict[str, str], constants: dict[str, float]
) -> RecordedTable:
    count = len(columns)
    numbers: dict[str, Float64Array] = {_NUMBER: np.arange(count, dtype=np.float64)}
    for key, title in titles.items():
        values: Float64Array = getattr(columns, key).astype(np.float64)
        numbers[title] = np.where(values >= 0, values / NS_PER_US, _NEVER) if key.endswith("_ns") else values
    numbers.update({title: np.full(count, value) for title, value in constants.items()})
    return RecordedTable(name, numbers, {}, tuple(numbers))


def served_run(trace: Trace) -> ServedRun | None:
    """Returns the run a trace carries; None where it carries none, or one that lacks a column or a number."""
    requests = _columns(trace, REQUEST_TABLE, _REQUESTS)
    iterations = _columns(trace, ITERATION_TABLE, _ITERATIONS)
    phases = _columns(trace, PHASE_TABLE, _PHASES)
    blocks, tokens = (_constant(trace, title) for title in (_BLOCK_COUNT, _BLOCK_TOKENS))
    if requests is None or iterations is None or phases is None or blocks is None or tokens is None:
        return None
    run = ServedRun(
        requests=ServedRequests(**requests),
        iterations=Iterations(**iterations),
        phases=Phases(**phases),
        kv_block_count=blocks,
        kv_block_tokens=tokens,
    )
    inside = len(run.phases) == 0 or (run.phases.request.min() >= 0 and run.phases.request.max() < len(run.requests))
    return run if inside and len(run.requests) else None


def recorded_serving(trace: Trace) -> ServingAnalysis | None:
    """Returns what the service a trace carries came to, under its own limits; None where it carries none."""
    run = served_run(trace)
    if run is None:
        return None
    limits = [(_constant(trace, title) or 0) * NS_PER_US for title in (_SLO_TTFT, _SLO_TPOT)]
    return serving_analysis(run, *limits)


def _columns(trace: Trace, name: str, titles: dict[str, str]) -> dict[str, AnyArray] | None:
    table = trace.tables.get(name)
    if table is None:
        return None
    found: dict[str, AnyArray] = {}
    for key, title in titles.items():
        column = table.numbers.get(title)
        dtype: type[np.integer[Any]] = _DTYPES.get(key, np.int64)
        most = min(float(np.iinfo(dtype).max), _EXACT)
        if column is None or not bool(np.isfinite(column).all()) or bool((np.abs(column) > most).any()):
            return None
        scaled = np.where(column >= 0, column * NS_PER_US, _NEVER) if key.endswith("_ns") else column
        found[key] = np.rint(scaled).astype(dtype)
    return found


def _constant(trace: Trace, title: str) -> int | None:
    column = trace.tables[REQUEST_TABLE].numbers.get(title) if REQUEST_TABLE in trace.tables else None
    return int(column[0]) if column is not None and len(column) and np.isfinite(column[0]) else None
