"""What a job loses most time to, and which optimizations are made for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from engine.advisor.service_losses import BATCHING, phase_ratios
from engine.analyses.serving.latency import ServingAnalysis
from engine.analyses.serving.tables import PhaseKind
from engine.optimizations.interface import Group, Optimization
from engine.whatif.results import Side
from engine.workloads.results import RunStatus
from engine.workloads.serving.simulate import ServingResult

LAYOUT = "parallel.layout"
SMALLEST_SHARE = 0.01
"""A loss below this share of the step cannot give the 1 % that ends a tuning."""
LOSSY = (
    "precision.mixed",
    "precision.quantized_training",
    "communication.topk_compression",
    "communication.quantized_gradients",
    "serving.quantization",
)
"""Change what is computed: their effect on accuracy cannot be known without weights and data."""


class Loss(StrEnum):
    """Where time goes that an optimization might win back."""

    MEMORY = "out of memory"
    VECTOR = "kernels between the matrix products"
    COMMUNICATION = "exposed communication"
    WAITING = "waiting for a slow rank"
    BUBBLES = "pipeline bubbles"
    HOST = "host-bound"
    ALLOCATOR = "allocator stalls"
    CUBE = "matrix products"
    QUEUE = "requests waiting for a place"
    PADDING = "computing padding"
    DISPATCH = "the device waiting for the host"
    PROMPTS = "computing prompts"
    ANSWERS = "computing answers"


_MADE_FOR: Mapping[Loss, tuple[str, ...]] = {
    Loss.MEMORY: (Group.MEMORY, LAYOUT),
    Loss.VECTOR: (Group.FUSION, LAYOUT),
    Loss.COMMUNICATION: (Group.COMMUNICATION, "fusion.matmul_all_reduce", "host.streams", LAYOUT),
    Loss.WAITING: (LAYOUT,),
    Loss.BUBBLES: (LAYOUT,),
    Loss.HOST: (Group.HOST, Group.FUSION, LAYOUT),
    Loss.ALLOCATOR: (Group.MEMORY,),
    Loss.CUBE: (Group.PRECISION, LAYOUT),
    Loss.QUEUE: (BATCHING, "serving.prefix_cache", "serving.quantization", "host.graph_mode"),
    Loss.PADDING: (BATCHING,),
    Loss.DISPATCH: ("host.graph_mode", "serving.speculative", BATCHING),
    Loss.PROMPTS: ("serving.prefix_cache", "serving.chunked_prefill", "serving.quantization"),
    Loss.ANSWERS: ("serving.quantization", "serving.speculative", "host.graph_mode"),
}
"""Groups and ids."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A loss and its size.

    Attributes:
        loss: What.
        share_ratio: Of the step, or of the time requests take; 1 where the job does not run at all.
    """

    loss: Loss
    share_ratio: float


def bottlenecks(side: Side) -> tuple[Bottleneck, ...]:
    """Returns what a job loses time to, the largest share first; a job out of memory has only that.

    Matrix products are what the job is for: they come last, however large their share is.
    """
    if side.status is RunStatus.OUT_OF_MEMORY:
        return (Bottleneck(Loss.MEMORY, 1.0),)
    if side.serving is not None and side.service is not None:
        return _of_service(side.serving, side.service)
    shares = side.shares
    if shares is None:
        return ()
    found = (
        Bottleneck(Loss.VECTOR, shares.vector_ratio),
        Bottleneck(Loss.COMMUNICATION, shares.communication_ratio),
        Bottleneck(Loss.WAITING, shares.waiting_ratio),
        Bottleneck(Loss.BUBBLES, shares.bubble_ratio),
        Bottleneck(Loss.HOST, shares.host_ratio),
        Bottleneck(Loss.ALLOCATOR, shares.allocator_ratio),
        Bottleneck(Loss.CUBE, shares.cube_ratio),
    )
    return tuple(
        sorted(
            (item for item in found if item.share_ratio >= SMALLEST_SHARE),
            key=lambda item: (item.loss is Loss.CUBE, -item.share_ratio),
        )
    )


def _of_service(analysis: ServingAnalysis, service: ServingResult) -> tuple[Bottleneck, ...]:
    """Returns what requests lose time to; prompts and answers, which a service is for, come last."""
    spent = phase_ratios(service.run)
    waiting = spent[PhaseKind.QUEUED] + spent[PhaseKind.PREEMPTED]
    lost = (
        Bottleneck(Loss.QUEUE, waiting),
        Bottleneck(Loss.PADDING, analysis.padding_ratio * (1.0 - waiting)),
        Bottleneck(Loss.DISPATCH, (analysis.host_bound_ratio or 0.0) * (1.0 - waiting)),
    )
    work = (Bottleneck(Loss.PROMPTS, spent[PhaseKind.PREFILL]), Bottleneck(Loss.ANSWERS, spent[PhaseKind.DECODE]))
    in_order = [*sorted(lost, key=_size), *sorted(work, key=_size)]
    return tuple(item for item in in_order if item.share_ratio >= SMALLEST_SHARE)


def _size(item: Bottleneck) -> float:
    return -item.share_ratio


def made_for(loss: Loss, optimizations: Iterable[Optimization]) -> tuple[Optimization, ...]:
    """Returns the optimizations that may win a loss back, in their own order."""
    wanted = _MADE_FOR[loss]
    return tuple(item for item in optimizations if item.group in wanted or item.id in wanted)
