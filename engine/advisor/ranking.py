"""The order of recommendations."""

from collections.abc import Sequence

from engine.advisor.bottlenecks import LOSSY
from engine.advisor.findings import MEDIUM_RATIO, Category
from engine.advisor.recommendations import GainMethod, Recommendation
from engine.advisor.rules.communication import OPEN_PEERS


def ranked(recommendations: Sequence[Recommendation]) -> tuple[Recommendation, ...]:
    """Returns the recommendations, the one to follow first at the front.

    1. What keeps a run from ending.
    2. Opening the missing captures, where what they would show is the largest loss of all.
    3. What wins at least 3 % of the step (or memory, where memory is the problem), loss by loss, the largest loss
       first: while ranks wait for a slow stage, making their own device busier wins little of what they wait.
    4. What wins less.
    5. What nobody can quantify, by the loss it treats.

    Within one loss work is first taken away and then what is left of it moved about: how many layers a stage should
    hand over depends on what its kernels take. What computes with fewer bits or drops gradients comes after what does
    not, because accuracy cannot be known. Then the mean of the low and the expected gain decides: a prediction
    whose low end is nothing counts half. Equal ones stand by id.
    """
    largest_ns = max((item.loss.cost_ns for item in recommendations), default=0.0)
    return tuple(sorted(recommendations, key=lambda item: _key(item, largest_ns)))


def _key(item: Recommendation, largest_ns: float) -> tuple[bool, bool, bool, bool, float, bool, bool, float, str]:
    stops = any(finding.stops_run for finding in item.findings)
    blind = item.id == OPEN_PEERS and item.loss.cost_ns >= largest_ns
    unknown = item.gain.method is GainMethod.NOT_QUANTIFIABLE
    significant = _is_significant(item)
    loss_ns = item.loss.cost_ns if significant or unknown else 0.0
    moves = significant and item.category is Category.PIPELINE
    lossy = significant and item.id in LOSSY
    return not stops, not blind, unknown, not significant, -loss_ns, lossy, moves, -counted_ns(item), item.id


def counted_ns(item: Recommendation) -> float:
    """Returns what can be counted on: the mean of the low and the expected gain, 0 where there is none."""
    gain = item.gain.time_ns
    return 0.0 if gain is None else (gain.low + gain.expected) / 2


def _is_significant(item: Recommendation) -> bool:
    ratio = item.gain.time_ratio
    saves_memory = item.gain.memory_bytes is not None and item.gain.memory_bytes.expected > 0
    about_memory = any(finding.cost_ns is None for finding in item.findings)
    return (ratio is not None and ratio.expected >= MEDIUM_RATIO) or (about_memory and saves_memory)
