"""A job that hangs because one rank calls two collectives in another order than everybody else."""

import numpy as np

from engine.graph.builder import GraphBuilder
from engine.graph.task_graph import Stream, TaskGraph, TaskKind
from engine.trace.trace import ParallelGroup


def swapped_collectives(*, rank_count: int, call_count: int, wrong_rank: int, wrong_call: int) -> TaskGraph:
    """Returns ranks that call the same collectives, except that one calls ``wrong_call`` after the one behind it."""
    builder = GraphBuilder()
    builder.groups.append(ParallelGroup("7", "dp", tuple(range(rank_count))))
    name, group = builder.strings.intern("hcom_allReduce__7_0_1"), builder.strings.intern("7")
    meetings = builder.new_rendezvous(call_count)
    for rank in range(rank_count):
        order = meetings + np.arange(call_count)
        if rank == wrong_rank:
            order[[wrong_call, wrong_call + 1]] = order[[wrong_call + 1, wrong_call]]
        builder.add_tasks(
            call_count,
            name=name,
            kind=TaskKind.COLLECTIVE,
            rank=rank,
            stream=Stream.COMMUNICATION,
            duration_ns=1_000,
            rendezvous=order,
            group=group,
        )
    return builder.build()
