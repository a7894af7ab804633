"""Toggles on recorded simulated jobs beside the same jobs simulated with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.registry import Registry
from engine.graph.checks import topological_order
from engine.optimizations.catalogue import optimization_registry
from engine.optimizations.interface import Applicability, Bound, CapturePlan, Optimization, ParameterValue, Verdict
from engine.replay.capture_graph import CaptureGraph
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.workloads.scenario import Scenario
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import SimulatedRecording, recorded

FUSED = {f"fusion.{name}": {} for name in ("attention", "rms_norm", "swiglu", "rope", "optimizer")}
MODEL = {"layers": 4, "hidden": 2048, "ffn": 5632, "heads": 16, "vocab": 32000, "gated": True, "dtype": "bf16"}
JOBS: dict[str, dict[str, Any]] = {
    "replicas": {
        "device": {"count": 4},
        "parallel": {"data": 4},
        "batch": {"micro": 1, "global": 4, "sequence_length": 2048},
    },
    "tensors": {
        "device": {"count": 4},
        "parallel": {"tensor": 4},
        "batch": {"micro": 1, "global": 2, "sequence_length": 4096},
    },
    "tensors and replicas": {
        "device": {"count": 4},
        "parallel": {"tensor": 2, "data": 2},
        "batch": {"micro": 1, "global": 4, "sequence_length": 4096},
    },
    "stages": {
        "device": {"count": 4},
        "parallel": {"pipeline": 2, "data": 2},
        "batch": {"micro": 1, "global": 8, "sequence_length": 2048},
    },
    "alone": {"device": {"count": 1}, "batch": {"micro": 1, "global": 2, "sequence_length": 4096}},
    "host-bound": {
        "model": {"layers": 12, "hidden": 512, "ffn": 1536, "heads": 8, "vocab": 2048},
        "device": {"count": 1},
        "batch": {"micro": 1, "global": 2, "sequence_length": 512},
    },
}


@lru_cache(maxsize=1)
def _registry() -> Registry[Optimization]:
    return optimization_registry()


def toggle(identifier: str) -> Optimization:
    """Returns an optimization of the catalogue."""
    return _registry()[identifier]


@lru_cache(maxsize=32)
def job(name: str, base_on: tuple[str, ...] = ()) -> Scenario:
    """Returns one of the jobs, with optimizations switched on at their defaults."""
    tables = {"model": MODEL, "device": {"preset": "910b2"}, "optimizations": FUSED}
    for key, values in JOBS[name].items():
        tables[key] = {**tables.get(key, {}), **values}
    scenario = scenario_from_document({"name": name, **tables}, Path())
    for identifier in base_on:
        scenario = toggle(identifier).on_scenario(scenario, toggle(identifier).defaults)
    return scenario


@lru_cache(maxsize=32)
def recording(name: str, base_on: tuple[str, ...] = ()) -> tuple[SimulatedRecording, CaptureGraph]:
    """Returns a job as a profiler saw it, and its tasks."""
    found = recorded(job(name, base_on))
    return found, capture_graph(found.job)


def plan_of(name: str, base_on: tuple[str, ...] = ()) -> CapturePlan:
    """Returns the recording as a plan nothing was done to."""
    capture = recording(name, base_on)[1]
    return CapturePlan(capture, capture.graph, job(name, base_on).device)


def step_ns(plan: CapturePlan) -> float:
    """Returns the mean replayed step of a plan, which must finish and hold no circle."""
    topological_order(plan.graph)
    replayed = replay_time(plan.capture, plan.graph)
    assert replayed.schedule.is_complete
    return float(replayed.step_ns.mean())


@dataclass(frozen=True, slots=True)
class Loop:
    """A toggle on a recording and in the simulation.

    Attributes:
        base_ns: Replayed step as recorded.
        predicted_ns: By bound, replayed steps with the toggle.
        simulated_ns: Step of the job simulated with it.
        answer: What the toggle says of the recording.
    """

    base_ns: float
    predicted_ns: Mapping[Bound, float]
    simulated_ns: float
    answer: Applicability

    @property
    def error_ratio(self) -> float:
        """Of the expected prediction."""
        return self.predicted_ns[Bound.EXPECTED] / self.simulated_ns - 1


def closed_loop(
    identifier: str, name: str, parameters: Mapping[str, ParameterValue] | None = None, base_on: tuple[str, ...] = ()
) -> Loop:
    """Returns what a toggle does to a recorded job beside what it does to the simulated one."""
    item, plan = toggle(identifier), plan_of(name, base_on)
    chosen = {**item.defaults, **(parameters or {})}
    answer = item.check_capture(plan, chosen)
    applies = answer.verdict is Verdict.APPLIES
    predicted = {bound: step_ns(item.on_capture(plan, chosen, bound) if applies else plan) for bound in Bound}
    simulated = recorded(item.on_scenario(job(name, base_on), chosen)).step_ns
    return Loop(step_ns(plan), predicted, simulated, answer)
