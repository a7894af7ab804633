"""``cannscope replay``: the memory log of a snapshot on the simulated allocators."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.errors import EngineError
from engine.formats.snapshots.allocator_snapshot import read_snapshot
from engine.replay.snapshot_replay import replay_snapshot
from engine.report.replay import snapshot_document, snapshot_text
from engine.runtime.allocators.catalogue import ALLOCATOR_POLICIES, AllocatorPolicy, allocator_policy

ReplayPath = Annotated[Path, typer.Argument(help="Allocator snapshot.")]
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
    """Replays recorded allocations on a simulated allocator and compares addresses and what was reserved.

    Example: cannscope replay snapshot.pickle --json
    """
    output = Output(as_json, quiet, verbose)
    policy = _policy(allocator)
    with output.progress() as progress:
        progress(0.0, "reading the snapshot")
        snapshot = read_snapshot(path)
        progress(0.5, "replaying")
        result = replay_snapshot(snapshot, policy)
    if as_json:
        output.document(snapshot_document(path, result))
    else:
        output.stdout.print(snapshot_text(path, result))


def _policy(name: str | None) -> AllocatorPolicy | None:
    if name is None:
        return None
    try:
        return allocator_policy(name)
    except KeyError:
        known = ", ".join(policy.id for policy in ALLOCATOR_POLICIES)
        message = f"--allocator {name}: no such policy; choose one of {known}"
        raise EngineError(message) from None
