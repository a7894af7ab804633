"""A what-if as it is kept until somebody has done what it asked for and measured again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.core.errors import ScenarioError
from engine.core.units import NS_PER_US
from engine.whatif.results import Gain, WhatIf

SCHEMA = "cannscope.prediction/1"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was predicted of a job.

    Attributes:
        name: Of the job.
        enabled: What was switched on, as ``--enable`` takes it.
        baseline_step_ns: Mean step before: as recorded, or as simulated.
        gain: Of everything together, per step.
        baseline_reserved_bytes: Of the fullest rank, None where memory was not known.
        reserved_bytes: Of the fullest rank afterwards, None likewise.
        contribution_ns: What each gives, by id.
        replay_error_ratio: None for a simulated job.
        inferred_share_ratio: Share of the gain that rests on inferred dependencies.
        weak: Why the prediction is weak, None where it is not.
    """

    name: str
    enabled: tuple[str, ...]
    baseline_step_ns: float
    gain: Gain
    baseline_reserved_bytes: int | None
    reserved_bytes: int | None
    contribution_ns: Mapping[str, float]
    replay_error_ratio: float | None
    inferred_share_ratio: float | None
    weak: str | None

    @property
    def step_ns(self) -> tuple[float, float, float]:
        """Predicted step: shortest, expected, longest."""
        before, gain = self.baseline_step_ns, self.gain
        return before - gain.high_ns, before - gain.expected_ns, before - gain.low_ns


def prediction_of(result: WhatIf) -> Prediction:
    """Returns what is kept of a what-if.

    A capture's prediction starts from its recorded step, not from the replay of it: gains are differences of two
    replays, which share most of the replay error.
    """
    recorded_ns = result.baseline.mean_step_ns / (1 + (result.replay_error_ratio or 0.0))
    return Prediction(
        name=result.name,
        enabled=tuple(item.text for item in result.enabled),
        baseline_step_ns=recorded_ns,
        gain=result.gain,
        baseline_reserved_bytes=result.baseline.worst_reserved_bytes,
        reserved_bytes=result.candidate.worst_reserved_bytes,
        contribution_ns={item.id: item.gain_ns for item in result.contributions},
        replay_error_ratio=result.replay_error_ratio,
        inferred_share_ratio=result.inferred_share_ratio,
        weak=result.weak,
    )


def prediction_document(prediction: Prediction) -> dict[str, Any]:
    """Returns a prediction as JSON keeps it; durations in µs."""
    shortest, expected, longest = (value / NS_PER_US for value in prediction.step_ns)
    return {
        "schema": SCHEMA,
        "name": prediction.name,
        "enabled": list(prediction.enabled),
        "baseline": {
            "step_time_us": prediction.baseline_step_ns / NS_PER_US,
            "peak_reserved_bytes": prediction.baseline_reserved_bytes,
        },
        "predicted": {
            "step_time_us": {"shortest": shortest, "expected": expected, "longest": longest},
            "peak_reserved_bytes": prediction.reserved_bytes,
        },
        "gain_us": {name.removesuffix("_ns"): value / NS_PER_US for name, value in asdict(prediction.gain).items()},
        "contributions_us": {name: value / NS_PER_US for name, value in prediction.contribution_ns.items()},
        "replay_error_ratio": prediction.replay_error_ratio,
        "inferred_share_ratio": prediction.inferred_share_ratio,
        "weak": prediction.weak,
    }


def prediction_from_document(document: Any) -> Prediction:
    """Returns the prediction a document holds. Raises ScenarioError for anything else."""
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise ScenarioError(f"not a prediction ({SCHEMA}); whatif -o DIR writes one as prediction.json")
    try:
        gain = document["gain_us"]
        return Prediction(
            name=str(document["name"]),
            enabled=tuple(str(text) for text in document["enabled"]),
            baseline_step_ns=float(document["baseline"]["step_time_us"]) * NS_PER_US,
            gain=Gain(*(float(gain[name]) * NS_PER_US for name in ("low", "expected", "high"))),
            baseline_reserved_bytes=_whole(document["baseline"]["peak_reserved_bytes"]),
            reserved_bytes=_whole(document["predicted"]["peak_reserved_bytes"]),
            contribution_ns={name: float(value) * NS_PER_US for name, value in document["contributions_us"].items()},
            replay_error_ratio=_number(document["replay_error_ratio"]),
            inferred_share_ratio=_number(document["inferred_share_ratio"]),
            weak=None if document["weak"] is None else str(document["weak"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ScenarioError(f"a prediction without a readable {error}; write it again with whatif -o DIR") from error


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
