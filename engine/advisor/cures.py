"""Whether a rerun is rid of what a rule found: then cruder remedies need no rerun of their own."""

import numpy as np

from engine.advisor.findings import Finding
from engine.analyses.slowdown import run_course
from engine.analyses.step_history import StepHistory
from engine.whatif.results import Side
from engine.workloads.results import RunStatus

STRANDED_RATIO = 0.05
"""Share of the reserved bytes stranded at misses and peaks above which holes are a finding: published dense training on
Ascend strands 0.5 to 5 %."""


def is_cured(finding: Finding, side: Side) -> bool:
    """Returns whether a simulated run with a remedy no longer has what the finding says; False where it cannot tell."""
    if side.run is None or side.status is not RunStatus.DONE:
        return False
    histories = side.run.histories
    if finding.rule == "memory.fragmentation_slowdown":
        return all(run_course(history).slowdown is None for history in histories)
    if finding.rule == "memory.fragmentation":
        return all(stranded_ratio(history) <= STRANDED_RATIO for history in histories)
    return finding.stops_run


def stranded_ratio(history: StepHistory) -> float:
    """Returns the share of the reserved bytes that was stranded at the worst miss of a run."""
    reserved = int(history.peak_reserved_bytes.max(initial=0))
    return max(int(np.max(history.stranded_bytes, initial=-1)), 0) / max(reserved, 1)
