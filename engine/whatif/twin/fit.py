"""Makes a scenario of a recorded job, and says how well it does and what could not be told."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import MissingDataError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.units import NS_PER_US
from engine.devices.spec import DType
from engine.graph.task_graph import TaskKind
from engine.whatif.results import Side
from engine.whatif.scenario_side import scenario_side
from engine.whatif.subject import CaptureSubject
from engine.whatif.twin.layout import (
    RecordedLayout,
    already_on,
    embeddings_are_tied,
    optimizer_is_spread,
    recorded_layout,
)
from engine.whatif.twin.model_sizes import RankModel, rank_model
from engine.whatif.twin.products import RankKernels, rank_kernels
from engine.workloads.models.catalogue import load_model, model_ids
from engine.workloads.scenario_file import scenario_from_document

_COMPUTING = (TaskKind.CUBE, TaskKind.VECTOR, TaskKind.MIX, TaskKind.AI_CPU)
_DTYPES = {DType.BF16: "bf16", DType.FP16: "fp16", DType.FP32: "fp32"}
_RECOMPUTED = 1.5
"""Forward passes of attention per backward pass above which it is computed again (1 or 2, steps cut off aside)."""
_ALL_RECOMPUTED = 3.5
"""Products per weight above which everything is (3 or 4)."""
OTHER_WORK = 10
"""Times the usual dispatch: what takes longer loads data, collects garbage or waits for something unknown."""
STEPS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Twin:
    """A simulated twin.

    Attributes:
        document: The scenario, as a file holds it.
        side: What it comes to.
        recorded: The capture, replayed.
        recorded_step_ns: Mean step of the capture.
        recorded_computing_ns: Kernels per rank and step, mean over the ranks that list them.
        told: What the scenario took from the capture, in sentences.
        untold: What could not be told and was assumed.
    """

    document: Mapping[str, Any]
    side: Side
    recorded: Side
    recorded_step_ns: float
    recorded_computing_ns: float
    told: tuple[str, ...]
    untold: tuple[str, ...]

    @property
    def step_error_ratio(self) -> float | None:
        """Twin ÷ recorded step − 1, None where the twin does not run."""
        own = self.side.mean_step_ns
        return own / self.recorded_step_ns - 1.0 if own else None

    @property
    def computing_ns(self) -> float | None:
        """Kernels per rank and step of the twin."""
        shares = self.side.shares
        return None if shares is None else (shares.cube_ratio + shares.vector_ratio) * self.side.mean_step_ns

    @property
    def computing_error_ratio(self) -> float | None:
        """The same of kernels alone: what is left of the step's error stands in waiting, transfers and the host."""
        own = self.computing_ns
        return own / self.recorded_computing_ns - 1.0 if own and self.recorded_computing_ns else None


