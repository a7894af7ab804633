"""The one frozen file of fitted constants: what each family of operators reaches of what the device could do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from engine.devices.catalogue import constants_from_document, family_from_document
from engine.devices.spec import Constant, DeviceDataError, DeviceSpec, FamilyParameters

__all__ = ["CostParameters", "FamilyParameters", "load_parameters", "parameters_from_document"]

DEFAULT_FAMILY = "default"
"""Vector constants of a family that has none of its own."""
DEFAULT_MATMUL = "matmul"
DEFAULT_ATTENTION = "flash_attention"


@dataclass(frozen=True, slots=True)
class CostParameters:
    """Everything fitted.

    Attributes:
        families: By family name; ``default``, ``matmul`` and ``flash_attention`` stand in for families without.
        priors: Where fits begin, by law in lower case: physics without any measurement.
        shared: Constants all families share: streaming shares and the like.
        fitted_on: One line for people: rows, date, method.
    """

    families: Mapping[str, FamilyParameters]
    priors: Mapping[str, FamilyParameters]
    shared: Mapping[str, Constant]
    fitted_on: str

    def on(self, device: DeviceSpec) -> "CostParameters":
        """Returns the parameters with the families that were fitted on this very device in place of these."""
        return replace(self, families={**self.families, **device.families}) if device.families else self

    def shared_value(self, name: str) -> float:
        """Returns a shared constant. Raises DeviceDataError where there is none of that name."""
        try:
            return self.shared[name].value
        except KeyError:
            message = f"efficiency.json has no shared constant {name}"
            raise DeviceDataError(message) from None


def parameters_from_document(document: Mapping[str, Any]) -> CostParameters:
    """Returns the parameters a parsed file describes. Raises DeviceDataError."""
    try:
        families = {name: family_from_document(entry) for name, entry in document["families"].items()}
        priors = {name: family_from_document(entry) for name, entry in document["priors"].items()}
        shared = constants_from_document(document["shared"])
        needed = {DEFAULT_FAMILY, DEFAULT_MATMUL, DEFAULT_ATTENTION} - families.keys()
        if needed:
            message = f"efficiency.json lacks {', '.join(sorted(needed))}"
            raise DeviceDataError(message)
        return CostParameters(families, priors, shared, document["fitted_on"])
    except (KeyError, TypeError, ValueError) as error:
        message = f"bad efficiency file: {error!r}"
        raise DeviceDataError(message) from error


@cache
def load_parameters() -> CostParameters:
    """Returns the shipped parameters. They are immutable, so one parsed copy serves everybody."""
    path = resources.files("engine.devices").joinpath("data", "efficiency.json")
    return parameters_from_document(json.loads(path.read_text(encoding="utf-8")))
