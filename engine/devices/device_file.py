"""A device in a file of the user's: what a calibration wrote, or a data file in the catalogue's own form."""

import json
import math
from collections.abc import Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from engine.devices.catalogue import (
    FORMAT,
    constants_from_document,
    device_from_document,
    family_from_document,
    load_device,
    topology_of,
)
from engine.devices.spec import DeviceDataError, DeviceSpec

CALIBRATION = "cannscope.calibration/1"
"""Schema of what ``cannscope devices --calibrate CAPTURE -o FILE`` writes."""
_USABLE = f'give the file that "cannscope devices --calibrate CAPTURE -o FILE" wrote, or a data file of format {FORMAT}'


def read_device(path: Path) -> DeviceSpec:
    """Returns the device in a file; fitted families come with it.

    Raises:
        DeviceDataError: Not readable, neither form, or a constant that is missing or no positive number.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DeviceDataError(f"{path}: cannot be read: {error.strerror or error}; {_USABLE}") from error
    except (ValueError, RecursionError) as error:
        raise DeviceDataError(f"{path}: no JSON: {error}; {_USABLE}") from error
    if not isinstance(document, Mapping):
        raise DeviceDataError(f"{path}: holds no JSON object; {_USABLE}")
    try:
        device = _device(document)
        _check_numbers(device)
        topology_of(device)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DeviceDataError(f"{path}: bad entry: {error!r}; {_USABLE}") from error
    except DeviceDataError as error:
        raise DeviceDataError(f"{path}: {error}") from error
    return device


def _device(document: Mapping[str, Any]) -> DeviceSpec:
    if document.get("schema") == CALIBRATION:
        return _calibrated(document)
    if document.get("format") == FORMAT and "constants" in document:
        return device_from_document(document)
    stated = document.get("schema", document.get("format"))
    raise DeviceDataError(f"is no device (schema or format {stated!r}); {_USABLE}")


def _calibrated(document: Mapping[str, Any]) -> DeviceSpec:
    """Returns the catalogue's device the calibration began with, with what it found."""
    base = load_device(document["nearest"])
    return replace(
        base,
        title=f"{base.title}, calibrated to {Path(document['capture']).name}",
        constants={**base.constants, **constants_from_document(document["device"]["constants"])},
        families={name: family_from_document(entry) for name, entry in document["efficiency"]["families"].items()},
    )


def _check_numbers(device: DeviceSpec) -> None:
    """Raises DeviceDataError for a number no price can be computed from."""
    for name, constant in device.constants.items():
        if not 0.0 <= constant.value < math.inf:
            raise DeviceDataError(f"constant {name} is {constant.value}; it must be a finite number of at least 0")
    for name, family in device.families.items():
        numbers = [value for value in astuple(family) if type(value) is float]
        if not all(0.0 <= number < math.inf for number in numbers):
            raise DeviceDataError(f"family {name} has a constant that is negative or not finite")