def fitted_twin(
    subject: CaptureSubject, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> Twin:
    """Returns the twin of a recorded job, run once.

    Raises:
        MissingDataError: The capture does not tell the model, the layout or the device; it names what is missing.
        ScenarioError: What it tells cannot be simulated.
        OperationCancelled: Cancelled.
    """
    job = subject.job
    kernels = {entry.rank: rank_kernels(entry.trace) for entry in job.ranks if len(entry.trace.kernels)}
    if not kernels:
        raise MissingDataError("table of kernels with shapes", "a twin needs an Ascend capture of level 1 or 2")
    cancel.check()
    models = {rank: rank_model(item) for rank, item in kernels.items()}
    layout = recorded_layout(job)
    progress(0.2, "what is switched on")
    told: list[str] = []
    untold: list[str] = []
    on = already_on(subject.plan)
    document = {
        "format": 1,
        "name": f"twin of {Path(job.path).name}",
        "kind": "training",
        "model": _model(subject, models, layout, kernels, told, untold),
        "device": _device(subject, layout, told, untold),
        "parallel": _parallel(subject, layout, untold),
        "batch": _batch(models, layout, told),
        "memory": _memory(subject, models, told),
        "run": {"steps": STEPS},
        "optimizations": {name: {} for name in on},
    }
    told.append(f"on already: {', '.join(on) or 'nothing that is known'}")
    scenario = scenario_from_document(document, Path())
    side = scenario_side(scenario, part_of(progress, 0.5, 1.0), cancel)
    replayed = subject.baseline_run(cancel=cancel).replayed
    return Twin(
        document=document,
        side=side,
        recorded=subject.baseline(cancel=cancel),
        recorded_step_ns=float(np.mean(replayed.recorded_step_ns)),
        recorded_computing_ns=_computing_ns(subject, kernels),
        told=tuple(told),
        untold=tuple(untold),
    )


def _model(
    subject: CaptureSubject,
    models: Mapping[int, RankModel],
    layout: RecordedLayout,
    kernels: Mapping[int, RankKernels],
    told: list[str],
    untold: list[str],
) -> dict[str, Any]:
    first = next(iter(models.values()))
    tensor = layout.tensor
    vocab = next((item.vocab for item in models.values() if item.vocab is not None), None)
    if vocab is None:
        raise MissingDataError("stage with the embedding or the output", "open the first or last stage's capture")
    own = _micro_batches(models)
    stages = {rank: item.layer_passes // own for rank, item in models.items()}
    layers = max(stages.values())
    if layout.pipeline > 1 and len(set(stages.values())) > 1:
        untold.append(f"stages have {sorted(set(stages.values()))} layers; the twin's all have {layers}")
    sizes: dict[str, Any] = {
        "layers": layers * layout.pipeline,
        "hidden": first.hidden,
        "ffn": first.ffn * tensor,
        "heads": first.attention.query_width * tensor // first.head_size,
        "kv_heads": max(first.key_width * tensor // first.head_size, 1),
        "head_dim": first.head_size,
        "vocab": vocab * tensor,
        "gated": first.gated,
    }
    told.append(
        f"{sizes['layers']} layers of width {sizes['hidden']}, {sizes['heads']} heads over {sizes['kv_heads']} of "
        f"{sizes['head_dim']}, feed-forward {sizes['ffn']}, vocabulary {sizes['vocab']}"
    )
    untold.extend(dict.fromkeys(text for item in models.values() for text in item.assumed))
    return {**_preset(sizes, told, subject, untold), "dtype": _dtype(kernels)}


def _preset(sizes: Mapping[str, Any], told: list[str], subject: CaptureSubject, untold: list[str]) -> dict[str, Any]:
    """Returns the catalogued model of these sizes, with its own number of layers and words; all sizes where none is."""
    widths = ("hidden", "ffn", "heads", "kv_heads", "head_dim", "gated")
    for identifier in model_ids():
        model = load_model(identifier)
        if not model.experts and all(getattr(model, name) == sizes[name] for name in widths):
            told.append(f"these are the widths of {identifier}")
            changed = {name: sizes[name] for name in ("layers", "vocab") if getattr(model, name) != sizes[name]}
            return {"preset": identifier, **changed}
    tied = embeddings_are_tied(subject.job)
    untold.append("whether embedding and output share their weights, biases, and norms of queries and keys")
    return {**sizes, "tied_embeddings": tied}


def _dtype(kernels: Mapping[int, RankKernels]) -> str:
    """Returns the type most products are computed in; BF16 where none is told."""
    weights: dict[DType, int] = {}
    for item in kernels.values():
        for kernel, count in item.of("MatMul", "MatMulV2", "MatMulV3"):
            if kernel.input_types[0] in _DTYPES:
                weights[kernel.dtype] = weights.get(kernel.dtype, 0) + count
    return _DTYPES[max(weights, key=lambda dtype: weights[dtype])] if weights else "bf16"


def _micro_batches(models: Mapping[int, RankModel]) -> int:
    found = [item.micro_batches for item in models.values() if item.micro_batches]
    if not found:
        raise MissingDataError("stage that tells the micro-batches", "open the first or last stage's capture")
    return max(found)


def _device(subject: CaptureSubject, layout: RecordedLayout, told: list[str], untold: list[str]) -> dict[str, Any]:
    found = subject.device
    if found is None:
        raise MissingDataError("device it ran on", "its kernels tell none either; write the scenario by hand")
    told.append(f"{layout.world_size} × {found.spec.id}")
    untold.extend([] if found.assumption is None else [found.assumption])
    dispatch_us = _dispatch_us(subject)
    told.append(f"the host takes {dispatch_us:g} µs per operator")
    return {"preset": found.spec.id, "count": layout.world_size, "host_dispatch_us": dispatch_us}


def _dispatch_us(subject: CaptureSubject) -> float:
    """Returns the host's mean time per operator; what takes over ten times the median is other work and left out."""
    graph = subject.capture.graph
    times_ns = graph.duration_ns[(graph.kind == TaskKind.HOST) & (graph.duration_ns > 0)]
    usual_ns = times_ns[times_ns <= OTHER_WORK * np.median(times_ns)] if len(times_ns) else times_ns
    return round(float(np.mean(usual_ns)) / NS_PER_US, 1) if len(usual_ns) else 0.0


def _parallel(subject: CaptureSubject, layout: RecordedLayout, untold: list[str]) -> dict[str, Any]:
    split = layout.sequence_parallel
    if split is None:
        split = layout.tensor > 1
        if split:
            untold.append("whether norms are split over the tensor group: taken to be")
    if layout.pipeline > 1:
        untold.append("the order of micro-batches in the pipeline: taken to be 1f1b")
    return {
        "data": layout.data,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "context": layout.context,
        "sequence_parallel": split,
        "distributed_optimizer": optimizer_is_spread(subject.job),
    }


def _batch(models: Mapping[int, RankModel], layout: RecordedLayout, told: list[str]) -> dict[str, Any]:
    attention = next(iter(models.values())).attention
    micro_batches = _micro_batches(models)
    length = attention.sequence * layout.context
    told.append(f"{micro_batches} micro-batches of {attention.batch} × {length} tokens per step and replica")
    return {
        "micro": attention.batch,
        "global": attention.batch * micro_batches * layout.data,
        "sequence_length": length,
    }


def _memory(subject: CaptureSubject, models: Mapping[int, RankModel], told: list[str]) -> dict[str, Any]:
    first = next(iter(models.values()))
    recompute = "none"
    if first.forward_ratio > _RECOMPUTED:
        recompute = "full" if first.product_ratio > _ALL_RECOMPUTED else "selective"
    told.append(f"recomputed: {recompute}")
    limit = next(
        (
            entry.trace.metadata.device_memory_bytes
            for entry in subject.job.ranks
            if entry.trace.metadata.device_memory_bytes
        ),
        None,
    )
    return {"recompute": recompute, **({} if limit is None else {"limit_bytes": limit})}


def _computing_ns(subject: CaptureSubject, kernels: Mapping[int, RankKernels]) -> float:
    """Returns recorded kernel time per rank and step."""
    graph = subject.capture.graph
    counted = np.isin(graph.kind, _COMPUTING) & np.isin(graph.rank, list(kernels))
    steps = sum(item.step_count for item in kernels.values())
    return float(graph.duration_ns[counted].sum()) / steps
