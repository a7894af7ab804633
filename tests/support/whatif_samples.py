"""What-ifs, advice and catalogues that tests draw instead of computing."""

import numpy as np

from engine.advisor.findings import Category, Evidence, Finding, Severity, Unit
from engine.advisor.losses import Loss
from engine.advisor.recommendations import GainMethod, PredictedGain, Recommendation
from engine.analyses.fusion import Range3
from engine.core.registry import Registry
from engine.optimizations.answers import applies, capture_unchanged, switched_on
from engine.optimizations.interface import Applicability, Conflict, Group, Optimization, Parameter, Switch, Verdict
from engine.whatif.results import Contribution, Gain, Side, WhatIf
from engine.workloads.results import RunStatus
from profiler_gui.session.advising import Advised

GIB = 1 << 30


def optimization(identifier: str, group: Group = Group.FUSION, **fields) -> Optimization:
    """Returns an optimization that applies to everything and is switched on by one line."""
    given = {
        "title": f"The {identifier}",
        "summary": f"What {identifier} changes.",
        "parameters": (),
        "switches": (Switch("torch_npu", "2.1 and later", f"set {identifier}", "docs/page.md"),),
        "check_scenario": lambda scenario, parameters: applies("it is a sample"),
        "check_capture": lambda plan, parameters: applies("it is a sample"),
    } | fields
    return Optimization(
        id=identifier, group=group, on_scenario=switched_on(identifier), on_capture=capture_unchanged, **given
    )


def sample_registry() -> Registry[Optimization]:
    """Returns a small catalogue with every kind of parameter, a conflict, a need, and a term of the simulator."""
    return Registry(
        (
            optimization("fusion.attention"),
            optimization(
                "communication.chunking",
                Group.COMMUNICATION,
                parameters=(
                    Parameter("chunks", "Chunks", 4, minimum=2, maximum=64, provenance="a table"),
                    Parameter("share", "Share (ratio)", 0.5, minimum=0.0, maximum=1.0),
                    Parameter("exact", "Exact", default=True),
                    Parameter("algorithm", "Algorithm", "ring", choices=("ring", "mesh")),
                    Parameter("label", "Label", ""),
                ),
            ),
            optimization("memory.expandable_segments", Group.MEMORY),
            optimization(
                "memory.max_split_size",
                Group.MEMORY,
                conflicts=(
                    Conflict("memory.expandable_segments", "one segment has no limit of splits"),
                    Conflict("environment:ALLOC=expandable", "the job has it on"),
                ),
            ),
            optimization("memory.amc", Group.MEMORY, simulator_only=True, switches=()),
            optimization("memory.offload", Group.MEMORY, needs=("memory.amc",)),
        )
    )


def sample_applicability() -> dict[str, Applicability]:
    """Returns one answer of each kind."""
    return {
        "fusion.attention": Applicability(Verdict.APPLIES, "24 attention cores run in single operators"),
        "communication.chunking": Applicability(Verdict.NO_EFFECT, "no communication is exposed"),
        "memory.expandable_segments": Applicability(Verdict.ALREADY_ON, "PYTORCH_NPU_ALLOC_CONF says so"),
        "memory.max_split_size": Applicability(Verdict.APPLIES, "holes of 2.1 GiB are split"),
        "memory.amc": Applicability(Verdict.NEEDS_TWIN, "a capture has no live blocks to move"),
        "memory.offload": Applicability(Verdict.UNKNOWN, "no memory was recorded"),
    }


def sample_side(step_ms: float = 812.0, reserved_gib: float = 20.0, **fields) -> Side:
    """Returns one of the two runs of a job of two ranks."""
    given = {
        "status": RunStatus.DONE,
        "step_ns": np.array([step_ms * 1e6] * 3, np.int64),
        "tokens_per_s": 32_768 / (step_ms / 1e3),
        "device_count": 2,
        "peak_allocated_bytes": {0: 12 * GIB, 1: 11 * GIB},
        "peak_reserved_bytes": {0: int(reserved_gib * GIB), 1: int(reserved_gib * GIB) - GIB},
        "stranded_bytes": {0: 3 * GIB, 1: 2 * GIB},
        "operator_ns": {"MatMulV3": 400_000_000, "SoftmaxV2": 90_000_000},
        "communication_share_ratio": 0.13,
        "bubble_ratio": 0.05,
        "record": lambda progress, cancel: None,
    } | fields
    return Side(**given)


