"""Memory of one step in host program order, with what the training loop does when it runs out."""

from collections.abc import Sequence

import numpy as np

from engine.core.arrays import Int64Array
from engine.workloads.executed import Executed, Stall
from engine.workloads.items import Item, ItemKind
from engine.workloads.job_memory import ServedStretch
from engine.workloads.run_state import RunState
from engine.workloads.scenario import OutOfMemoryPolicy
from engine.workloads.upkeep import with_restart


def serve_step(
    state: RunState, number: int, step: int, served: list[tuple[int, ServedStretch]] | None = None
) -> list[Executed] | None:
    """Serves the memory of one class of ranks for one step.

    Args:
        state: The run.
        number: Class of ranks.
        step: Step.
        served: Receives the requests with the answers, and the index of the executed item they begin at.

    Returns:
        What was executed, failed attempts included; None where memory ran out for good.
    """
    memory, ranks = state.memories[number], state.classes[number]
    memory.bury(step)
    stretches = _stretches(state, ranks.stage)
    births = _births(memory.births(), stretches, memory.generator)
    tokens = state.lengths.tokens[step, ranks.replica]
    executed: list[Executed] = []
    for items, born in zip(stretches, births, strict=True):
        parts = {item.micro_batch: tokens[item.micro_batch] for item in items if item.micro_batch >= 0}
        if not _serve(state, number, items, parts, (step, born), executed, served):
            return None
    _stall_last(executed, memory.synchronize())
    if state.upkeep.checks(step):
        _stall_last(executed, memory.release())
    return with_restart(executed, state.upkeep.restart_ns) if state.upkeep.restarts(step) else executed


def _stall_last(executed: list[Executed], calls: tuple[tuple[str, int], ...]) -> None:
    """Lets what the allocator does at the end of a step stall the last block."""
    if not calls:
        return
    last = max(index for index, part in enumerate(executed) if part.template is not None)
    part = executed[last]
    count = len(part.template.host_ns) if part.template is not None else 0
    stall = Stall(count, sum(cost for _, cost in calls), True, calls)
    executed[last] = part._replace(stalls=(*part.stalls, stall))


def _stretches(state: RunState, stage: int) -> list[tuple[Item, ...]]:
    """Returns the parts of a program that can be tried again on their own: micro-batches where nobody else waits."""
    items = state.programs[stage].items
    if state.scenario.memory.on_out_of_memory is OutOfMemoryPolicy.ABORT:
        return [items]
    bounds = [0]
    bounds += [at for at in range(1, len(items)) if items[at].micro_batch != items[at - 1].micro_batch]
    return [items[start:stop] for start, stop in zip(bounds, [*bounds[1:], len(items)], strict=True)]


def _births(count: int, stretches: Sequence[Sequence[Item]], generator: np.random.Generator) -> list[int]:
    """Returns how many long-lived tensors are born in each stretch that computes a micro-batch."""
    computing = [number for number, items in enumerate(stretches) if any(item.micro_batch >= 0 for item in items)]
    drawn = np.bincount(generator.integers(0, len(computing), count), minlength=len(computing)).tolist()
    born = dict(zip(computing, drawn, strict=True))
    return [born.get(number, 0) for number in range(len(stretches))]


def _serve(
    state: RunState,
    number: int,
    items: Sequence[Item],
    tokens: dict[int, Int64Array],
    when: tuple[int, int],
    executed: list[Executed],
    served: list[tuple[int, ServedStretch]] | None,
) -> bool:
    """Serves a stretch; where memory runs out and the policy says so, its micro-batch is split in two and tried again.

    Args:
        state: The run.
        number: Class of ranks.
        items: The stretch.
        tokens: Real tokens of the sequences of each of its micro-batches.
        when: Step, and how many long-lived tensors are born in the stretch.
        executed: Receives what ran.
        served: Receives the requests with the answers, and where in ``executed`` they begin; None to keep none.

    Returns:
        Whether the stretch was computed in the end.
    """
    memory, step = state.memories[number], when[0]
    sequences = max((len(part) for part in tokens.values()), default=state.scenario.batch.micro)
    state.price(sequences)
    index_of = {micro_batch: state.lengths.index_of(part) for micro_batch, part in tokens.items()}
    length_of = [index_of.get(item.micro_batch, 0) for item in items]
    result = memory.serve(items, length_of, sequences, step, when[1])
    failed = result.failed_item
    if served is not None:
        served.append((len(executed), result.served))
    for index, item in enumerate(items if failed < 0 else items[: failed + 1]):
        template = state.templates[sequences, item.block] if item.kind is ItemKind.BLOCK else None
        stop = result.failed_operator if index == failed else -1
        executed.append(Executed(item, template, length_of[index], result.stalls.get(index, ()), stop, -1))
    if failed < 0:
        return True
    splits = state.scenario.memory.on_out_of_memory is OutOfMemoryPolicy.SPLIT
    if not splits or sequences < 2 or len(tokens) != 1:
        return False
    executed[-1] = executed[-1]._replace(caught_ns=memory.catch())
    micro_batch, part = next(iter(tokens.items()))
    half = sequences // 2
    halves = (part[:half], part[half:])
    return all(_serve(state, number, items, {micro_batch: piece}, (step, 0), executed, served) for piece in halves)
