"""How much exposed transfer could at best hide behind computing."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from engine.analyses.communication.collectives import Collective
from engine.analyses.steps import Step


def with_hideable(collectives: tuple[Collective, ...], steps: tuple[Step, ...]) -> tuple[Collective, ...]:
    """Returns the collectives of one rank with ``hideable_ns`` filled where they are split.

    Only exposed transfer can be hidden: waiting ends when the late rank comes, whatever runs meanwhile. One ns of
    computing hides one ns of transfer, and only computing of the same step that does not run beside communication
    already is free to do so. Where a step has more exposed transfer than such computing, every collective gets the
    same share, so that the sum over a step is a bound too. Captures do not tell which computing is independent of a
    collective: the value is an upper bound. None where the step's computing is unknown.
    """
    free_ns = {step.step: _free_computing_ns(step) for step in steps}
    exposed_ns: dict[int | None, int] = defaultdict(int)
    for collective in collectives:
        exposed_ns[collective.step] += _exposed_transfer_ns(collective) or 0
    return tuple(_limited(collectives, free_ns, exposed_ns))


def _limited(
    collectives: tuple[Collective, ...], free_ns: dict[int | None, float | None], exposed_ns: dict[int | None, int]
) -> Iterable[Collective]:
    for collective in collectives:
        own_ns = _exposed_transfer_ns(collective)
        free = free_ns.get(collective.step)
        if own_ns is None or free is None:
            yield collective
        else:
            whole = exposed_ns[collective.step]
            share = min(1.0, free / whole) if whole else 0.0
            yield replace(collective, hideable_ns=int(own_ns * share))


def _exposed_transfer_ns(collective: Collective) -> int | None:
    if collective.exposed_wait_ns is None:
        return None
    return collective.exposed_ns - collective.exposed_wait_ns


def _free_computing_ns(step: Step) -> float | None:
    if step.computing_ns is None:
        return None
    return max(0.0, step.computing_ns - (step.overlapped_ns or 0.0))
