"""Segments that grow by mapping pages: free space is given back page by page and neighbours merge."""

from engine.optimizations.answers import switched_on
from engine.optimizations.interface import (
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import UNFIT_HOLES, other_allocator_check, policy_change, policy_check
from engine.runtime.allocators.caching import EXPANDABLE, EXPANDABLE_CUDA
from engine.runtime.allocators.catalogue import AllocatorPolicy

ID = "memory.expandable_segments"
_REFUSED = "torch_npu refuses it at start together with expandable_segments (NPUAllocatorConfig.cpp)"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del plan, parameters
    settings = EXPANDABLE_CUDA if recorded.id == "caching-cuda" else EXPANDABLE
    return AllocatorPolicy("expandable", "expandable segments", settings)


def _is_on(recorded: AllocatorPolicy) -> str | None:
    return "the capture was recorded with expandable_segments:True" if recorded.id == "expandable" else None


EXPANDABLE_SEGMENTS = Optimization(
    id=ID,
    title="Expandable segments",
    group=Group.MEMORY,
    summary="Segments grow by pages in one address range, so free space merges and can be given back page by page.",
    parameters=(),
    switches=(
        Switch(
            "torch_npu",
            "HDK 23.0.0 or newer",
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "not together with max_split_size_mb or garbage_collection_threshold",
        ),
        Switch(
            "MindSpore",
            "",
            "export MS_ALLOC_CONF=enable_vmm:true",
            "mindspore-ai/docs api_python/env_var_list.rst",
        ),
        Switch(
            "PyTorch",
            "",
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "PyTorch notes, CUDA semantics, memory management",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=other_allocator_check(
        "expandable",
        UNFIT_HOLES,
        {"amc": "automatic memory management runs on expandable segments"},
    ),
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy, _is_on),
    conflicts=(
        Conflict("memory.max_split_size", _REFUSED),
        Conflict("memory.gc_threshold", _REFUSED),
        Conflict("memory.stitching", "each of them is an allocator of its own"),
        Conflict("memory.static_plan", "each of them is an allocator of its own"),
    ),
    risk="mapping pages costs driver calls while the job warms up; ModelSlim's quantization guides ask for False",
    undo="unset PYTORCH_NPU_ALLOC_CONF, or set expandable_segments:False",
    verify="reserved memory and step time after the same number of steps; allow ten steps to warm up",
)
