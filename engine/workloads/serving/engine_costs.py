"""What the program of a serving engine costs the host, from the data file with its provenance."""

import json
from importlib import resources

from engine.devices.spec import DeviceSpec
from engine.workloads.serving.pricing import EngineCosts


def engine_costs(device: DeviceSpec) -> EngineCosts:
    """Returns the shipped costs for a vendor's devices."""
    text = resources.files("engine.workloads.serving").joinpath("data", "engine.json").read_text(encoding="utf-8")
    costs = json.loads(text)["vendors"][device.vendor]
    iteration, sequence = costs["iteration_ns"], costs["sequence_ns"]
    return EngineCosts(
        iteration_ns=float(iteration["value"]),
        sequence_ns=float(sequence["value"]),
        provenance=f"{iteration['kind']}: {iteration['source']}",
    )
