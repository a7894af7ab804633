"""In which order a pipeline stage takes micro-batches: GPipe, 1F1B, interleaved 1F1B.

Sources: GPipe (Huang et al. 2019); PipeDream-Flush / 1F1B and its interleaved form (Narayanan et al. 2021).
"""

from dataclasses import dataclass

from engine.workloads.scenario import Schedule


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of one micro-batch through one model chunk of a stage."""

    is_forward: bool
    micro_batch: int
    chunk: int


def stage_passes(schedule: Schedule, stage: int, stages: int, micro_batches: int, chunks: int) -> tuple[Pass, ...]:
    """Returns the passes of a stage in order.

    Args:
        schedule: Which order.
        stage: 0-based stage.
        stages: Stages in all.
        micro_batches: Per replica and step; a multiple of ``stages`` for the interleaved schedule.
        chunks: Model chunks of the stage; more than 1 only for the interleaved schedule.
    """
    if schedule is Schedule.GPIPE:
        forward = [Pass(True, number, 0) for number in range(micro_batches)]
        return (*forward, *(Pass(False, number, 0) for number in reversed(range(micro_batches))))
    total = micro_batches * chunks
    if chunks > 1:
        warm_up = min(2 * (stages - stage - 1) + (chunks - 1) * stages, total)
        if micro_batches == stages:
            warm_up = total
    else:
        warm_up = min(stages - stage - 1, total)
    forward = [_interleaved(number, stages, chunks, True) for number in range(total)]
    backward = [_interleaved(number, stages, chunks, False) for number in range(total)]
    steady = [item for pair in zip(forward[warm_up:], backward, strict=False) for item in pair]
    return (*forward[:warm_up], *steady, *backward[total - warm_up :])


def _interleaved(number: int, stages: int, chunks: int, is_forward: bool) -> Pass:
    """Returns the n-th pass of its direction: groups of ``stages`` micro-batches go through chunk after chunk."""
    if chunks == 1:
        return Pass(is_forward, number, 0)
    group, rest = divmod(number, stages * chunks)
    chunk = rest // stages
    return Pass(is_forward, group * stages + number % stages, chunk if is_forward else chunks - 1 - chunk)
