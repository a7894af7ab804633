"""Checks of what a capture of a few steps cannot answer: the steps or the tensors in question are not in it."""

from engine.optimizations.answers import needs_twin
from engine.optimizations.interface import Applicability, CaptureCheck, CapturePlan, Parameters


def twin_check(reason: str) -> CaptureCheck:
    """Returns the check that says why the capture alone does not answer."""

    def check(plan: CapturePlan, parameters: Parameters) -> Applicability:
        del plan, parameters
        return needs_twin(reason)

    return check
