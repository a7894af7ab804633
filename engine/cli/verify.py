"""``cannscope verify``: what became of an earlier prediction."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import EXIT_NO, JsonFlag, Output, Paths, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.progress import part_of
from engine.core.user_places import calibration_log_place
from engine.report.prediction import read_prediction
from engine.report.provenance import capture_provenance
from engine.report.verify import noted, verify_document, verify_text
from engine.whatif.subject import capture_subject
from engine.whatif.verification import score


def verify(
    prediction: Annotated[Path, typer.Argument(help="prediction.json of an earlier whatif -o.")],
    paths: Paths,
    log: Annotated[
        Path | None, typer.Option("--log", help="Calibration log; in the user's data directory where left out.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Score a prediction by the capture made after doing what it asked for, and keep the score.

    Exit code 1 where the new step is outside the predicted range.

    Example: cannscope verify out/prediction.json capture_after_ascend_pt
    """
    output = Output(as_json, quiet, verbose)
    said = read_prediction(prediction)
    with output.progress() as progress:
        job = open_capture(paths, part_of(progress, 0.0, 0.5))
        result = score(said, capture_subject(job, part_of(progress, 0.5, 0.8)), part_of(progress, 0.8, 1.0))
    place = log or calibration_log_place()
    provenance = {**capture_provenance(paths), "prediction": str(prediction)}
    known = noted(result, place, datetime.now(UTC).isoformat(timespec="seconds"), provenance)
    if as_json:
        output.document(verify_document(result, place, known, provenance))
    else:
        output.stdout.print(verify_text(result, place, known))
    return 0 if result.is_in_range else EXIT_NO
