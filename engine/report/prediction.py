"""What ``whatif -o`` leaves: both sides as captures, and the prediction for later judgement."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.errors import ExportError, ScenarioError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.report.optimizations import switch_documents
from engine.report.run_capture import check_profiled, write_ranks
from engine.whatif.prediction import Prediction, prediction_document, prediction_from_document, prediction_of
from engine.whatif.results import Side, WhatIf

PREDICTION = "prediction.json"
BASELINE, CANDIDATE = "baseline", "candidate"


def write_prediction(
    result: WhatIf,
    directory: Path,
    provenance: Mapping[str, Any],
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> None:
    """Writes ``baseline`` and ``candidate`` (a profiler directory per rank) and ``prediction.json``.

    Args:
        result: A what-if that was rerun.
        directory: Receives them.
        provenance: Versions, hashes of what was read, the command.
        progress: Told what is done.
        cancel: Looked at between ranks.

    Raises:
        ScenarioError: A simulated side profiled no step.
        ExportError: Something cannot be written.
        OperationCancelled: Cancelled.
    """
    _write_side(result.baseline, directory / BASELINE, part_of(progress, 0.0, 0.5), cancel)
    _write_side(result.candidate, directory / CANDIDATE, part_of(progress, 0.5, 1.0), cancel)
    document = prediction_document(prediction_of(result))
    document["switches"] = {item.id: switch_documents(item.optimization, result.platform) for item in result.enabled}
    document["verify"] = {item.id: item.optimization.verify for item in result.enabled}
    document["assumptions"] = list(result.assumptions)
    document["provenance"] = dict(provenance)
    path = directory / PREDICTION
    try:
        path.write_text(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}; choose another place with -o") from error


def read_prediction(path: Path) -> Prediction:
    """Returns the prediction in a file. Raises ScenarioError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(
            f"{path}: cannot be read: {error.strerror or error}; give the path of {PREDICTION}"
        ) from error
    except ValueError as error:
        raise ScenarioError(f"{path}: not JSON: {error}; whatif -o DIR writes one as {PREDICTION}") from error
    try:
        return prediction_from_document(document)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from error


def _write_side(side: Side, parent: Path, progress: Progress, cancel: CancelToken) -> None:
    if side.run is not None:
        check_profiled(side.run)
    write_ranks(side.record(part_of(progress, 0.0, 0.5), cancel), parent, part_of(progress, 0.5, 1.0), cancel)
