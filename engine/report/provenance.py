"""Where a result comes from: versions, hashes of what went in, the seed."""

import hashlib
from importlib import metadata, resources
from pathlib import Path
from typing import Any


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
