"""Where a what-if comes from: versions, files, seed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.report.provenance import capture_provenance, content_hashes, run_provenance
from engine.whatif.subject import CaptureSubject, Subject


def subject_provenance(subject: Subject, paths: Sequence[Path]) -> dict[str, Any]:
    """Returns versions and what was asked about; the same values give the same answer."""
    if isinstance(subject, CaptureSubject):
        return capture_provenance(paths)
    return run_provenance(paths[0], subject.scenario.seed)


def subject_hashes(subject: Subject) -> dict[str, str]:
    """Returns file → SHA-256 of what a job was read from; a scenario's is part of its provenance."""
    return content_hashes(subject.job) if isinstance(subject, CaptureSubject) else {}
