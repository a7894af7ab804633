"""A fused kernel of one's own, priced from a small file; in simulated mixtures of experts, fused token routing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.analyses.fusion.occurrences import prepared
from engine.analyses.fusion.own_patterns import own_pattern_places
from engine.core.errors import EngineError
from engine.core.number_format import format_duration_ns
from engine.graph.task_graph import TaskKind
from engine.optimizations.answers import applies, no_effect, switched_on, unknown
from engine.optimizations.fusion.custom_file import CustomKernel, read_custom_kernel
from engine.optimizations.fusion.custom_price import CustomPrice, custom_price
from engine.optimizations.fusion.kernel_shapes import bytes_at_ends, kernel_shape
from engine.optimizations.fusion.pattern_fusion import fused_plan
from engine.optimizations.fusion.places import MODEL_SPREAD_RATIO, RankPlaces, members_of_places
from engine.optimizations.fusion.rewriting import fusable
from engine.optimizations.fusion.scenario_answers import fusion_check, layer_passes, shipped_on_cuda
from engine.optimizations.fusion.task_groups import TaskGroups, joined_groups
from engine.optimizations.fusion.task_lookup import groups_of
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
from engine.trace.trace import Trace
from engine.workloads.scenario import Scenario

ID = "fusion.custom"
FILE = "pattern"


def _no_experts(scenario: Scenario) -> Applicability | None:
    return None if scenario.model.experts else no_effect("the model has no experts whose tokens are routed")


_check_routing = fusion_check(
    ID,
    lambda scenario: f"{4 * layer_passes(scenario):,} gathers and scatters per step expand an index to every element",
    shipped_on_cuda("route tokens to experts in one"),
    _no_experts,
)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    if parameters.get(FILE):
        return unknown("a pattern is matched on kernels: simulate with -o, then ask the recorded capture")
    return _check_routing(scenario, parameters)


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    if not parameters[FILE]:
        return unknown(f"name the file that describes your kernel: {ID}:{FILE}=FILE.toml")
    try:
        kernel = read_custom_kernel(Path(str(parameters[FILE])))
    except EngineError as error:
        return unknown(str(error))
    if plan.device is None:
        return unknown("the capture names no device whose rates are known, so the kernel cannot be priced")
    found = list(_priced(plan, kernel))
    if not found:
        return no_effect(f"{' → '.join(kernel.kernels)} does not occur, or has no shapes to price it by")
    groups = joined_groups([_groups(plan, item.places, Bound.EXPECTED) for item in found])
    done = fusable(plan.graph, groups)
    if not np.any(done):
        return no_effect(f"{len(groups):,} places of {kernel.title}, none of which can be one kernel")
    return applies(_reason(plan, kernel, groups.select(done), [price for item in found for price in item.prices]))


def _reason(plan: CapturePlan, kernel: CustomKernel, groups: TaskGroups, prices: list[CustomPrice]) -> str:
    busy_ns, fused_ns = int(plan.graph.duration_ns[groups.tasks].sum()), int(groups.duration_ns.sum())
    units = {
        "vector instructions": sum(price.vector_ns for price in prices),
        "matrix unit": sum(price.cube_ns for price in prices),
        "memory": sum(price.memory_ns for price in prices),
    }
    bound = max(units, key=lambda name: units[name])
    shares = ", ".join(f"{name} {format_duration_ns(round(value))}" for name, value in units.items())
    slower = fused_ns > busy_ns
    verdict = f"slower, bound by {bound}" if slower else f"bound by {bound}"
    return (
        f"{len(groups):,} places of {len(groups.tasks):,} kernels take {format_duration_ns(busy_ns)}; {kernel.title} "
        f"would take {format_duration_ns(fused_ns)}, {verdict} ({shares})"
    )


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    kernel = read_custom_kernel(Path(str(parameters[FILE])))
    found = list(_priced(plan, kernel))
    groups = joined_groups([_groups(plan, item.places, bound) for item in found]) if found else None
    if groups is None or not len(groups):
        return plan
    note = f"{ID}: {kernel.title} is priced at {kernel.efficiency_ratio:.0%} of the units' peak rates"
    unpriced = sum(item.unpriced_count for item in found)
    notes = (note, f"{ID}: {unpriced} places without shapes stay as they are") if unpriced else (note,)
    return fused_plan(plan, groups, bound, notes)


@dataclass(frozen=True, slots=True, eq=False)
class _PricedPlaces:
    """Places of one rank with the price of the kernel at each, and how many have no shapes to price it by."""

    places: RankPlaces
    prices: list[CustomPrice]
    unpriced_count: int


def _groups(plan: CapturePlan, places: RankPlaces, bound: Bound) -> TaskGroups:
    return groups_of(plan.graph, places, places.found.pattern.title, TaskKind.MIX, bound)


def _priced(plan: CapturePlan, kernel: CustomKernel) -> Iterator[_PricedPlaces]:
    """Yields the places of every rank whose kernel can be priced; a Python step per place."""
    for entry in plan.capture.job.ranks:
        found = _rank_places(plan, kernel, entry.rank, entry.trace)
        if found is not None and found.prices:
            yield found


def _rank_places(plan: CapturePlan, kernel: CustomKernel, rank: int, trace: Trace) -> _PricedPlaces | None:
    found, device = own_pattern_places(prepared(trace), kernel.kernels, kernel.title), plan.device
    if found is None or device is None:
        return None
    prices, known = [], np.zeros(len(found), dtype=np.bool_)
    for index, members in enumerate(members_of_places(found)):
        events = found.events[members].tolist()
        chain = [kernel_shape(trace, event, word) for event, word in zip(events, found.words[members], strict=True)]
        price = custom_price(kernel, chain, bytes_at_ends(trace, events[0], events[-1]), device)
        if price is not None:
            known[index] = True
            prices.append(price)
    has_types = bool(np.any(trace.kernels.input_types >= 0))
    expected = np.array([price.total_ns for price in prices])
    fixed = np.array([price.fixed_ns for price in prices])
    at_peak = fixed + (expected - fixed) * kernel.efficiency_ratio
    worst = expected * (1 + MODEL_SPREAD_RATIO)
    places = RankPlaces(rank, found.select(known), at_peak, expected, worst, len(prices), has_types)
    return _PricedPlaces(places, prices, len(found) - len(prices))


CUSTOM = Optimization(
    id=ID,
    title="A fused kernel of your own",
    group=Group.FUSION,
    summary=(
        "Prices a kernel you describe in a file where its chain occurs: vector instructions against the matrix unit "
        "against memory. In simulated mixtures of experts it routes tokens with fused kernels."
    ),
    parameters=(Parameter(FILE, "TOML file that describes the kernel (empty: token routing of experts)", ""),),
    switches=(
        Switch(
            "torch_npu",
            "A2, A3",
            "export TORCH_NPU_LAZY_FUSION=True",
            "Ascend/pytorch docs/zh/api/environment_variable/performance_tuning",
            "fuses chains of element-wise operators in eager mode (DVM); needs TASK_QUEUE_ENABLE 1 or 2",
        ),
        Switch(
            "MindSpeed",
            "",
            "--moe-permute-fusion",
            "MindSpeed docs/zh/features/megatron_moe",
            "routing of experts' tokens",
        ),
        Switch("Ascend C", "", "an operator kernel of your own, called through aclnn", "Ascend C operator development"),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="the price is that of peak rates times the stated efficiency; the kernel has to be written",
    undo="call the single operators again",
    verify="time of the kernel against the chain's, after 5 warm steps",
    provenance="rates of the device's data file; what any kernel takes is fitted to measured ones",
)
