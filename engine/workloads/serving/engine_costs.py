"""What the program of a serving engine costs the host, from the data file with its provenance."""

import json
from dataclasses import dataclass
from importlib import resources

from engine.devices.spec import DeviceSpec


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """Host time of a serving engine written in Python.

    Attributes:
        iteration_ns: Scheduling, preparing inputs, sampling and detokenising: nothing hides it.
        sequence_ns: Likewise, per running sequence.
        operator_ns: Dispatch of one operator where they are dispatched one by one, the model's Python code included.
        provenance: Where they come from.
    """

    iteration_ns: float
    sequence_ns: float
    operator_ns: float
    provenance: str


def engine_costs(device: DeviceSpec) -> EngineCosts:
    """Returns the shipped costs for a vendor's devices."""
    text = resources.files("engine.workloads.serving").joinpath("data", "engine.json").read_text(encoding="utf-8")
    costs = json.loads(text)["vendors"][device.vendor]
    return EngineCosts(
        iteration_ns=float(costs["iteration_ns"]["value"]),
        sequence_ns=float(costs["sequence_ns"]["value"]),
        operator_ns=float(costs["operator_ns"]["value"]),
        provenance="; ".join(f"{name}: {entry['kind']}, {entry['source']}" for name, entry in costs.items()),
    )
