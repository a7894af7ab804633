"""Which of an optimization's switches fit a job: those of its vendor and of its kind of work."""

import re
from collections.abc import Iterable

from engine.advisor.examination import Examination
from engine.optimizations.interface import Switch
from engine.workloads.scenario import WorkloadKind

_OF_ANY_VENDOR = ("PyTorch", "Megatron", "any", "Python", "scenario", "cannscope")
_SERVING = ("vllm",)
_NPU = re.compile(r"(?<![a-z])npu(?![a-z])")
"""As a word or between underscores and points, not inside "input"."""


def fitting(switches: Iterable[Switch], examination: Examination) -> tuple[Switch, ...]:
    """Returns the switches that can be set on the job: none of CUDA's on Ascend, none of Ascend's on GPUs."""
    pytorch = _runs_pytorch(examination)
    serving = examination.scenario is not None and examination.scenario.kind is WorkloadKind.SERVING
    return tuple(
        switch
        for switch in switches
        if _fits_vendor(switch, examination.is_ascend)
        and (serving or not switch.framework.lower().startswith(_SERVING))
        and not (pytorch and switch.framework.startswith("MindSpore"))
    )


def _runs_pytorch(examination: Examination) -> bool:
    """Returns whether the capture says that it is of PyTorch."""
    if examination.scenario is not None:
        return False
    return any(
        "_ascend_pt" in entry.trace.source.path or any("torch" in key for key in entry.trace.metadata.software)
        for entry in examination.job.ranks
    )


def _fits_vendor(switch: Switch, is_ascend: bool) -> bool:
    words = f"{switch.switch} {switch.note}".lower()
    if is_ascend:
        return "cuda" not in words
    named = any(name.lower() in switch.framework.lower() for name in _OF_ANY_VENDOR)
    return named and _NPU.search(words) is None
