"""``cannscope models``: the models that can be simulated."""

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.report.devices import models_document, models_text
from engine.workloads.models.catalogue import catalogued_model, model_ids


def models(as_json: JsonFlag = False, quiet: QuietFlag = False, verbose: VerboseFlag = False) -> None:
    """Models that can be simulated: shapes, weights, where they come from.

    Example: cannscope models --json
    """
    output = Output(as_json, quiet, verbose)
    chosen = [catalogued_model(model_id) for model_id in model_ids()]
    if as_json:
        output.document(models_document(chosen))
    else:
        output.stdout.print(models_text(chosen))