def sample_whatif(*identifiers: str, gain_ms: float = 71.0, **fields) -> WhatIf:
    """Returns what a few optimizations give together; each but the last gives 30 ms."""
    baseline = sample_side()
    operators = {"MatMulV3": 390_000_000, "FlashAttentionScore": 20_000_000}
    candidate = sample_side(812.0 - gain_ms, 15.9, operator_ns=operators, stranded_bytes={0: GIB, 1: GIB})
    marginal = [30e6] * (len(identifiers) - 1) + [gain_ms * 1e6 - 30e6 * (len(identifiers) - 1)]
    given = {
        "name": "sample",
        "baseline": baseline,
        "candidate": candidate,
        "enabled": (),
        "applicability": {key: Applicability(Verdict.APPLIES, "it is a sample") for key in identifiers},
        "refused": (),
        "gain": Gain(gain_ms * 0.8e6, gain_ms * 1e6, gain_ms * 1.2e6),
        "contributions": tuple(
            Contribution(key, value, value * 1.1) for key, value in zip(identifiers, marginal, strict=True)
        ),
        "inferred_share_ratio": 0.12,
        "replay_error_ratio": 0.021,
        "assumptions": ("fused kernels run at the bandwidth of the slowest input",),
        "devices_for_equal_throughput": 2,
    } | fields
    return WhatIf(**given)


def sample_finding(**fields) -> Finding:
    """Returns a loss of 100 ms that shows in one event of rank 0."""
    given = {
        "rule": "fusion.unfused",
        "category": Category.FUSION,
        "problem": "cross-entropy runs unfused: 100.1 ms per step",
        "root_cause": "eight operators walk over the logits",
        "cost_ns": 100e6,
        "share_ratio": 0.12,
        "severity": Severity.HIGH,
        "evidence": (Evidence("kernels", 48, Unit.COUNT, rank=0, events=(1,), how="counted"),),
    } | fields
    return Finding(**given)


def sample_recommendation(identifier: str = "fusion.attention", **fields) -> Recommendation:
    """Returns a recommendation whose gain was rerun."""
    time_ns = Range3(36e6, 48e6, 62e6)
    given = {
        "id": identifier,
        "title": f"Do {identifier}",
        "category": Category.FUSION,
        "severity": Severity.HIGH,
        "findings": (sample_finding(),),
        "loss": Loss("waiting for stage 2", "waiting for stage 2: 316 ms", 316e6),
        "optimization": identifier,
        "needs": (),
        "parameters": {},
        "gain": PredictedGain(time_ns, Range3(0.045, 0.059, 0.077), None, GainMethod.RERUN, ("priced by bytes",)),
        "how_to_apply": (Switch("torch_npu", "2.1", f"set {identifier}", "docs/page.md", "a note <b>"),),
        "conflicts": (),
        "risk": "none known",
        "undo": f"unset {identifier}",
        "verify": "the step time after ten steps",
    } | fields
    return Recommendation(**given)


def sample_advice() -> Advised:
    """Returns two recommendations, one of which has no toggle."""
    analytic = PredictedGain(None, None, None, GainMethod.NOT_QUANTIFIABLE, ())
    return Advised(
        recommendations=(
            sample_recommendation(),
            sample_recommendation("bind", optimization=None, gain=analytic, severity=Severity.LOW),
        ),
        fine=("Deadlocks", "Links slower than others"),
        not_checked=("Memory leaks: the trace has no memory log",),
        passed=("Managed memory: simulator only: no public documentation knows it",),
        combined=None,
        notes=("a note",),
    )
