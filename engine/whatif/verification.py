"""Scoring a prediction by the capture that was made after doing what it asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.whatif.capture_what_if import WEAK_ERROR_RATIO
from engine.whatif.prediction import Prediction
from engine.whatif.subject import CaptureSubject

TOLERANCE_RATIO = WEAK_ERROR_RATIO
"""Beside the predicted range: below the error at which predictions are called weak, runs of one job differ as well."""


@dataclass(frozen=True, slots=True)
class Score:
    """How a prediction did.

    Attributes:
        prediction: What was said.
        step_ns: Mean step of the new capture, of its slowest rank.
        reserved_bytes: Reserved by its fullest rank, replayed as for the prediction; None where it lists no blocks.
        replay_error_ratio: Of the new capture, for comparison.
    """

    prediction: Prediction
    step_ns: float
    reserved_bytes: int | None
    replay_error_ratio: float | None

    @property
    def step_error_ratio(self) -> float:
        """Achieved ÷ expected step − 1."""
        return self.step_ns / self.prediction.step_ns[1] - 1.0

    @property
    def achieved_gain_ns(self) -> float:
        """Saved per step against the capture the prediction was made from."""
        return self.prediction.baseline_step_ns - self.step_ns

    @property
    def gain_error_ratio(self) -> float | None:
        """Achieved ÷ expected gain − 1, None where none was expected."""
        expected = self.prediction.gain.expected_ns
        return self.achieved_gain_ns / expected - 1.0 if expected else None

    @property
    def is_in_range(self) -> bool:
        """Whether the step lies in the predicted range, with the tolerance on both sides."""
        shortest, _, longest = self.prediction.step_ns
        return shortest * (1 - TOLERANCE_RATIO) <= self.step_ns <= longest * (1 + TOLERANCE_RATIO)

    @property
    def reserved_error_ratio(self) -> float | None:
        """Achieved ÷ predicted reserved memory − 1, None where one is not known."""
        expected = self.prediction.reserved_bytes
        return self.reserved_bytes / expected - 1.0 if expected and self.reserved_bytes is not None else None


def score(
    prediction: Prediction,
    subject: CaptureSubject,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> Score:
    """Returns how a prediction did, measured on a capture the way the prediction was made.

    Raises:
        OperationCancelled: Cancelled.
    """
    replayed = subject.baseline_run(progress, cancel).replayed
    return Score(
        prediction=prediction,
        step_ns=float(np.mean(replayed.recorded_step_ns)),
        reserved_bytes=subject.baseline(progress, cancel).worst_reserved_bytes,
        replay_error_ratio=replayed.error_ratio,
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """How predictions have done so far.

    Attributes:
        count: Scored predictions.
        in_range_ratio: Share of them in range.
        median_absolute_error_ratio: Of the step.
        bias_ratio: Mean error: positive where steps came out longer than predicted.
    """

    count: int
    in_range_ratio: float
    median_absolute_error_ratio: float
    bias_ratio: float


def calibration(errors: Sequence[float], in_range: Sequence[bool]) -> Calibration | None:
    """Returns the summary of scored predictions, None where there is none.

    Args:
        errors: Of the step, as ``Score.step_error_ratio``.
        in_range: Of each.
    """
    if not errors:
        return None
    return Calibration(
        count=len(errors),
        in_range_ratio=float(np.mean(in_range)),
        median_absolute_error_ratio=float(np.median(np.abs(errors))),
        bias_ratio=float(np.mean(errors)),
    )
