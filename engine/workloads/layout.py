"""Which rank does what, which ranks form which group. Ranks count tensor, context, data, pipeline, fastest first."""

from dataclasses import dataclass

from engine.workloads.blocks import GroupKind
from engine.workloads.scenario import Parallelism


@dataclass(frozen=True, slots=True)
class Place:
    """Coordinates of a rank."""

    tensor: int
    context: int
    data: int
    pipeline: int


def place_of(rank: int, parallel: Parallelism) -> Place:
    """Returns the coordinates of a rank."""
    rest, tensor = divmod(rank, parallel.tensor)
    rest, context = divmod(rest, parallel.context)
    pipeline, data = divmod(rest, parallel.data)
    return Place(tensor, context, data, pipeline)


def rank_of(place: Place, parallel: Parallelism) -> int:
    """Returns the rank at a place."""
    outer = place.pipeline * parallel.data + place.data
    return (outer * parallel.context + place.context) * parallel.tensor + place.tensor


def group_ranks(kind: GroupKind, place: Place, parallel: Parallelism) -> tuple[int, ...]:
    """Returns the ranks of the group of that kind which holds ``place``, in group order."""
    tensors, contexts, stages = [place.tensor], [place.context], [place.pipeline]
    replicas = [place.data]
    if kind is GroupKind.TENSOR:
        tensors = list(range(parallel.tensor))
    elif kind is GroupKind.CONTEXT:
        contexts = list(range(parallel.context))
    elif kind is GroupKind.DATA:
        contexts, replicas = list(range(parallel.context)), list(range(parallel.data))
    elif kind is GroupKind.MODEL:
        tensors, stages = list(range(parallel.tensor)), list(range(parallel.pipeline))
    elif kind is GroupKind.EMBEDDING:
        stages = sorted({0, parallel.pipeline - 1})
    else:
        return _expert_ranks(kind, place, parallel)
    return tuple(
        rank_of(Place(tensor, context, data, stage), parallel)
        for stage in stages
        for data in replicas
        for context in contexts
        for tensor in tensors
    )


def _expert_ranks(kind: GroupKind, place: Place, parallel: Parallelism) -> tuple[int, ...]:
    """Experts are spread over neighbouring ranks of (data, context); ranks with the same experts reduce together."""
    own = place.data * parallel.context + place.context
    members = range(parallel.data * parallel.context)
    if kind is GroupKind.EXPERT:
        chosen = [item for item in members if item // parallel.expert == own // parallel.expert]
    else:
        chosen = [item for item in members if item % parallel.expert == own % parallel.expert]
    return tuple(
        rank_of(Place(place.tensor, item % parallel.context, item // parallel.context, place.pipeline), parallel)
        for item in chosen
    )


def stage_layers(stage: int, chunk: int, layers: int, parallel: Parallelism) -> range:
    """Returns the layers of a model chunk of a stage."""
    count = layers // (parallel.pipeline * parallel.virtual_pipeline)
    first = (chunk * parallel.pipeline + stage) * count
    return range(first, first + count)


def group_name(kind: GroupKind) -> str:
    """Returns the framework's word for a kind of group."""
    return _NAMES[kind]


_NAMES = {
    GroupKind.TENSOR: "tp",
    GroupKind.DATA: "dp_cp",
    GroupKind.CONTEXT: "cp",
    GroupKind.EXPERT: "ep",
    GroupKind.MODEL: "mp",
    GroupKind.EMBEDDING: "embd",
    GroupKind.EXPERT_DATA: "edp",
}
