"""Products in eight bits: operands are quantised right before them, sensitive layers stay wide."""

from dataclasses import replace

import numpy as np

from engine.core.arrays import AnyArray, Int32Array, Int64Array
from engine.core.number_format import format_count, format_duration_ns
from engine.devices.spec import DeviceSpec, DType
from engine.graph.task_graph import TaskKind
from engine.optimizations.answers import already_listed, applies, no_effect, switched_on, unknown
from engine.optimizations.graph_edits import edges_of, with_column, with_names, with_tasks
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
from engine.optimizations.precision.element_types import ElementType, element_types
from engine.optimizations.precision.mixed import product_ratio
from engine.optimizations.products import Products, products_of
from engine.runtime.cost import catalogue, operator_durations
from engine.workloads.precision import BITS, USUALLY_KEPT
from engine.workloads.scenario import Scenario

ID = "precision.quantized_training"
VOCABULARY = 30_000
"""No hidden or feed-forward width that is shared by a few products only is this large; vocabularies are."""
QUANTIZING, QUANTIZED_FAMILY = "DynamicQuant", "quant_matmul"
ASSUMPTION = (
    "a capture does not name layers: products over a vocabulary stay wide where keep names the head, all others are "
    "quantised; a weight's gradient reuses the operands its other products quantised"
)


def eight_bit_type(device: DeviceSpec) -> DType | None:
    """Returns the eight-bit type the device multiplies, None where it has none."""
    return next((dtype for dtype in (DType.FP8, DType.INT8) if device.supports(dtype)), None)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = _wrong_bits(parameters) or already_listed(scenario, ID)
    dtype = eight_bit_type(scenario.device)
    if settled is not None or dtype is None:
        return settled or no_effect(f"device {scenario.device.id} multiplies no eight-bit type")
    faster = scenario.device.cube_flop_per_s(dtype) / scenario.device.cube_flop_per_s(scenario.model.dtype)
    return applies(
        f"the device multiplies {dtype.name.lower()} {faster:.1f} times as fast as "
        f"{scenario.model.dtype.name.lower()}; accuracy is not quantifiable without weights"
    )


def _wrong_bits(parameters: Parameters) -> Applicability | None:
    bits = parameters["bits"]
    return None if bits == BITS else no_effect(f"products of {BITS} bits are what matrix units train with, not {bits}")


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    settled = _wrong_bits(parameters)
    if settled is not None:
        return settled
    device, graph = plan.device, plan.graph
    if device is None:
        return unknown("the capture names no known device, so products in eight bits cannot be priced")
    if eight_bit_type(device) is None:
        return no_effect(f"device {device.id} multiplies no eight-bit type")
    cubes = graph.kind == TaskKind.CUBE
    if not cubes.any():
        return no_effect("the capture shows no matrix products")
    chosen = _chosen(plan, parameters)
    if len(chosen) == 0:
        return _none_chosen(plan, int(cubes.sum()))
    return applies(
        f"{format_count(len(chosen))} of {format_count(int(cubes.sum()))} products "
        f"({format_duration_ns(int(graph.duration_ns[chosen.task].sum()))} over all ranks and steps) could multiply "
        "eight bits; accuracy is not quantifiable without weights"
    )


def _none_chosen(plan: CapturePlan, count: int) -> Applicability:
    found = products_of(plan.graph)
    if len(found) == 0 or not np.any(element_types(plan)[found.task] != ElementType.UNKNOWN):
        return unknown("no product tells shapes and types: record with shapes and at least level 1")
    return no_effect(f"none of {format_count(count)} products that may be narrow multiplies 16-bit operands")


