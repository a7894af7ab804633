"""Where a result comes from: versions, hashes of what went in, the seed."""

import hashlib
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from engine.core.progress import NEVER_CANCELLED, CancelToken
from engine.trace.job import Job


def run_provenance(scenario: Path, seed: int) -> dict[str, Any]:
    """Returns the provenance of a simulated run: the same values give the same run."""
    return {
        "cannscope": metadata.version("cannscope"),
        "numpy": metadata.version("numpy"),
        "scenario_sha256": hashlib.sha256(scenario.read_bytes()).hexdigest(),
        "device_data_sha256": _data_hash(),
        "seed": seed,
    }


def _data_hash() -> str:
    """Returns one hash over all device data: specs, topologies, fitted constants."""
    digest = hashlib.sha256()
    pending = [resources.files("engine.devices").joinpath("data")]
    while pending:
        folder = pending.pop()
        for entry in sorted(folder.iterdir(), key=lambda item: item.name):
            if entry.is_dir():
                pending.append(entry)
            elif entry.name.endswith(".json"):
                digest.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return digest.hexdigest()


def capture_provenance(paths: Sequence[Path]) -> dict[str, Any]:
    """Returns the provenance of what was computed from a capture: versions, and where its files are."""
    return {
        "cannscope": metadata.version("cannscope"),
        "numpy": metadata.version("numpy"),
        "paths": [str(path) for path in paths],
        "device_data_sha256": _data_hash(),
    }


def content_hashes(job: Job, cancel: CancelToken = NEVER_CANCELLED) -> dict[str, str]:
    """Returns file → SHA-256 of everything a job was read from.

    Raises:
        OSError: A file is gone.
        OperationCancelled: Cancelled.
    """
    hashes = {}
    for entry in job.ranks:
        source = entry.trace.source
        for name in source.files:
            cancel.check()
            path = Path(source.path)
            file = path / name if path.is_dir() else path
            with file.open("rb") as opened:
                hashes[str(file)] = hashlib.file_digest(opened, "sha256").hexdigest()
    return hashes
