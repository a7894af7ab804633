"""Histories of runs, drawn from a few numbers."""

import numpy as np

from engine.analyses.step_history import StepHistory
from engine.core.units import GIB, MIB

LIMIT_BYTES = 9 * GIB


def made_history(
    count: int = 800,
    *,
    slower_from: int | None = None,
    loss_ratio: float = 0.5,
    by_allocator: bool = True,
    leak_bytes: int = 0,
    seed: int = 0,
) -> StepHistory:
    """Returns steps of about a second with varying tokens; slower after a step where asked.

    Args:
        count: Steps.
        slower_from: Step from which time rises in a straight line; None for never.
        loss_ratio: How much longer the last step is.
        by_allocator: Whether retries and stalls come with it, and holes grow.
        leak_bytes: What live memory grows by over the run.
        seed: Of the noise.
    """
    generator = np.random.default_rng(seed)
    step = np.arange(count)
    onset = count if slower_from is None else slower_from
    rise = np.maximum(step - onset, 0) / max(count - onset, 1)
    tokens = generator.integers(20_000, 40_000, count)
    extra_ns = (rise * loss_ratio * 1e9).astype(np.int64)
    driven = rise if by_allocator else np.zeros(count)
    live = 6 * GIB + (step * leak_bytes) // max(count - 1, 1)
    return StepHistory(
        step_ns=700_000_000 + tokens * 10_000 + extra_ns + generator.integers(0, 9_000_000, count),
        tokens=tokens,
        peak_allocated_bytes=live + 2 * GIB,
        peak_reserved_bytes=np.minimum(live + 2 * GIB + 500 * MIB, LIMIT_BYTES),
        end_allocated_bytes=live,
        stranded_bytes=np.where(driven > 0, (driven * GIB).astype(np.int64), -1),
        retries=generator.poisson(driven * 3),
        driver_calls=generator.poisson(driven * 30),
        caught=generator.poisson(driven),
        stall_ns=extra_ns // 2 if by_allocator else np.zeros(count, np.int64),
        limit_bytes=LIMIT_BYTES,
    )
