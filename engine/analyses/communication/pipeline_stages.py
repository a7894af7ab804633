"""Which pipeline stage a rank is."""

from collections.abc import Mapping

from engine.trace.job import Job

_PIPELINE_GROUPS = frozenset({"pp", "pipeline", "pipeline_parallel", "pipeline_model_parallel"})
"""What Megatron and others call the group whose members are the stages in order."""


def pipeline_stages(job: Job) -> Mapping[int, int]:
    """Returns rank → stage from 0 for every rank of a pipeline group of several; empty where there is none.

    Of several such groups of a rank the largest counts: the others are pairs of neighbours.
    """
    known = {group for entry in job.ranks for group in entry.trace.metadata.parallel_groups}
    pipelines = [group for group in known if group.name.lower() in _PIPELINE_GROUPS and len(group.ranks) > 1]
    stages: dict[int, int] = {}
    for group in sorted(pipelines, key=lambda item: (len(item.ranks), item.id)):
        stages |= {rank: stage for stage, rank in enumerate(group.ranks)}
    return stages
