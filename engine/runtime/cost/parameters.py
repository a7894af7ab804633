"""The one frozen file of fitted constants: what each family of operators reaches of what the device could do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from engine.devices.spec import Constant, DeviceDataError, Provenance

DEFAULT_FAMILY = "default"
"""Vector constants of a family that has none of its own."""
DEFAULT_MATMUL = "matmul"
DEFAULT_ATTENTION = "flash_attention"


@dataclass(frozen=True, slots=True)
class FamilyParameters:
    """Constants of one family. Times at the clock and core count of the device, so they carry over to its siblings.

    Attributes:
        fixed_ns: Time of an operator that does nothing: launch, scalar prologue, tiling.
        block_cycles: Vector and attention: cycles per 64 elements (one 256-byte fp32 block) and core. Matmul: extra
            share of a tile's time where the first operand is stored transposed.
        row_cycles: Cycles per row (vector), tile (matmul) or block of queries (attention) and core.
        memory_ratio: Share of the streaming rate it reaches.
        cube_ratio: Share of the matrix rate it reaches inside a tile.
        traffic_ratio: Bytes really moved, over bytes of inputs and outputs.
        unaligned_cycles: Vector: extra cycles per row and core where rows do not start on 32 bytes. Matmul: extra
            share of the time to load such tiles.
        rows_whole: A row stays on one core (reductions), so few rows leave cores idle; else any core takes any part.
        kind: Measured where fitted, else assumed.
        source: From which rows.
    """

    fixed_ns: float
    block_cycles: float
    row_cycles: float
    memory_ratio: float
    cube_ratio: float
    traffic_ratio: float
    unaligned_cycles: float
    rows_whole: bool
    kind: Provenance
    source: str


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
        families = {name: _family(entry) for name, entry in document["families"].items()}
        priors = {name: _family(entry) for name, entry in document["priors"].items()}
        shared = {
            name: Constant(float(entry["value"]), entry["unit"], Provenance(entry["kind"]), entry["source"])
            for name, entry in document["shared"].items()
        }
        needed = {DEFAULT_FAMILY, DEFAULT_MATMUL, DEFAULT_ATTENTION} - families.keys()
        if needed:
            message = f"efficiency.json lacks {', '.join(sorted(needed))}"
            raise DeviceDataError(message)
        return CostParameters(families, priors, shared, document["fitted_on"])
    except (KeyError, TypeError, ValueError) as error:
        message = f"bad efficiency file: {error!r}"
        raise DeviceDataError(message) from error


def _family(entry: Mapping[str, Any]) -> FamilyParameters:
    return FamilyParameters(
        fixed_ns=float(entry["fixed_ns"]),
        block_cycles=float(entry["block_cycles"]),
        row_cycles=float(entry["row_cycles"]),
        memory_ratio=float(entry["memory_ratio"]),
        cube_ratio=float(entry["cube_ratio"]),
        traffic_ratio=float(entry["traffic_ratio"]),
        unaligned_cycles=float(entry["unaligned_cycles"]),
        rows_whole=bool(entry["rows_whole"]),
        kind=Provenance(entry["kind"]),
        source=entry["source"],
    )


@cache
def load_parameters() -> CostParameters:
    """Returns the shipped parameters. They are immutable, so one parsed copy serves everybody."""
    path = resources.files("engine.devices").joinpath("data", "efficiency.json")
    return parameters_from_document(json.loads(path.read_text(encoding="utf-8")))
