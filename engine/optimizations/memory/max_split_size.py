"""A limit above which blocks are not split, so that large holes stay whole."""

from dataclasses import replace

from engine.optimizations.answers import already_listed, applies, no_effect, switched_on
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.memory.policies import (
    megabytes,
    policy_change,
    policy_check,
    scenario_allocator,
    varying_sizes,
)
from engine.runtime.allocators.catalogue import AllocatorPolicy
from engine.workloads.scenario import Scenario

ID = "memory.max_split_size"
SIZE = "size_mb"


def _policy(recorded: AllocatorPolicy, plan: CapturePlan, parameters: Parameters) -> AllocatorPolicy:
    del plan
    return replace(
        recorded,
        title=f"{recorded.title}, blocks from {parameters[SIZE]} MiB on are not split",
        settings=replace(recorded.settings, max_split_size_bytes=megabytes(parameters[SIZE])),
    )


def _is_on(recorded: AllocatorPolicy) -> str | None:
    size = recorded.settings.max_split_size_bytes
    return None if size is None else f"the capture was recorded with max_split_size_mb:{size >> 20}"


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    del parameters
    listed = already_listed(scenario, ID)
    if listed is not None:
        return listed
    if scenario_allocator(scenario) in ("expandable", "amc"):
        return no_effect("expandable segments do not split segments")
    if not varying_sizes(scenario):
        return no_effect("every step asks for the same blocks, so no large hole is cut up for long")
    return applies("large cached blocks are cut up by smaller requests whose sizes change")


MAX_SPLIT_SIZE = Optimization(
    id=ID,
    title="Limit on splitting large blocks",
    group=Group.MEMORY,
    summary="Blocks above the limit are used whole or not at all, so that large holes survive small requests.",
    parameters=(
        Parameter(
            SIZE, "limit, MiB", 128, minimum=21, provenance="assumed: no published default; torch_npu takes > 20"
        ),
    ),
    switches=(
        Switch(
            "torch_npu",
            "",
            "export PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:128",
            "Ascend/pytorch docs/zh/api/environment_variable/memory_management",
            "above 20; not together with expandable_segments; may raise what is reserved",
        ),
        Switch(
            "PyTorch",
            "",
            "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
            "PyTorch notes, CUDA semantics, memory management",
            "above 20; may raise what is reserved",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=policy_change(_policy),
    check_capture=policy_check(_policy, _is_on),
    risk="reserved memory may rise, because large blocks cannot serve small requests",
    undo="remove max_split_size_mb from PYTORCH_NPU_ALLOC_CONF",
    verify="reserved memory and allocation retries after the same number of steps",
)
