"""How a recorded job is spread over devices, what it is fed with, and what is switched on."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.analyses.communication import communication
from engine.core.errors import MissingDataError
from engine.optimizations.catalogue import in_order, optimization_registry
from engine.optimizations.interface import CapturePlan, Group, Verdict
from engine.trace.job import Job
from engine.whatif.capture_side import device_count
from engine.workloads.optimization_ids import SIMULATED_IN_TRAINING

_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
_EXPANDABLE = "memory.expandable_segments"


@dataclass(frozen=True, slots=True)
class RecordedLayout:
    """Group sizes of a job; their product with the replicas is its world size.

    Attributes:
        tensor: Devices that share every layer.
        pipeline: Stages.
        context: Devices that share every sequence.
        data: Replicas.
        sequence_parallel: Whether norms are split over the tensor group; None where the capture does not say.
    """

    tensor: int
    pipeline: int
    context: int
    data: int
    sequence_parallel: bool | None

    @property
    def world_size(self) -> int:
        """Devices of the job."""
        return self.tensor * self.pipeline * self.context * self.data


def recorded_layout(job: Job) -> RecordedLayout:
    """Returns how a job was spread. Raises MissingDataError where its captures do not say."""
    sizes: Mapping[str, int] = next(
        (entry.trace.metadata.parallel_sizes for entry in job.ranks if entry.trace.metadata.parallel_sizes), {}
    )
    world = device_count(job)
    if not sizes and world > 1:
        raise MissingDataError(
            "sizes of its parallel groups", "record with Megatron's parallel state, or write the scenario by hand"
        )
    tensor, pipeline, context = (max(sizes.get(name, 1), 1) for name in _SIZES)
    split = sizes.get("sequence_parallel")
    replica = tensor * pipeline * context
    if world % replica:
        raise MissingDataError(f"whole number of replicas: {world} devices over {replica} per replica")
    return RecordedLayout(tensor, pipeline, context, world // replica, None if split is None else bool(split))


def optimizer_is_spread(job: Job) -> bool:
    """Returns whether the replicas scatter gradients and gather weights, as a distributed optimizer does."""
    talk = communication(job)
    return any(
        "scatter" in item.name.casefold() and item.group_name.casefold().startswith("dp")
        for collectives in talk.collectives.values()
        for item in collectives
    )


def embeddings_are_tied(job: Job) -> bool:
    """Returns whether the first and last stage exchange the embedding's gradient."""
    talk = communication(job)
    return any(
        "embd" in item.group_name.casefold().split() or item.group_name.casefold() in ("embedding", "embd")
        for collectives in talk.collectives.values()
        for item in collectives
    )


def already_on(plan: CapturePlan) -> tuple[str, ...]:
    """Returns ids of what a recorded job runs with, as far as a simulated job acts on it."""
    found = []
    for item in in_order(optimization_registry()):
        wanted = item.group in (Group.FUSION, Group.COMMUNICATION) or item.id == _EXPANDABLE
        if wanted and item.id in SIMULATED_IN_TRAINING:
            verdict = item.check_capture(plan, item.defaults).verdict
            if verdict is Verdict.ALREADY_ON:
                found.append(item.id)
    return tuple(found)
