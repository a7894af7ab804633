"""Fits the constants of small messages and of clusters' networks to vidur's profile, and judges the fit on other rows.

The formulas stay; a seeded random walk over the logarithms of a few constants looks for the least mean relative error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from engine.core.arrays import BoolArray, Float64Array
from engine.core.progress import Progress, part_of
from engine.graph.collective_kinds import CollectiveKind
from engine.runtime.collectives.durations import collective_durations
from engine.runtime.collectives.network import measured_constants, measured_system

Path = tuple[str, ...]
STEPS = 600
_WIDTH, _COOLING, _COOL_EVERY = 0.6, 0.75, 100
_LIMITS = {
    "base_ns": (100.0, 1e6),
    "step_ns": (50.0, 1e5),
    "lane_bytes_per_s": (4e8, 5e10),
    "copy_bytes_per_s": (1e11, 2e12),
}
_NVLINK_BYTES_PER_S = 2.5e10
"""One NVLink lane by its data sheet: no fit may find more inside a server."""
_STARTS = {"base_ns": 2e4, "step_ns": 2e3, "lane_bytes_per_s": 1e10, "copy_bytes_per_s": 5e11}


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredGroup:
    """Collectives of one system, kind and group. float64 columns, shape (n,).

    Attributes:
        system: Key of the constants' systems.
        kind: What they do.
        ranks: Who takes part.
        size_bytes: Whole tensors.
        measured_ns: What they took.
    """

    system: str
    kind: CollectiveKind
    ranks: Sequence[int]
    size_bytes: Float64Array
    measured_ns: Float64Array

    def predicted_ns(self, constants: Mapping[str, Any]) -> Float64Array:
        """Returns what the formulas say with these constants."""
        network = measured_system(self.system, constants)
        return collective_durations(self.kind, self.size_bytes, self.ranks, network).astype(np.float64)

    @property
    def leaves_server(self) -> bool:
        """Whether members stand on several servers."""
        return len(measured_system(self.system).by_node(self.ranks)) > 1


def _under(root: Path, *names: str) -> tuple[Path, ...]:
    return tuple((*root, *name.split(".")) for name in names)


_NORMAL = ("base_ns", "step_ns", "lane_bytes_per_s")
_QUICK = ("quick.base_ns", "quick.step_ns", "quick.lane_bytes_per_s")
_SEND = tuple(
    f"point_to_point.{name}" for name in ("base_ns", "lane_bytes_per_s", "quick.base_ns", "quick.lane_bytes_per_s")
)
_A100, _H100 = ("topologies", "a100", "node"), ("topologies", "h100", "node")
_CLUSTER_A100 = ("systems", "a100_dgx", "links", "cluster")
_CLUSTER_H100 = ("systems", "h100_dgx", "links", "cluster")
_PAIRS = ("systems", "a100_pairwise_nvlink", "links", "node")
_FREE: dict[tuple[str, bool, bool], tuple[Path, ...]] = {
    ("a100_dgx", False, False): _under(_A100, *_QUICK),
    ("a100_dgx", True, False): _under(_A100, *_SEND),
    ("a100_dgx", False, True): _under(_CLUSTER_A100, *_NORMAL, *_QUICK),
    ("a100_dgx", True, True): _under(_CLUSTER_A100, *_SEND),
    ("h100_dgx", False, False): _under(_H100, *_NORMAL, "copy_bytes_per_s", *_QUICK),
    ("h100_dgx", True, False): _under(_H100, *_SEND),
    ("h100_dgx", True, True): _under(_CLUSTER_H100, *_SEND),
    ("a100_pairwise_nvlink", False, False): _under(_PAIRS, *_NORMAL),
}
"""(system, whether it is sends, whether servers are left) → constants such rows decide."""


def unseen_predictions(groups: Sequence[MeasuredGroup], progress: Progress) -> list[Float64Array]:
    """Returns predictions of all rows by constants fitted to the other half of their group (every other size)."""
    predicted = [np.zeros(len(group.size_bytes)) for group in groups]
    for half in (0, 1):
        stage = part_of(progress, half / 2, (half + 1) / 2)
        seen = [np.arange(len(group.size_bytes)) % 2 == half for group in groups]
        constants = fitted_constants(groups, seen, stage)
        for group, mask, answer in zip(groups, seen, predicted, strict=True):
            answer[~mask] = group.predicted_ns(constants)[~mask]
    return predicted


def fitted_constants(groups: Sequence[MeasuredGroup], seen: Sequence[BoolArray], progress: Progress) -> dict[str, Any]:
    """Returns the constants with the free ones fitted to the rows of ``seen``, from one start for all."""
    constants = measured_constants()
    families: dict[tuple[str, bool, bool], list[int]] = {}
    for index, group in enumerate(groups):
        key = (group.system, group.kind is CollectiveKind.SEND_RECEIVE, group.leaves_server)
        families.setdefault(key, []).append(index)
    for paths in (_FREE[key] for key in families):
        for path in paths:
            _leaf(constants, path)["value"] = _STARTS[path[-1]]
    for done, (key, members) in enumerate(families.items()):
        progress(done / len(families), f"fitting {key[0]}")
        _walk(constants, _FREE[key], [(groups[index], seen[index]) for index in members])
    return constants


def _leaf(constants: dict[str, Any], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = reduce(lambda node, name: node[name], path, constants)
    return found


def _walk(constants: dict[str, Any], paths: Sequence[Path], rows: Sequence[tuple[MeasuredGroup, BoolArray]]) -> None:
    """Changes one or two constants at a time and keeps what lowers the error; the changes become smaller."""
    random = np.random.default_rng(0)
    leaves = [_leaf(constants, path) for path in paths]
    limits = [_limits(path) for path in paths]
    best, width = _error(constants, rows), _WIDTH
    for step in range(1, STEPS + 1):
        chosen = random.choice(len(leaves), size=min(int(random.integers(1, 3)), len(leaves)), replace=False).tolist()
        before = [leaves[index]["value"] for index in chosen]
        for index in chosen:
            moved = leaves[index]["value"] * np.exp(width * random.normal())
            leaves[index]["value"] = float(np.clip(moved, *limits[index]))
        error = _error(constants, rows)
        if error < best:
            best = error
        else:
            for index, value in zip(chosen, before, strict=True):
                leaves[index]["value"] = value
        if step % _COOL_EVERY == 0:
            width *= _COOLING


def _limits(path: Path) -> tuple[float, float]:
    low, high = _LIMITS[path[-1]]
    inside_server = "node" in path and path[-1] == "lane_bytes_per_s"
    return low, min(high, _NVLINK_BYTES_PER_S) if inside_server else high


def _error(constants: Mapping[str, Any], rows: Sequence[tuple[MeasuredGroup, BoolArray]]) -> float:
    errors = [np.abs(group.predicted_ns(constants) / group.measured_ns - 1.0)[mask] for group, mask in rows]
    return float(np.concatenate(errors).mean())
