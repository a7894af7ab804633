"""Parallel layout: other group sizes, schedule, micro-batch or recomputation; of a capture, layers between stages."""

from dataclasses import replace
from typing import Any

from engine.core.errors import ScenarioError
from engine.core.number_format import format_duration_ns
from engine.optimizations.answers import already_on, applies, needs_twin, no_effect, unknown
from engine.optimizations.interface import (
    Applicability,
    Bound,
    CapturePlan,
    Group,
    Optimization,
    Parameter,
    Parameters,
    Switch,
)
from engine.optimizations.parallel.stage_layers import Stage, recorded_stages, shifted
from engine.workloads.relayout import relaid
from engine.workloads.scenario import Recompute, Scenario, Schedule, TensorMode

ID = "parallel.layout"
SHIFT = "stage_shift"
_SIZES = {
    "tensor": "Devices that share every layer",
    "pipeline": "Pipeline stages",
    "data": "Replicas",
    "expert": "Devices that share the experts",
    "context": "Devices that share every sequence",
    "virtual_pipeline": "Model chunks per stage",
    "micro": "Sequences of a micro-batch",
}
_WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "schedule": ("Order of micro-batches", tuple(item.value for item in Schedule)),
    "tensor_mode": ("Dimension of a block's first matrix that is cut", tuple(item.value for item in TensorMode)),
    "recompute": ("Activations computed twice", tuple(item.value for item in Recompute)),
}
ASSUMPTION = (
    "a layer takes the same time on every stage; what is sent between stages and what memory holds stay as recorded"
)


def _layout(parameters: Parameters) -> dict[str, Any]:
    """Returns the parameters that change the layout: those that are not 0 or empty."""
    return {name: parameters[name] for name in (*_SIZES, *_WORDS) if parameters[name]}


def _on_scenario(scenario: Scenario, parameters: Parameters) -> Scenario:
    return relaid(scenario, **_layout(parameters))


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    if int(parameters[SHIFT]):
        return no_effect("layers are moved between stages of captures only; a simulated job has equal stages")
    if not _layout(parameters):
        return no_effect("no size, schedule or recomputation is given, so the layout stays as it is")
    try:
        changed = relaid(scenario, **_layout(parameters))
    except ScenarioError as error:
        return unknown(str(error))
    if changed == scenario:
        return already_on("the job has this layout")
    return applies(f"{_described(scenario)} becomes {_described(changed)}")


def _described(scenario: Scenario) -> str:
    layout = scenario.parallel
    sizes = f"DP {layout.data} × TP {layout.tensor} × PP {layout.pipeline}"
    more = "".join(f" × {word} {size}" for word, size in (("CP", layout.context), ("EP", layout.expert)) if size > 1)
    return f"{sizes}{more}, micro-batch {scenario.batch.micro}, {layout.schedule.value}"


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    changes = _layout(parameters)
    if changes:
        return needs_twin(f"{' and '.join(sorted(changes))} change shapes and transfers that were never recorded")
    stages = recorded_stages(plan)
    if len(stages) < 2:
        return needs_twin(
            "the capture shows the kernels of fewer than two pipeline stages, so none can hand layers over"
        )
    slow, fast = _extremes(stages)
    share = slow.computing_ns / max(fast.computing_ns, 1.0) - 1
    told = (
        f"stage {slow.number} computes {format_duration_ns(slow.computing_ns)} per step, stage {fast.number} "
        f"{format_duration_ns(fast.computing_ns)}"
    )
    if not slow.layers or not fast.layers:
        return needs_twin(f"{told}, but no stack of equal layers is found in their kernels")
    best = best_shift(slow, fast)
    if best == 0:
        return no_effect(
            f"{told} ({share:.0%} more): half a layer of {format_duration_ns(slow.layer_ns)} apart at most"
        )
    shift = int(parameters[SHIFT]) or best
    if shift >= slow.layers:
        return unknown(f"stage {slow.number} has {slow.layers} layers, of which {shift} cannot move")
    word = "layer" if shift == 1 else "layers"
    return applies(
        f"{told}; {shift} {word} of {format_duration_ns(slow.layer_ns)} from stage {slow.number} to stage {fast.number}"
    )


def _extremes(stages: tuple[Stage, ...]) -> tuple[Stage, Stage]:
    """Returns the stage that computes longest and the one that computes shortest."""
    return max(stages, key=lambda item: item.computing_ns), min(stages, key=lambda item: item.computing_ns)


def best_shift(slow: Stage, fast: Stage) -> int:
    """Returns how many layers even two stages out best; at least one layer stays."""
    apart_ns = slow.computing_ns - fast.computing_ns
    return min(round(apart_ns / max(slow.layer_ns + fast.layer_ns, 1.0)), slow.layers - 1)


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    """Returns the plan with layers moved; LOW moves half of them: not all layers are alike."""
    slow, fast = _extremes(recorded_stages(plan))
    layers: float = int(parameters[SHIFT]) or best_shift(slow, fast)
    if bound is Bound.LOW:
        layers /= 2
    graph = shifted(plan.graph, slow, fast, layers)
    return replace(plan, graph=graph, assumptions=(*plan.assumptions, ASSUMPTION))


LAYOUT = Optimization(
    id=ID,
    title="Parallel layout",
    group=Group.PARALLEL,
    summary=(
        "The same job on the same devices in another layout: group sizes, schedule, micro-batch, recomputation. Of a "
        "capture only layers can be moved between pipeline stages; everything else needs a simulated twin."
    ),
    parameters=(
        *(Parameter(name, f"{title} (0: as it is)", 0, minimum=0) for name, title in _SIZES.items()),
        *(
            Parameter(name, f"{title} (empty: as it is)", "", choices=("", *choices))
            for name, (title, choices) in _WORDS.items()
        ),
        Parameter(
            SHIFT,
            "Layers moved from the slowest to the fastest stage of a capture (0: as many as even them out)",
            0,
            minimum=0,
        ),
    ),
    switches=(
        Switch(
            "MindSpeed / Megatron-LM",
            "",
            "--tensor-model-parallel-size N --pipeline-model-parallel-size N --context-parallel-size N "
            "--expert-model-parallel-size N --micro-batch-size N",
            "Megatron-LM megatron/training/arguments.py",
            "data parallelism is what the devices leave; layers must divide by stages",
        ),
        Switch(
            "MindSpeed",
            "",
            "--num-layers-per-virtual-pipeline-stage N",
            "MindSpeed docs/zh/features/automated-pipeline.md",
            "interleaved schedule; layers must divide",
        ),
        Switch(
            "MindSpeed",
            "",
            "--automated-pipeline",
            "MindSpeed docs/zh/features/automated-pipeline.md",
            "lets MindSpeed choose the layers of each stage: how layers move between stages",
        ),
    ),
    on_scenario=_on_scenario,
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="checkpoints have to be converted to the new layout; memory moves with the layers",
    undo="the old sizes, with a converted checkpoint",
    verify="computing per stage, bubbles and step time after 5 warm steps; peak memory of every stage",
    provenance="simulated jobs are lowered anew; of a capture, recorded times of layers are scaled",
)
