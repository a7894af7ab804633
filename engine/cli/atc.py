"""``cannscope atc``: an ONNX model compiled for a simulated device."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.core.errors import EngineError
from engine.devices.catalogue import device_ids, device_named, load_device
from engine.devices.spec import DeviceSpec
from engine.report.atc import atc_document, atc_text
from engine.workloads.onnx_models.estimate import compile_model
from engine.workloads.onnx_models.input_shapes import parse_input_shapes

ONNX_FRAMEWORK = 5
"""atc's number for ONNX."""
_SHRINK_NOTICE = (
    "--graph_op_shrink is a simulator term: real atc fuses by default; --fusion_switch_file turns single rules off"
)


def atc(
    model: Annotated[Path, typer.Option("--model", help="ONNX model.")],
    soc_version: Annotated[str, typer.Option("--soc_version", help="Target, as Ascend910B2.")],
    output_path: Annotated[Path | None, typer.Option("--output", help="Where the optimized model goes.")] = None,
    framework: Annotated[int, typer.Option("--framework", help="5 for ONNX, the only one read.")] = ONNX_FRAMEWORK,
    input_shape: Annotated[
        str, typer.Option("--input_shape", help='Shapes of inputs, as "x:-1,3,224,224;y:1,10".')
    ] = "",
    dynamic_batch_size: Annotated[
        str, typer.Option("--dynamic_batch_size", help='Batch sizes that replace -1, as "1,8,32".')
    ] = "",
    graph_op_shrink: Annotated[
        str, typer.Option("--graph_op_shrink", help="enable or disable graph fusion (simulator term).")
    ] = "enable",
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> int:
    """Optimize an ONNX graph for a device and estimate its latency and throughput before and after (simulated).

    Example: cannscope atc --model m.onnx --framework 5 --output out --soc_version Ascend910B --graph_op_shrink enable
    """
    output = Output(as_json, quiet, verbose)
    if framework != ONNX_FRAMEWORK:
        raise EngineError(f"--framework {framework}: only 5 (ONNX) can be read; export the model to ONNX")
    if graph_op_shrink not in ("enable", "disable"):
        raise EngineError(f"--graph_op_shrink {graph_op_shrink}: write enable or disable")
    device, notices = _target(soc_version)
    batches = _batches(dynamic_batch_size)
    shapes = parse_input_shapes(input_shape)
    shrink = graph_op_shrink == "enable"
    with output.progress() as progress:
        result = compile_model(model, device, shapes, batches, output_path, shrink=shrink, progress=progress)
    result = replace(result, notices=(*notices, _SHRINK_NOTICE))
    if as_json:
        output.document(atc_document(result))
    else:
        output.stdout.print(atc_text(result))
    return 0


def _target(soc_version: str) -> tuple[DeviceSpec, tuple[str, ...]]:
    """Returns the device of a ``--soc_version`` and what had to be assumed."""
    if soc_version.casefold() == "ascend910b":
        return load_device("910b2"), ("Ascend910B names no single device: 910B2 is taken; write Ascend910B1 … B4",)
    device = device_named(soc_version)
    if device is None:
        known = sorted(name for item in device_ids() for name in load_device(item).soc_names)
        raise EngineError(f"--soc_version {soc_version}: not a known device; known: {', '.join(known)}")
    return device, ()


def _batches(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise EngineError(f'--dynamic_batch_size {text}: write it as "1,8,32"') from error
    if any(size < 1 for size in sizes):
        raise EngineError(f"--dynamic_batch_size {text}: batch sizes are at least 1")
    return sizes
