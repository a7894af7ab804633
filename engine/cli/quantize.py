"""``cannscope quantize``: what fewer bits do to a model's weights."""

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.errors import EngineError
from engine.report.quantization import quantization_document, quantization_text
from engine.workloads.quantization.plan import quantization_plan
from engine.workloads.quantization.sqnr import Granularity
from engine.workloads.quantization.weights import model_weights


def quantize(
    model: Annotated[Path, typer.Argument(help="ONNX file, safetensors file, or directory of safetensors files.")],
    bits: Annotated[str, typer.Option(help="Bits to try, as 4,8.")] = "4,8",
    granularity: Annotated[
        Granularity, typer.Option(help="What shares one scale: a tensor, an output channel, 128 elements of one.")
    ] = Granularity.CHANNEL,
    bound_db: Annotated[
        float, typer.Option("--bound-db", help="Least signal-to-quantization-noise of a layer, dB.")
    ] = 30.0,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Rank the layers of a model by what rounding their weights loses, and plan the bits of each.

    Measured on the real tensors. What that means for answers depends on data this program has not seen.

    Example: cannscope quantize model.safetensors --bits 4,8 --bound-db 30
    """
    output = Output(as_json, quiet, verbose)
    with output.progress() as progress:
        plan = quantization_plan(model_weights(model), _bits(bits), granularity, bound_db, progress)
    if as_json:
        output.document(quantization_document(plan, str(model)))
    else:
        output.stdout.print(quantization_text(plan, model.name))
    return 0


def _bits(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError as error:
        raise EngineError(f"--bits {text}: write whole numbers separated by commas, as 4,8") from error
