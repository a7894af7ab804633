"""Keeping a prediction for later, and scoring one by the capture that is open, in the worker of reruns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.user_places import calibration_log_place
from profiler_gui.session.advising import ReportWritten
from profiler_gui.session.rerunning import RerunRequest, SubjectPlace, opened_subject
from profiler_gui.session.toggles import text_of

if TYPE_CHECKING:  # the engine's what-ifs are imported after the first paint
    from profiler_gui.session.worker import JobContext

RERUN_SHARE = 0.4
"""Part of the progress bar that the rerun takes; the rest is writing."""
SCORE_COLUMNS = 92
"""Width of a score as text."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of a prediction.

    Attributes:
        text: In words, as the command line says it.
    """

    text: str


def keep_in_worker(context: JobContext, request: RerunRequest, directory: Path) -> ReportWritten:
    """Writes both sides of a what-if as captures, and the prediction beside them.

    Raises:
        EngineError: The subject cannot be run, or something cannot be written.
        OperationCancelled: Cancelled.
    """
    from engine.core.errors import ScenarioError
    from engine.core.progress import part_of
    from engine.optimizations.catalogue import optimization_registry
    from engine.optimizations.selection import enabled
    from engine.report.prediction import PREDICTION, write_prediction
    from engine.report.subject_provenance import subject_hashes, subject_provenance
    from engine.whatif.run import what_if

    subject = opened_subject(context, request.place)
    registry = optimization_registry()
    rerunning = part_of(context.progress, 0.0, RERUN_SHARE)
    answer = what_if(subject, enabled(request.chosen, registry), registry, rerunning, context.cancel)
    if answer.refused:
        raise ScenarioError(answer.refused[0].reason)
    provenance = {
        **subject_provenance(subject, request.place.paths),
        "enable": [text_of({key: values}) for key, values in request.chosen.items()],
        "files_sha256": subject_hashes(subject),
    }
    write_prediction(answer, directory, provenance, part_of(context.progress, RERUN_SHARE, 1.0), context.cancel)
    return ReportWritten(directory / PREDICTION)


def score_in_worker(context: JobContext, place: SubjectPlace, prediction: Path) -> Scored:
    """Scores an earlier prediction by the captures that are open and notes it in the calibration log.

    Raises:
        EngineError: The prediction or the captures cannot be read, or the log cannot be written.
        OperationCancelled: Cancelled.
    """
    import io
    from datetime import UTC, datetime

    from rich.console import Console

    from engine.formats import TraceCache, open_job
    from engine.formats.readers import built_in_readers
    from engine.report.prediction import read_prediction
    from engine.report.provenance import capture_provenance
    from engine.report.verify import noted, verify_text
    from engine.whatif.subject import capture_subject
    from engine.whatif.verification import score

    said = read_prediction(prediction)
    cache = TraceCache(place.cache_directory)
    job = open_job(place.captures, built_in_readers(), cache=cache, cancel=context.cancel)
    result = score(said, capture_subject(job, context.progress, context.cancel))
    log = calibration_log_place()
    provenance = {**capture_provenance(place.captures), "prediction": str(prediction)}
    known = noted(result, log, datetime.now(UTC).isoformat(timespec="seconds"), provenance)
    written = io.StringIO()
    Console(file=written, width=SCORE_COLUMNS, color_system=None).print(verify_text(result, log, known))
    return Scored(written.getvalue())
