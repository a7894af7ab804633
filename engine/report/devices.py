"""What can be simulated, with the provenance of every constant: the ``devices`` and ``models`` documents and texts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_bytes
from engine.devices.catalogue import topology_of
from engine.devices.spec import Constant, DeviceSpec, DType
from engine.devices.topology import Link, Topology
from engine.runtime.cost.parameters import CostParameters, FamilyParameters
from engine.workloads.models.catalogue import CataloguedModel
from engine.workloads.models.counts import parameter_counts


def devices_document(devices: Sequence[DeviceSpec], parameters: CostParameters) -> dict[str, Any]:
    """Returns the document ``cannscope.devices/1``: devices, their topologies and the fitted constants."""
    topologies = {device.topology: topology_of(device) for device in devices}
    return {
        "schema": "cannscope.devices/1",
        "devices": [_device_document(device) for device in devices],
        "topologies": [_topology_document(topology) for _, topology in sorted(topologies.items())],
        "efficiency": {
            "fitted_on": parameters.fitted_on,
            "families": families_document(parameters.families),
            "shared": constants_document(parameters.shared),
        },
    }


def _device_document(device: DeviceSpec) -> dict[str, Any]:
    return {
        "id": device.id,
        "title": device.title,
        "vendor": device.vendor,
        "soc_names": list(device.soc_names),
        "aliases": list(device.aliases),
        "die_count": device.die_count,
        "topology": device.topology,
        "derived": {
            "cube_flop_per_s": {
                dtype.name.lower(): device.cube_flop_per_s(dtype)
                for dtype in (DType.FP16, DType.BF16, DType.FP32, DType.INT8)
                if device.supports(dtype)
            },
            "vector_fp32_lanes_per_s": device.vector_bytes_per_s / 4,
            "l2_read_bytes_per_s": device.l2_read_bytes_per_s,
            "hbm_usable_bytes": device.hbm_usable_bytes,
        },
        "constants": constants_document(device.constants),
        "measured": constants_document(device.measured),
    }


def families_document(families: Mapping[str, FamilyParameters]) -> dict[str, Any]:
    """Returns fitted constants by family."""
    return {name: {**asdict(family), "kind": family.kind.value} for name, family in families.items()}


def constants_document(constants: Mapping[str, Constant]) -> dict[str, Any]:
    """Returns constants by name, each with value, unit, kind and source."""
    return {name: _constant_document(constant) for name, constant in constants.items()}


def _constant_document(constant: Constant) -> dict[str, Any]:
    return {
        "value": constant.value,
        "unit": constant.unit,
        "kind": constant.kind.value,
        "source": constant.source,
    }


def _topology_document(topology: Topology) -> dict[str, Any]:
    return {
        "id": topology.id,
        "title": topology.title,
        "devices_per_package": topology.devices_per_package,
        "devices_per_node": topology.devices_per_node,
        "nodes_per_supernode": topology.nodes_per_supernode,
        "links": [
            {
                "kind": link.kind.value,
                "reach": link.reach.value,
                "layout": link.layout.value,
                **{name: _constant_document(constant) for name, constant in _link_constants(link)},
            }
            for link in topology.links
        ],
    }


def _link_constants(link: Link) -> tuple[tuple[str, Constant], ...]:
    return (
        ("bytes_per_s", link.bytes_per_s),
        ("link_count", link.link_count),
        ("latency_ns", link.latency_ns),
        ("efficiency_ratio", link.efficiency_ratio),
    )


def devices_text(devices: Sequence[DeviceSpec]) -> RenderableType:
    """Returns the catalogue for people: a row per device and how its constants are known."""
    table = Table(
        "device", "name", "cube cores", "TFLOPS fp16", "memory", "TB/s", "L2", "links", "spec", "measured", "assumed"
    )
    for device in devices:
        kinds = Counter(constant.kind.value for constant in device.constants.values())
        table.add_row(
            device.id,
            device.title,
            str(device.cube_core_count),
            f"{device.cube_flop_per_s(DType.FP16) / 1e12:.1f}",
            format_bytes(device.hbm_bytes),
            f"{device.hbm_bytes_per_s / 1e12:.2f}",
            format_bytes(device.l2_bytes),
            device.topology,
            *(str(kinds[kind]) for kind in ("spec", "measured", "assumed")),
        )
    return Group(table, Text("cannscope devices ID prints every constant with its source."))


def device_text(device: DeviceSpec) -> RenderableType:
    """Returns every constant of one device and its links, each with kind and source."""
    topology = topology_of(device)
    names = ", ".join((*device.soc_names, *device.aliases))
    parts: list[RenderableType] = [
        Text(f"{device.id}: {device.title} ({names})"),
        _constants_table("constants", device.constants.items()),
        *([_constants_table("measured, to judge by", device.measured.items())] if device.measured else []),
    ]
    for link in topology.links:
        title = f"{topology.title}: {link.kind.value} within the {link.reach.value}, {link.layout.value}"
        parts.append(_constants_table(title.replace("_", " "), _link_constants(link)))
    return Group(*parts)


def _constants_table(title: str, constants: Iterable[tuple[str, Constant]]) -> Table:
    table = Table("constant", "value", "unit", "known by", "source", title=title, title_justify="left")
    for name, constant in constants:
        table.add_row(name, f"{constant.value:,.6g}", constant.unit, constant.kind.value, constant.source)
    return table


def models_document(models: Sequence[CataloguedModel]) -> dict[str, Any]:
    """Returns the document ``cannscope.models/1``."""
    return {"schema": "cannscope.models/1", "models": [_model_document(model) for model in models]}


def _model_document(model: CataloguedModel) -> dict[str, Any]:
    counts = parameter_counts(model.spec)
    shapes = {name: value for name, value in asdict(model.spec).items() if name not in {"id", "source", "dtype"}}
    return {
        "id": model.spec.id,
        "title": model.title,
        "kind": model.kind.value,
        "source": model.spec.source,
        "dtype": model.spec.dtype.name.lower(),
        "shapes": shapes,
        "parameters": {**asdict(counts), "total_count": counts.total_count, "active_count": counts.active_count},
        "published_parameters": model.published_parameters,
        "published_source": model.published_source,
    }


def models_text(models: Sequence[CataloguedModel]) -> RenderableType:
    """Returns the same for people."""
    table = Table(
        "model", "weights", "active", "layers", "hidden", "heads", "experts", "vocabulary", "known by", "source"
    )
    for model in models:
        spec, counts = model.spec, parameter_counts(model.spec)
        table.add_row(
            spec.id,
            f"{counts.total_count / 1e9:.2f} B",
            f"{counts.active_count / 1e9:.2f} B",
            str(spec.layers),
            str(spec.hidden),
            f"{spec.heads}/{spec.kv_heads}",
            f"{spec.top_k} of {spec.experts}" if spec.experts else "–",
            str(spec.vocab),
            model.kind.value,
        )
    return Group(table, Text("cannscope models --json gives shapes and sources."))
