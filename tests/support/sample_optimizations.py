"""A small catalogue for tests of what uses optimizations, whatever the real one holds."""

from dataclasses import replace

from engine.core.registry import Registry
from engine.optimizations.answers import already_on, applies, capture_unchanged, needs_twin, switched_on
from engine.optimizations.interface import (
    Applicability,
    CapturePlan,
    Conflict,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.workloads.scenario import Scenario


def sample_optimization(identifier: str, group: Group, **changes: object) -> Optimization:
    """Returns an optimization that is switched on in a scenario by its id and cannot be answered on a capture."""

    def check(scenario: Scenario, parameters: Parameters) -> Applicability:
        return already_on("the job runs with it") if scenario.enabled(identifier) else applies("the job runs without")

    def check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
        return needs_twin("it is a sample")

    base = Optimization(
        id=identifier,
        title=f"Sample of {identifier}",
        group=group,
        summary="A sample.",
        parameters=(),
        switches=(Switch("torch_npu", "2.1 and newer", f"--{identifier}", "sample.md"),),
        on_scenario=switched_on(identifier),
        check_scenario=check,
        on_capture=capture_unchanged,
        check_capture=check_capture,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # any field of it


def sample_registry() -> Registry[Optimization]:
    """Returns fusions that gain, exchanges that need or exclude each other, and allocators."""
    overlap, parameters = "communication.overlap_gradients", "communication.overlap_parameters"
    chunks = Parameter("threshold", "Share of the limit", 0.8, minimum=0.0, maximum=1.0)
    return Registry(
        (
            sample_optimization("fusion.attention", Group.FUSION),
            sample_optimization("fusion.rms_norm", Group.FUSION),
            sample_optimization(overlap, Group.COMMUNICATION),
            sample_optimization(parameters, Group.COMMUNICATION, needs=(overlap,)),
            sample_optimization(
                "memory.expandable_segments",
                Group.MEMORY,
                conflicts=(Conflict("memory.max_split_size", "pages are mapped, so nothing is split"),),
            ),
            sample_optimization("memory.gc_threshold", Group.MEMORY, parameters=(chunks,)),
            sample_optimization("memory.max_split_size", Group.MEMORY),
            sample_optimization("memory.amc", Group.MEMORY, simulator_only=True),
        )
    )
