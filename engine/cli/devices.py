"""``cannscope devices``: what can be simulated, with the provenance of every constant."""

from typing import Annotated

import typer

from engine.cli.console import JsonFlag, Output, QuietFlag, VerboseFlag
from engine.devices.catalogue import device_ids, load_device
from engine.report.devices import device_text, devices_document, devices_text
from engine.runtime.cost.parameters import load_parameters


def devices(
    device: Annotated[str | None, typer.Argument(help="One device, with every constant; all by default.")] = None,
    as_json: JsonFlag = False,
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
) -> None:
    """Devices that can be simulated: sizes, rates, links, each constant with its source.

    Example: cannscope devices 910b2
    """
    output = Output(as_json, quiet, verbose)
    chosen = [load_device(name) for name in ([device] if device else device_ids())]
    if as_json:
        output.document(devices_document(chosen, load_parameters()))
    elif device:
        output.stdout.print(device_text(chosen[0]))
    else:
        output.stdout.print(devices_text(chosen))
