"""Mixed precision: products and most kernels in 16 bits, master weights and sensitive kernels in fp32."""

import re
from dataclasses import replace

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int32Array
from engine.core.number_format import format_count, format_duration_ns
from engine.devices.spec import DeviceSpec, DType
from engine.graph.task_graph import TaskGraph, TaskKind
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.graph_edits import with_column
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
from engine.optimizations.kernel_types import kernel_type
from engine.optimizations.precision.element_types import ElementType, element_types
from engine.optimizations.products import products_of
from engine.runtime.cost import catalogue, matmul, operator_durations
from engine.workloads.scenario import Scenario

ID = "precision.mixed"
_DTYPES = {"bf16": DType.BF16, "fp16": DType.FP16}
_STAYS_WIDE = re.compile(
    r"^Apply|Adam|LpNorm|[Mm]omentum|[Ss]oftmax|[Nn]orm|Reduce|Loss|NLL|Cast|^Exp|^Log|Pow|Sqrt|multi_tensor|ZerosLike",
    re.ASCII,
)
"""What usual recipes of mixed precision keep in fp32: optimizer, norms, softmax, sums, loss, casts, main gradients."""
HALF_TRAFFIC = 0.5
"""16 bits are half of 32: so much of its time a kernel bound by memory takes then."""
ASSUMPTION = (
    "products by the device model in both types where shapes are told, else half their time as half their bytes; "
    "other kernels outside optimizer, norms, softmax and loss take half their time"
)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = already_listed(scenario, ID)
    dtype = _DTYPES[str(parameters["dtype"])]
    if settled is None and scenario.model.dtype is dtype:
        settled = already_on(f"the model computes in {dtype.name.lower()}")
    if settled is None and not scenario.device.supports(dtype):
        settled = no_effect(f'device {scenario.device.id} does not multiply {dtype.name.lower()}; use dtype = "fp16"')
    if settled is not None:
        return settled
    new, old = (scenario.device.cube_flop_per_s(item) for item in (dtype, scenario.model.dtype))
    return applies(
        f"the device multiplies {dtype.name.lower()} {new / old:.1f} times as fast as "
        f"{scenario.model.dtype.name.lower()}, in half the bytes"
        if scenario.model.dtype is DType.FP32
        else f"weights and activations change from {scenario.model.dtype.name.lower()} to {dtype.name.lower()}"
    )


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    graph, types = plan.graph, element_types(plan)
    cubes = graph.kind == TaskKind.CUBE
    if not cubes.any():
        return no_effect("the capture shows no matrix products")
    if plan.device is None:
        return unknown("the capture names no known device, so products in another type cannot be priced")
    dtype = _DTYPES[str(parameters["dtype"])]
    if not plan.device.supports(dtype):
        return no_effect(f"device {plan.device.id} does not multiply {dtype.name.lower()}")
    if not np.any(types[cubes] != ElementType.UNKNOWN):
        return unknown("the capture does not tell element types: record with shapes and at least level 1")
    wide = cubes & (types == ElementType.FULL)
    if not wide.any():
        return already_on(f"none of {format_count(int(cubes.sum()))} products multiplies fp32")
    total_ns = int(graph.duration_ns[wide].sum())
    return applies(
        f"{format_count(int(wide.sum()))} of {format_count(int(cubes.sum()))} products multiply fp32 "
        f"({format_duration_ns(total_ns)} over all ranks and steps); accuracy is not quantifiable without weights"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    graph, device = plan.graph, plan.device
    if device is None:
        return plan
    types = element_types(plan)
    wide = np.flatnonzero((graph.kind == TaskKind.CUBE) & (types == ElementType.FULL)).astype(np.int32)
    ratio = product_ratio(device, graph, wide, DType.FP32, _DTYPES[str(parameters["dtype"])])
    duration_ns = graph.duration_ns * 1.0
    duration_ns[wide] *= ratio
    if bound is Bound.LOW:
        duration_ns[wide] = np.minimum(duration_ns[wide] + _cast_ns(device, graph, wide), graph.duration_ns[wide])
    else:
        others = np.flatnonzero(_narrowed(graph, bound) & (types == ElementType.FULL))
        duration_ns[others] *= HALF_TRAFFIC
    if bound is Bound.EXPECTED:
        duration_ns[wide] += _weight_cast_ns(device, graph, wide)
    rewritten = with_column(graph, "duration_ns", np.arange(len(graph)), duration_ns)
    return replace(plan, graph=rewritten, assumptions=(*plan.assumptions, ASSUMPTION))


def _cast_ns(device: DeviceSpec, graph: TaskGraph, task: Int32Array) -> Float64Array:
    """Returns the time of casting both operands before each product, as automatic casting does; 0 without shapes."""
    found = products_of(graph, task)
    cast_ns = np.zeros(len(task))
    elements = found.m * found.k + found.k * found.n
    if len(found):
        prices = operator_durations(device, catalogue.cast(elements, DType.FP32, DType.BF16))
        cast_ns[np.searchsorted(task, found.task)] = prices
    return cast_ns


def _weight_cast_ns(device: DeviceSpec, graph: TaskGraph, task: Int32Array) -> Float64Array:
    """Returns the time of writing each weight's 16-bit copy from its fp32 master, beside the product of its gradient.

    With several micro-batches per step a weight has several such products and one cast: then this is too much.
    """
    found = products_of(graph, task)
    cast_ns = np.zeros(len(task))
    chosen = np.flatnonzero(found.makes_weight_gradient)
    if len(chosen):
        prices = operator_durations(device, catalogue.cast(found.m[chosen] * found.n[chosen], DType.FP32, DType.BF16))
        cast_ns[np.searchsorted(task, found.task[chosen])] = prices
    return cast_ns


def _narrowed(graph: TaskGraph, bound: Bound) -> BoolArray:
    """Returns which other kernels compute in 16 bits too; HIGH leaves only the optimizer's wide."""
    names, inverse = np.unique(graph.name, return_inverse=True)
    texts = [kernel_type(graph.strings.text(int(name))) for name in names]
    pattern = re.compile(r"^Apply|Adam|LpNorm|[Mm]omentum|multi_tensor|Cast") if bound is Bound.HIGH else _STAYS_WIDE
    stays = np.array([pattern.search(text) is not None for text in texts], dtype=np.bool_)
    answer: BoolArray = np.isin(graph.kind, (TaskKind.VECTOR, TaskKind.MIX)) & ~stays[inverse]
    return answer


def product_ratio(
    device: DeviceSpec, graph: TaskGraph, task: Int32Array, old: DType, new: DType, family: str = "matmul"
) -> Float64Array:
    """Returns time in one type over time in another of products, float64, shape (tasks chosen,), at most 1.

    Where shapes are told it is the device model's; else the bytes', which is the smaller change of the two on devices
    whose matrix unit gains more than the bytes.
    """
    ratio = np.full(len(task), new.size_bytes / old.size_bytes)
    found = products_of(graph, task)
    if len(found):
        sizes, inverse = np.unique(np.stack((found.m, found.n, found.k)), axis=1, return_inverse=True)
        old_ns = operator_durations(device, matmul(sizes[0], sizes[1], sizes[2], old))
        new_ns = operator_durations(device, matmul(sizes[0], sizes[1], sizes[2], new, family=family))
        ratio[np.searchsorted(task, found.task)] = (new_ns / np.maximum(old_ns, 1))[inverse.ravel()]
    answer: Float64Array = np.minimum(ratio, 1.0)
    return answer


MIXED = Optimization(
    id=ID,
    title="Mixed precision",
    group=Group.PRECISION,
    summary="Weights and activations in 16 bits beside fp32 master weights; optimizer, norms and loss stay in fp32.",
    parameters=(
        Parameter("dtype", "Element type", "bf16", choices=tuple(_DTYPES), provenance="bf16 needs no loss scaling"),
    ),
    switches=(
        Switch(
            "MindSpeed / Megatron-LM",
            "",
            "--bf16",
            "Megatron-LM megatron/training/arguments.py",
            "or --fp16 with loss scaling",
        ),
        Switch(
            "PyTorch",
            "torch_npu 2.x",
            'with torch.autocast(device_type="npu", dtype=torch.bfloat16):',
            "PyTorch torch.amp",
            "fp16 needs torch_npu.npu.amp.GradScaler",
        ),
        Switch(
            "PyTorch",
            "",
            'with torch.autocast(device_type="cuda", dtype=torch.bfloat16):',
            "PyTorch torch.amp",
            "fp16 needs torch.amp.GradScaler",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="accuracy is not quantifiable without weights; fp16 can overflow without loss scaling",
    undo="remove the flag",
    verify="loss over some thousand steps beside step time; time of products after 5 warm steps",
    provenance="rates of the device per type: runtime/cost and devices/data",
)
