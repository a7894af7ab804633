"""``cannscope devices``: what can be simulated, with the provenance of every constant; a spec fitted to a capture."""

import json
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.cli.opening import open_capture
from engine.core.errors import ExportError
from engine.core.progress import part_of
from engine.devices.catalogue import device_ids, load_device
from engine.report.calibration import calibration_document, calibration_text
from engine.report.devices import device_text, devices_document, devices_text
from engine.runtime.cost.parameters import load_parameters
from engine.workloads.calibration.calibrate import calibrate as calibrate_device


def devices(
    device: Annotated[
        str | None, typer.Argument(help="One device, with every constant; with --calibrate, what the capture ran on.")
    ] = None,
    calibrate: Annotated[
        Path | None, typer.Option(help="Capture whose kernels (shapes and times) a device is fitted to.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="With --calibrate: file for the fitted device.")
    ] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Devices that can be simulated: sizes, rates, links, each constant with its source.

    With --calibrate, fits one to a capture and says how well it predicts kernels the fit did not see.

    Example: cannscope devices 910b2

    Example: cannscope devices --calibrate capture_ascend_pt
    """
    printer = Output(as_json, quiet, verbose)
    if calibrate is not None:
        _calibrate(printer, calibrate, device, output)
        return
    if output is not None:
        message = "--output needs --calibrate."
        raise typer.BadParameter(message)
    chosen = [load_device(name) for name in ([device] if device else device_ids())]
    if as_json:
        printer.document(devices_document(chosen, load_parameters()))
    elif device:
        printer.stdout.print(device_text(chosen[0]))
    else:
        printer.stdout.print(devices_text(chosen))


def _calibrate(printer: Output, path: Path, device: str | None, output: Path | None) -> None:
    base = load_device(device) if device else None
    with printer.progress() as progress:
        job = open_capture([path], part_of(progress, 0.0, 0.3))
        found = calibrate_device(job, path.name, base, part_of(progress, 0.3, 1.0))
    document = calibration_document(found, str(path))
    if output is not None:
        try:
            output.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ExportError(f"{output}: {error.strerror or error}; choose another file") from error
    if printer.as_json:
        printer.document(document)
    else:
        printer.stdout.print(calibration_text(found, str(path)))