def _chosen(plan: CapturePlan, parameters: Parameters) -> Products:
    """Returns the products that are quantised: of 16-bit operands, without those over a vocabulary where it is kept."""
    found = products_of(plan.graph)
    half = element_types(plan)[found.task] == ElementType.HALF
    kept = {word.strip() for word in str(parameters["keep"]).split(",")}
    widest = np.maximum(np.maximum(found.m, found.n), found.k)
    _, inverse, count = np.unique(widest, return_inverse=True, return_counts=True)
    over_vocabulary = (widest >= VOCABULARY) & (widest != found.tokens) & (count[inverse] * 10 < len(found))
    rows = half & ~(over_vocabulary & ("head" in kept))
    return Products(found.task[rows], found.m[rows], found.n[rows], found.k[rows], found.tokens)


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    """Returns the plan with quantised products and the kernels that quantise their operands.

    LOW quantises the operands of every product anew, EXPECTED lets gradients of weights reuse them, HIGH quantises
    weights only once (their kernels vanish where the optimizer could write them).
    """
    device = plan.device
    narrow = eight_bit_type(device) if device is not None else None
    if device is None or narrow is None:
        return plan
    graph, chosen = plan.graph, _chosen(plan, parameters)
    ratio = product_ratio(device, graph, chosen.task, DType.BF16, narrow, QUANTIZED_FAMILY)
    rewritten = with_column(graph, "duration_ns", chosen.task, graph.duration_ns[chosen.task] * ratio)
    anew = np.ones(len(chosen), dtype=np.bool_) if bound is Bound.LOW else ~chosen.makes_weight_gradient
    first_ns = _quantizing_ns(device, chosen.m[anew], chosen.k[anew])
    second_ns = _quantizing_ns(device, chosen.n[anew], chosen.k[anew])
    work_ns = first_ns if bound is Bound.HIGH else first_ns + second_ns
    named, (name,) = with_names(rewritten, (QUANTIZING,))
    task = chosen.task[anew]
    columns: dict[str, AnyArray | int] = {
        "name": int(name),
        "kind": int(TaskKind.VECTOR),
        "rank": graph.rank[task],
        "stream": graph.stream[task],
        "duration_ns": work_ns,
        "step": graph.step[task],
        "phase": graph.phase[task],
    }
    before, after = edges_of(graph)
    first = np.arange(len(graph), dtype=np.int32)
    first[task] = len(graph) + np.arange(len(task), dtype=np.int32)
    result, _ = with_tasks(named, columns, task, before, first[after])
    return replace(plan, graph=result, assumptions=(*plan.assumptions, ASSUMPTION))


def _quantizing_ns(device: DeviceSpec, rows: Int64Array | Int32Array, width: Int64Array) -> Int64Array:
    """Returns the time of quantising a 16-bit matrix with a scale per row, int64."""
    if len(rows) == 0:
        return np.empty(0, dtype=np.int64)
    sizes, inverse = np.unique(np.stack((rows, width)), axis=1, return_inverse=True)
    table = catalogue.vector_operator("dynamic_quant", sizes[0], sizes[1], DType.BF16, DType.BF16.size_bytes, 1)
    answer: Int64Array = operator_durations(device, table)[inverse.ravel()]
    return answer


QUANTIZED_TRAINING = Optimization(
    id=ID,
    title="Quantised training (products in eight bits)",
    group=Group.PRECISION,
    summary=(
        "Operands of products are quantised to eight bits right before them; embedding, head, norms and router stay "
        "wide. Time and memory are predicted, accuracy never is."
    ),
    parameters=(
        Parameter(
            "bits", "Bits of an operand", BITS, minimum=BITS, maximum=BITS, provenance="what matrix units train with"
        ),
        Parameter(
            "keep", "Parts of the model that stay wide", USUALLY_KEPT, provenance="what usual recipes leave wide"
        ),
    ),
    switches=(
        Switch(
            "op-plugin",
            "",
            "torch_npu.npu_dynamic_quant and torch_npu.npu_quant_matmul",
            "op-plugin docs/zh/custom_APIs/torch_npu",
            "operators, not a training recipe: scales and backward pass are the user's",
        ),
        Switch(
            "MindSpeed",
            "",
            "--quant-states fp8 (hif8, mxfp8)",
            "MindSpeed docs/zh/features/low-precision-optimizer.md",
            "states of the optimizer only; excludes --swap-optimizer",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="accuracy is not quantifiable without weights: compare losses over thousands of steps",
    undo="call the products without quantisation",
    verify="loss over some thousand steps beside step time; time of products and of quantising kernels",
    provenance="measured dynamic_quant and quant_matmul of runtime/cost; rates of devices/data",
)
