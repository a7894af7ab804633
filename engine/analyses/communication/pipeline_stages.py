"""Which pipeline stage a rank is."""

from collections.abc import Mapping

from engine.trace.job import Job

_PIPELINE_GROUPS = frozenset({"pp", "pipeline", "pipeline_parallel", "pipeline_model_parallel"})
"""What Megatron and others call the group whose members are the stages in order."""


def pipeline_stages(job: Job) -> Mapping[int, int]:
    """Returns rank → stage from 0 for every rank of a pipeline group of several; empty where there is none."""
    stages: dict[int, int] = {}
    for entry in job.ranks:
        for group in entry.trace.metadata.parallel_groups:
            if group.name.lower() in _PIPELINE_GROUPS and len(group.ranks) > 1:
                stages |= {rank: stage for stage, rank in enumerate(group.ranks)}
    return stages
