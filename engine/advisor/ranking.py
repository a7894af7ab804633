"""The order of recommendations."""

from collections.abc import Sequence

from engine.advisor.recommendations import GainMethod, Recommendation


def ranked(recommendations: Sequence[Recommendation]) -> tuple[Recommendation, ...]:
    """Returns the recommendations, the one to follow first at the front.

    What keeps a run from ending comes first. Then what wins the most time for certain: the mean of the low and the
    expected gain, so that a prediction whose low end is nothing counts half. Gains nobody can quantify follow, by what
    their findings cost; equal ones by id.
    """
    return tuple(sorted(recommendations, key=_key))


def _key(item: Recommendation) -> tuple[bool, bool, float, float, str]:
    stops = any(finding.stops_run for finding in item.findings)
    unknown = item.gain.method is GainMethod.NOT_QUANTIFIABLE
    return not stops, unknown, -_counted_ns(item), -_cost_ns(item), item.id


def _counted_ns(item: Recommendation) -> float:
    gain = item.gain.time_ns
    return 0.0 if gain is None else (gain.low + gain.expected) / 2


def _cost_ns(item: Recommendation) -> float:
    return max((finding.cost_ns or 0.0 for finding in item.findings), default=0.0)
