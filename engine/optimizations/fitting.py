"""Which switches can be set on a job: those for its devices, its framework and its kind of work."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from engine.optimizations.interface import Switch
from engine.trace.job import Job
from engine.workloads.scenario import Scenario, WorkloadKind

_OF_ANY_VENDOR = ("PyTorch", "Megatron", "any", "Python", "scenario", "cannscope")
_SERVING = ("vllm",)
_NPU = re.compile(r"(?<![a-z])(?:torch_)?npu(?![a-z])")
"""As a word or between underscores and points, not inside "input"."""
_GPU_ONLY = re.compile(r"cuda(?!graph_mode)|^on gpus")
"""What is CUDA's own (vLLM's ``cudagraph_mode`` is every device's), and notes that name GPUs as the only place ("the
same on GPUs" is no such note)."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What a job runs on.

    Attributes:
        is_ascend: Ascend devices; else GPUs, or none.
        is_pytorch: The capture says that its framework is PyTorch; False where nothing says so.
        is_serving: It serves requests; else it trains, or nothing says what it does.
    """

    is_ascend: bool
    is_pytorch: bool
    is_serving: bool

    @property
    def devices(self) -> str:
        """For people."""
        return "Ascend devices" if self.is_ascend else "GPUs"


def platform_of_scenario(scenario: Scenario) -> Platform:
    """Returns what a simulated job runs on; its framework is open."""
    return Platform(scenario.device.vendor.lower() == "huawei", False, scenario.kind is WorkloadKind.SERVING)


def platform_of_job(job: Job) -> Platform:
    """Returns what a recorded job ran on."""
    traces = [entry.trace for entry in job.ranks]
    is_pytorch = any(
        "_ascend_pt" in trace.source.path or any("torch" in key for key in trace.metadata.software) for trace in traces
    )
    is_ascend = any(trace.source.format.startswith("ascend") for trace in traces)
    return Platform(is_ascend, is_pytorch, is_serving=False)


def fitting(switches: Iterable[Switch], platform: Platform) -> tuple[Switch, ...]:
    """Returns the switches that can be set on the job: none of CUDA's on Ascend, none of Ascend's on GPUs.

    A service is told those of serving engines first.
    """
    found = tuple(
        switch
        for switch in switches
        if _fits_devices(switch, platform.is_ascend)
        and (platform.is_serving or not switch.framework.lower().startswith(_SERVING))
        and not (platform.is_pytorch and switch.framework.startswith(("MindSpore", "mindformers")))
    )
    if platform.is_serving:
        return tuple(sorted(found, key=lambda switch: not switch.framework.lower().startswith(_SERVING)))
    return found


def _fits_devices(switch: Switch, is_ascend: bool) -> bool:
    texts = [text.lower() for text in (switch.switch, switch.note, switch.versions)]
    if is_ascend:
        return not any(_GPU_ONLY.search(text) for text in texts)
    named = any(name.lower() in switch.framework.lower() for name in _OF_ANY_VENDOR)
    return named and not any(_NPU.search(text) for text in texts)
