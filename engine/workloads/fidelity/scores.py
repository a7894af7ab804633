"""How far predictions are from measurements."""

from dataclasses import dataclass

import numpy as np

from engine.core.arrays import Float64Array


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors of one table; relative errors are |predicted / measured - 1|.

    Attributes:
        rows_count: Rows compared.
        mape_ratio: Mean relative error.
        median_ratio: Median relative error.
        p90_ratio: 90th percentile of the relative error.
        bias_ratio: Mean of predicted / measured - 1: negative where predictions are too fast.
        spearman: Rank correlation, None for fewer than three rows or constant columns.
    """

    rows_count: int
    mape_ratio: float
    median_ratio: float
    p90_ratio: float
    bias_ratio: float
    spearman: float | None


def scores(predicted: Float64Array, measured: Float64Array) -> Scores:
    """Returns the errors of ``predicted`` against ``measured``, shape (n,) each, n > 0, measured > 0."""
    signed = predicted / measured - 1.0
    error = np.abs(signed)
    return Scores(
        rows_count=len(measured),
        mape_ratio=float(error.mean()),
        median_ratio=float(np.median(error)),
        p90_ratio=float(np.quantile(error, 0.9)),
        bias_ratio=float(signed.mean()),
        spearman=spearman(predicted, measured),
    )


def spearman(first: Float64Array, second: Float64Array) -> float | None:
    """Returns the rank correlation with mean ranks for ties, None where it is not defined."""
    if len(first) < 3:
        return None
    ranks, others = _mean_ranks(first), _mean_ranks(second)
    if np.ptp(ranks) == 0 or np.ptp(others) == 0:
        return None
    return float(np.corrcoef(ranks, others)[0, 1])


def _mean_ranks(values: Float64Array) -> Float64Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean = last - (counts - 1) / 2.0
    return np.asarray(mean[inverse], np.float64)
