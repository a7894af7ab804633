"""The same job laid out otherwise: other group sizes, schedule, micro-batch or recomputation on the same devices."""

from dataclasses import replace
from typing import Any

from engine.core.errors import ScenarioError
from engine.workloads.scenario import Parallelism, Recompute, Scenario, Schedule, TensorMode
from engine.workloads.scenario_checks import check_scenario, nearest_values
from engine.workloads.scenario_keys import Table

LAYOUT = "parallel.layout"
_SIZES = ("tensor", "pipeline", "data", "expert", "context", "virtual_pipeline")


def with_layout(scenario: Scenario) -> Scenario:
    """Returns the scenario as its ``parallel.layout`` optimization lays it out. Raises ScenarioError."""
    if not scenario.enabled(LAYOUT):
        return scenario
    table = Table(f"optimizations.{LAYOUT}", scenario.optimizations[LAYOUT])
    sizes = {name: table.integer(name, 0, minimum=0) for name in (*_SIZES, "micro")}
    words = {name: table.text(name, "") for name in ("schedule", "tensor_mode", "recompute")}
    table.finish()
    rest = {name: values for name, values in scenario.optimizations.items() if name != LAYOUT}
    chosen: dict[str, Any] = {**sizes, **words}
    return relaid(replace(scenario, optimizations=rest), **chosen)


def relaid(
    scenario: Scenario,
    *,
    tensor: int = 0,
    pipeline: int = 0,
    data: int = 0,
    expert: int = 0,
    context: int = 0,
    virtual_pipeline: int = 0,
    schedule: str = "",
    micro: int = 0,
    tensor_mode: str = "",
    recompute: str = "",
) -> Scenario:
    """Returns a job of the same model, devices and sequences per step in another layout.

    Args:
        scenario: As it is.
        tensor: Devices that share every layer; 0, here and below, leaves it as it is.
        pipeline: Stages.
        data: Replicas; where it is not given, what the devices leave.
        expert: Devices that share the experts.
        context: Devices that share every sequence.
        virtual_pipeline: Model chunks per stage.
        schedule: ``gpipe``, ``1f1b`` or ``interleaved``; "" leaves it as it is, here and below.
        micro: Sequences of a micro-batch.
        tensor_mode: ``row_split`` or ``column_split``.
        recompute: ``none``, ``activation``, ``selective`` or ``full``.

    Raises:
        ScenarioError: The layout does not fit the devices, the model or the batch; it says what to change.
    """
    words = Table(LAYOUT, {"schedule": schedule, "tensor_mode": tensor_mode, "recompute": recompute})
    old = scenario.parallel
    layout = replace(
        old,
        tensor=tensor or old.tensor,
        pipeline=pipeline or old.pipeline,
        expert=expert or old.expert,
        context=context or old.context,
        virtual_pipeline=virtual_pipeline or old.virtual_pipeline,
    )
    if schedule:
        layout = replace(layout, schedule=words.choice("schedule", Schedule, layout.schedule))
    if tensor_mode:
        layout = replace(layout, tensor_mode=words.choice("tensor_mode", TensorMode, layout.tensor_mode))
    layout = replace(layout, data=data or _replicas(scenario.device_count, layout))
    changed = replace(scenario, parallel=layout)
    if micro:
        changed = replace(changed, batch=replace(changed.batch, micro=micro))
    if recompute:
        chosen = words.choice("recompute", Recompute, scenario.memory.recompute)
        changed = replace(changed, memory=replace(changed.memory, recompute=chosen))
    check_scenario(changed)
    return changed


def _replicas(device_count: int, layout: Parallelism) -> int:
    """Returns how many replicas of a layout the devices hold."""
    width = layout.tensor * layout.pipeline * layout.context
    if device_count % width:
        message = (
            f"{LAYOUT}: tensor {layout.tensor} × pipeline {layout.pipeline} × context {layout.context} is {width} "
            f"devices per replica, which do not divide device.count = {device_count}; "
        )
        fits = nearest_values(width, lambda item: device_count % item == 0, device_count)
        raise ScenarioError(f"{message}devices per replica, {fits}")
    return device_count // width
