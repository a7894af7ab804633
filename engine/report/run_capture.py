"""A simulated run as profiler directories: one per rank, as torch_npu's profiler would have left them."""

from pathlib import Path

from engine.core.errors import ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.formats.ascend_writer import write_ascend_text
from engine.trace.job import Job
from engine.workloads.recording import record_run
from engine.workloads.results import RunResult
from engine.workloads.serving.recording import record_service
from engine.workloads.serving.simulate import ServingResult


def write_run(
    result: RunResult, parent: Path, level: int, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> tuple[Path, ...]:
    """Writes the profiled steps of a run and returns the directory of each rank.

    Args:
        result: The run.
        parent: Where the directories go.
        level: Profiler level 0 to 2.
        progress: Told what is done.
        cancel: Looked at between ranks.

    Raises:
        ScenarioError: No step was profiled.
        ExportError: It cannot be written.
        OperationCancelled: Cancelled.
    """
    check_profiled(result)
    job = record_run(result.profiled, result.histories, level, part_of(progress, 0.0, 0.5), cancel)
    return write_ranks(job, parent, part_of(progress, 0.5, 1.0), cancel)


def check_profiled(result: RunResult) -> None:
    """Raises ScenarioError where no step of a run was profiled, so that there is nothing to write."""
    if not result.profiled.steps:
        message = "there is nothing to write: no step of run.profile_steps was reached; name one that is"
        raise ScenarioError(message)


def write_ranks(job: Job, parent: Path, progress: Progress, cancel: CancelToken) -> tuple[Path, ...]:
    """Writes every rank of a job and returns the directory of each.

    Args:
        job: The ranks.
        parent: Where the directories go.
        progress: Told which rank is written.
        cancel: Looked at between ranks.

    Raises:
        ExportError: It cannot be written.
        OperationCancelled: Cancelled.
    """
    written = []
    for number, entry in enumerate(job.ranks):
        cancel.check()
        progress(number / len(job.ranks), f"writing rank {entry.rank}")
        written.append(write_ascend_text(entry.trace, parent, cancel=cancel))
    return tuple(written)


def write_service(
    result: ServingResult, parent: Path, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> Path:
    """Writes one device of a service as a profiler directory, with requests as rows, and returns it.

    Args:
        result: The served run.
        parent: Where the directory goes.
        progress: Told what is done.
        cancel: Looked at between parts.

    Raises:
        ExportError: It cannot be written.
        OperationCancelled: Cancelled.
    """
    job = record_service(result, part_of(progress, 0.0, 0.5), cancel)
    return write_ascend_text(job.ranks[0].trace, parent, part_of(progress, 0.5, 1.0), cancel)
