"""``cannscope replay``: timeline and memory log of a capture, or a snapshot, on the simulated runtime."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.errors import EngineError, MissingDataError
from engine.core.progress import Progress, part_of
from engine.formats.snapshots.allocator_snapshot import looks_like_snapshot, read_snapshot
from engine.replay.memory_replay import MemoryReplay, replay_memory
from engine.replay.replay_quality import ReplayQuality, replay_quality
from engine.replay.snapshot_replay import replay_snapshot
from engine.report.memory_replay import memory_document, memory_text
from engine.report.replay import snapshot_document, snapshot_text
from engine.report.replay_time import time_document, time_text
from engine.runtime.allocators.catalogue import ALLOCATOR_POLICIES, AllocatorPolicy, allocator_policy
from engine.trace.job import Job

ReplayPath = Annotated[Path, typer.Argument(help="Capture, or allocator snapshot (.pickle, .pkl).")]
AllocatorOption = Annotated[
    str | None, typer.Option("--allocator", help="Policy to replay on; the recorded one where left out.")
]


def replay(
    path: ReplayPath,
    allocator: AllocatorOption = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Replays a recording on the simulated runtime: step times, addresses, what was and what others would reserve.

    Example: cannscope replay snapshot.pickle --json
    """
    output = Output(as_json, quiet, verbose)
    policy = _policy(allocator)
    if looks_like_snapshot(path):
        _replay_snapshot(path, policy, output)
    else:
        _replay_capture(path, policy, output)


def _replay_snapshot(path: Path, policy: AllocatorPolicy | None, output: Output) -> None:
    with output.progress() as progress:
        progress(0.0, "reading the snapshot")
        snapshot = read_snapshot(path)
        progress(0.5, "replaying")
        result = replay_snapshot(snapshot, policy)
    if output.as_json:
        output.document(snapshot_document(path, result))
    else:
        output.stdout.print(snapshot_text(path, result))


def _replay_capture(path: Path, policy: AllocatorPolicy | None, output: Output) -> None:
    with output.progress() as progress:
        job = open_capture([path], part_of(progress, 0.0, 0.4))
        replays, missing = _replays(job, policy, part_of(progress, 0.4, 0.7))
        quality = _quality(job, part_of(progress, 0.7, 1.0))
    if quality is None and missing is not None and not replays:
        raise missing
    if output.as_json:
        output.document(memory_document(job, replays, None if quality is None else time_document(quality)))
        return
    if quality is not None:
        output.stdout.print(time_text(quality))
    output.stdout.print(memory_text(job, replays))


def _quality(job: Job, progress: Progress) -> ReplayQuality | None:
    """Returns the replay of the timeline, None where no rank shows device tasks."""
    try:
        return replay_quality(job, progress)
    except MissingDataError:
        return None


def _replays(
    job: Job, policy: AllocatorPolicy | None, progress: Progress
) -> tuple[dict[int, MemoryReplay], MissingDataError | None]:
    """Returns the replay of every rank that lists blocks, and why another one has none."""
    replays = {}
    missing = None
    for done, entry in enumerate(job.ranks):
        progress(done / len(job.ranks), f"replaying rank {entry.rank}")
        try:
            replays[entry.rank] = replay_memory(entry.trace, policy)
        except MissingDataError as error:
            missing = error
    return replays, missing


def _policy(name: str | None) -> AllocatorPolicy | None:
    if name is None:
        return None
    try:
        return allocator_policy(name)
    except KeyError:
        known = ", ".join(policy.id for policy in ALLOCATOR_POLICIES)
        message = f"--allocator {name}: no such policy; choose one of {known}"
        raise EngineError(message) from None
