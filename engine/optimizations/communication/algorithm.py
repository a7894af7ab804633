"""Collectives exchange by a chosen algorithm instead of the one the library picks."""

from dataclasses import replace

import numpy as np

from engine.core.number_format import format_duration_ns, format_ratio
from engine.graph.collective_kinds import CollectiveKind
from engine.optimizations.answers import already_listed, already_on, applies, no_effect, switched_on, unknown
from engine.optimizations.communication.calls import Calls, calls_of
from engine.optimizations.communication.exposure import per_step
from engine.optimizations.communication.payload import whole_bytes
from engine.optimizations.communication.pricing import modelled_ns, plan_network
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
from engine.optimizations.recorded_job import environment, has_environment, is_gpu
from engine.runtime.collectives import Algorithm
from engine.workloads.scenario import Scenario

ID = "communication.algorithm"
AUTO = "auto"
_VARIABLE = "HCCL_ALGO"
_WORDS = {"ring": Algorithm.RING, "H-D_R": Algorithm.HALVING_DOUBLING, "fullmesh": Algorithm.MESH}
"""HCCL's words for what the model of links knows; its NHR, NB, AHC and pipeline have no formula here."""
_BETWEEN = (CollectiveKind.SEND, CollectiveKind.RECEIVE, CollectiveKind.SEND_RECEIVE, CollectiveKind.BARRIER)


def _check_scenario(scenario: Scenario, parameters: Parameters) -> Applicability:
    settled = already_listed(scenario, ID)
    if settled is None and scenario.device_count == 1:
        settled = no_effect("one device: nothing is exchanged")
    if settled is None and parameters["name"] == AUTO:
        settled = no_effect("the soonest algorithm is taken for every collective already")
    return settled or applies(f"collectives of {scenario.device_count} devices exchange by {parameters['name']} only")


def _recorded_algorithm(value: str) -> Algorithm | None:
    """Returns the algorithm between servers (or the only one) a value of HCCL_ALGO forces, None where not known."""
    words = [part.partition(":")[2] or part for part in value.split(";")]
    return next((_WORDS[word] for word in reversed(words) if word in _WORDS), None)


def _chosen(parameters: Parameters) -> Algorithm | None:
    return None if parameters["name"] == AUTO else Algorithm(str(parameters["name"]))


def _priced(plan: CapturePlan) -> Calls:
    calls = calls_of(plan.graph)
    known = calls.split & (calls.group >= 0) & (plan.graph.bytes[calls.task] > 0) & ~np.isin(calls.kind, _BETWEEN)
    return calls.select(known)


def _check_capture(plan: CapturePlan, parameters: Parameters) -> Applicability:
    calls = calls_of(plan.graph)
    if len(calls) == 0:
        return no_effect("the capture shows no collectives")
    value = environment(plan, _VARIABLE)
    current = _recorded_algorithm(value) if value else None
    if parameters["name"] == AUTO and not value:
        return _check_unset(plan)
    if value and current is None:
        return unknown(f"{_VARIABLE}={value} names no algorithm whose cost is known")
    if _chosen(parameters) is not None and _chosen(parameters) is current:
        return already_on(f"{_VARIABLE}={value}")
    if not calls.split.any():
        return unknown("no collective is split into waiting and transfer: open the peers' captures with this one")
    priced = _priced(plan)
    if plan.device is None or len(priced) == 0:
        return unknown("the capture names no known device or no payloads, so links and algorithms cannot be priced")
    return _compared(plan, priced, current, _chosen(parameters))


def _check_unset(plan: CapturePlan) -> Applicability:
    """Returns that no variable forces an algorithm, or that nothing says so."""
    if is_gpu(plan):
        return no_effect("the library picks the algorithm of every collective already")
    if not has_environment(plan):
        return unknown(f"the capture lists no environment variables, so whether {_VARIABLE} was set is not known")
    return no_effect(f"{_VARIABLE} is not set: the library picks the algorithm of every collective already")


def _compared(plan: CapturePlan, calls: Calls, current: Algorithm | None, chosen: Algorithm | None) -> Applicability:
    ratio, recorded_ns = _ratio(plan, calls, current, chosen), plan.graph.duration_ns[calls.task]
    change_ns = per_step(plan.graph, float((recorded_ns * (ratio - 1)).sum()))
    whole_ns = per_step(plan.graph, float(recorded_ns.sum()))
    if np.allclose(ratio, 1.0, atol=0.005):
        return no_effect(f"the model of the links gives the same {format_duration_ns(whole_ns)} per step either way")
    word = "longer" if change_ns > 0 else "shorter"
    return applies(
        f"{format_duration_ns(whole_ns)} of transfer per step would be {format_ratio(abs(change_ns) / whole_ns)} {word}"
    )


def _ratio(plan: CapturePlan, calls: Calls, current: Algorithm | None, chosen: Algorithm | None) -> np.ndarray:
    """Returns new over old time of each collective by the model of the links, float64, shape (calls,)."""
    network = plan_network(plan)
    if network is None:
        return np.ones(len(calls))
    size = whole_bytes(plan, calls)
    old_ns = modelled_ns(plan.graph, calls, network, size, current)
    new_ns = modelled_ns(plan.graph, calls, network, size, chosen)
    return np.where(old_ns > 0, new_ns / np.maximum(old_ns, 1), 1.0)


def _on_capture(plan: CapturePlan, parameters: Parameters, bound: Bound) -> CapturePlan:
    calls = _priced(plan)
    ratio = _ratio(plan, calls, _recorded_algorithm(environment(plan, _VARIABLE)), _chosen(parameters))
    if bound is Bound.LOW:
        ratio = np.maximum(ratio, 1.0)
    recorded_ns = plan.graph.duration_ns[calls.task]
    return replace(plan, graph=with_column(plan.graph, "duration_ns", calls.task, recorded_ns * ratio))


ALGORITHM = Optimization(
    id=ID,
    title="Algorithm of collectives",
    group=Group.COMMUNICATION,
    summary=(
        "Every collective exchanges by one algorithm (ring, mesh, halving-doubling, hierarchical); auto takes the "
        "soonest for each, as the libraries do unless they are told otherwise."
    ),
    parameters=(
        Parameter(
            "name", "Algorithm", AUTO, choices=(AUTO, *(item.value for item in Algorithm)), provenance="HCCL's own"
        ),
    ),
    switches=(
        Switch(
            "HCCL",
            "",
            "unset HCCL_ALGO",
            "hiascend HCCL environment variables",
            "lets HCCL choose by size and topology: what auto means",
        ),
        Switch(
            "HCCL",
            "",
            'export HCCL_ALGO="level0:NA;level1:H-D_R"',
            "hiascend HCCL environment variables",
            "level1 takes ring, H-D_R, NHR, NHR_V1, NB, AHC, pipeline or pairwise; disables the adaptive choice",
        ),
    ),
    on_scenario=switched_on(ID),
    check_scenario=_check_scenario,
    on_capture=_on_capture,
    check_capture=_check_capture,
    risk="a forced algorithm is slower for sizes it does not suit; sums may round in another order",
    undo="unset HCCL_ALGO",
    verify="transfer time of the largest collectives after 5 warm steps",
    provenance="α, β, γ of each link: runtime/collectives; HCCL publishes no size sweep, its fixed cost is inherited",
)
