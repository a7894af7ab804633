"""Old cached blocks are given back before the limit is reached, instead of everything when it is."""

from dataclasses import replace

from engine.optimizations.answers import already_listed, applies, no_effect, switched_on, unknown
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import policy_change, policy_check, scenario_allocator, under_limit
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.workloads.scenario import Scenario

ID = "memory.gc_threshold"
THRESHOLD = "threshold"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    limited = under_limit(recorded, plan)
    return replace(
        limited,
        title=f"{recorded.title}, old blocks given back above {parameters[THRESHOLD]} of the limit",
        settings=replace(limited.settings, garbage_collection_ratio=float(parameters[THRESHOLD])),
    )


_replayed = policy_check(_policy)


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    if plan.capture.job.ranks[0].trace.metadata.device_memory_bytes is None:
        return unknown("the threshold is a share of the memory limit, which the capture does not state")
    return _replayed(plan, parameters)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    listed = already_listed(scenario, ID)
    if listed is not None:
        return listed
    if scenario_allocator(scenario) in ("expandable", "amc"):
        return no_effect("expandable segments give pages back themselves")
    return applies("cached blocks are given back before the limit instead of all at once at it")


GC_THRESHOLD = Optimization(
    id=ID,
    title="Garbage collection of cached blocks",
    group=Group.MEMORY,
    summary="Cached blocks that were not used lately are given back to the driver above a share of the limit.",
    parameters=(
        Parameter(
            THRESHOLD,
            "share of the limit",
            0.8,
            minimum=0.01,
            maximum=0.99,
            provenance="the example of PyTorch's documentation",
        ),
    ),
    switches=(
        Switch(
            "torch_npu",
            "",
            "export PYTORCH_NPU_ALLOC_CONF=garbage_collection_threshold:0.8",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "needs torch_npu.npu.set_per_process_memory_fraction; not together with expandable_segments",
        ),
        Switch(
            "PyTorch",
            "",
            "export PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8",
            "PyTorch notes, CUDA semantics, memory management",
            "needs torch.cuda.set_per_process_memory_fraction",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=policy_change(_policy),
    check_capture=_check_capture,
    risk="blocks that are given back and asked for again cost driver calls",
    undo="remove garbage_collection_threshold from PYTORCH_NPU_ALLOC_CONF",
    verify="allocation retries per step and step time after the same number of steps",
)
