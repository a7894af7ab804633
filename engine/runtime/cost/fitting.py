"""Fits the constants of families to measured rows.

Every row is one or more kernels whose times add up. For each family, constants are moved one at a time by fixed factors
while the loss falls, from several starts: mean |ln(predicted / measured)| plus a small pull towards the prior, which
keeps constants the rows say nothing about where physics put them. No randomness: the same rows give the same constants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.core.arrays import BoolArray, Float64Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.devices.spec import DeviceSpec, Provenance
from engine.runtime.cost.durations import operator_durations
from engine.runtime.cost.operators import Law, OperatorTable
from engine.runtime.cost.parameters import CostParameters, FamilyParameters

FACTORS = (0.3, 0.5, 0.7, 0.85, 0.95, 1.05, 1.18, 1.4, 2.0, 3.3)
"""By what a constant is multiplied to see whether the loss falls."""
JUMPS = (10.0, 40.0, 100.0)
"""The same for fixed times, which span more than rates do: a benchmark's runner takes 50 times a kernel's launch."""
PULL = 0.004
"""Loss of moving one constant by a factor of e away from its prior."""
ROUNDS = 25
"""Most rounds over all families; each stops earlier when nothing improves."""
_RATIO = (0.1, 1.3)
_VECTOR_RATIO = (0.6, 1.3)
_CYCLES = (0.05, 1e5)
_FIXED = (300.0, 6e5)
FREE: Mapping[Law, Mapping[str, tuple[float, float]]] = {
    Law.VECTOR: {
        "block_cycles": _CYCLES,
        "row_cycles": _CYCLES,
        "memory_ratio": _VECTOR_RATIO,
        "unaligned_cycles": _CYCLES,
        "fixed_ns": _FIXED,
    },
    Law.MATMUL: {
        "cube_ratio": (0.05, 1.0),
        "memory_ratio": _RATIO,
        "row_cycles": _CYCLES,
        "block_cycles": (0.02, 2.0),
        "traffic_ratio": (0.01, 1.0),
        "unaligned_cycles": (0.01, 20.0),
        "fixed_ns": _FIXED,
    },
    Law.ATTENTION: {
        "cube_ratio": (0.05, 1.0),
        "block_cycles": _CYCLES,
        "row_cycles": _CYCLES,
        "memory_ratio": _RATIO,
        "fixed_ns": _FIXED,
    },
}
"""Constants that are fitted, by law, with the range physics allows; rates come first: a single shape moves a rate."""

STARTS: Mapping[Law, Sequence[Mapping[str, float]]] = {
    Law.VECTOR: ({}, {"block_cycles": 0.2, "row_cycles": 0.2}, {"block_cycles": 3.0, "memory_ratio": 1.4}),
    Law.MATMUL: ({},),
    Law.ATTENTION: ({}, {"block_cycles": 0.3}),
}
"""Where descents begin, as factors on the prior: as it is, bound by memory, bound by computing."""
START_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class MeasuredKernels:
    """Measured rows of one device.

    Attributes:
        device: Where they were measured.
        kernels: Kernels of all rows.
        row: int64, row of each kernel.
        measured_ns: float64, shape (rows,).
    """

    device: DeviceSpec
    kernels: OperatorTable
    row: Int64Array
    measured_ns: Float64Array

    def predicted_ns(self, parameters: CostParameters) -> Float64Array:
        """Returns float64, shape (rows,): the kernels of each row added up."""
        kernel_ns = operator_durations(self.device, self.kernels, parameters).astype(np.float64)
        return np.asarray(np.bincount(self.row, kernel_ns, minlength=len(self.measured_ns)), np.float64)

    def touching(self, family: str) -> "MeasuredKernels | None":
        """Returns the rows that have a kernel of the family, None where none has."""
        if family not in self.kernels.families:
            return None
        code = self.kernels.families.index(family)
        rows = np.zeros(len(self.measured_ns), np.bool_)
        rows[self.row[self.kernels.family == code]] = True
        if not rows.any():
            return None
        return self.select(rows)

    def select(self, rows: BoolArray) -> "MeasuredKernels":
        """Returns the rows of a mask."""
        kept = rows[self.row]
        place = (np.cumsum(rows) - 1).astype(np.int64)
        return MeasuredKernels(self.device, self.kernels.select(kept), place[self.row[kept]], self.measured_ns[rows])


def fit_families(
    rows: Sequence[MeasuredKernels],
    start: CostParameters,
    source: str,
    *,
    fixed: frozenset[str] = frozenset(),
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> CostParameters:
    """Returns ``start`` with the families of ``rows`` fitted to them.

    Args:
        rows: Measured rows, one entry per device.
        start: Where the constants begin; families it lacks begin at their law's prior, which also pulls all of them.
        source: What is noted as the source of each fitted family, with the number of its rows.
        fixed: Families that are left as they are.
        progress: Told about each round.
        cancel: Checked before each family.

    Raises:
        OperationCancelled: When asked to stop.
    """
    laws = _laws(rows)
    families = dict(start.families)
    origin: dict[str, FamilyParameters] = {}
    for name, law in laws.items():
        origin[name] = start.priors[law.name.lower()]
        families.setdefault(name, origin[name])
    current = replace(start, families=families)
    wanted = [name for name in laws if name not in fixed]
    touched = {name: [part for part in (table.touching(name) for table in rows) if part is not None] for name in wanted}
    for step, name in enumerate(wanted):
        progress(0.5 * step / len(wanted), f"fitting {name}")
        cancel.check()
        current = _best_start(current, name, laws[name], touched[name], origin[name])
    for step in range(ROUNDS):
        progress(0.5 + 0.5 * step / ROUNDS, "fitting together")
        before = current
        for name in wanted:
            cancel.check()
            current = _improved(current, name, laws[name], touched[name], origin[name])
        if current.families == before.families:
            break
    for name in wanted:
        count = sum(len(part.measured_ns) for part in touched[name])
        noted = replace(current.families[name], kind=Provenance.MEASURED, source=f"fitted to {count} rows: {source}")
        current = replace(current, families={**current.families, name: noted})
    return current


def _laws(rows: Sequence[MeasuredKernels]) -> dict[str, Law]:
    laws: dict[str, Law] = {}
    for table in rows:
        for code, name in enumerate(table.kernels.families):
            of_family = table.kernels.law[table.kernels.family == code]
            if len(of_family):
                laws[name] = Law(int(of_family[0]))
    return laws


def _best_start(
    parameters: CostParameters,
    name: str,
    law: Law,
    rows: Sequence[MeasuredKernels],
    origin: FamilyParameters,
) -> CostParameters:
    """Descends from several starts and keeps the best: bound by memory and bound by computing look alike at first."""
    found: list[tuple[float, int, CostParameters]] = []
    for factors in STARTS[law]:
        changes = {field: getattr(origin, field) * factor for field, factor in factors.items()}
        family = origin
        for field, value in changes.items():
            family = _moved(family, field, value)
        trial = _with_family(parameters, name, family)
        for _ in range(START_ROUNDS):
            before = trial
            trial = _improved(trial, name, law, rows, origin)
            if trial.families == before.families:
                break
        found.append((_loss(trial, name, law, rows, origin), len(found), trial))
    return min(found, key=lambda entry: entry[:2])[2]


def _improved(
    parameters: CostParameters,
    name: str,
    law: Law,
    rows: Sequence[MeasuredKernels],
    origin: FamilyParameters,
) -> CostParameters:
    """One round over the constants of one family."""
    best, best_loss = parameters, _loss(parameters, name, law, rows, origin)
    trials = [(field, factor) for field in FREE[law] for factor in FACTORS]
    trials += [("fixed_ns", factor) for factor in JUMPS]
    for field, factor in trials:
        low, high = FREE[law][field]
        family = best.families[name]
        moved = float(np.clip(max(getattr(family, field), low) * factor, low, high))
        trial = _with_family(best, name, _moved(family, field, float(f"{moved:.4g}")))
        loss = _loss(trial, name, law, rows, origin)
        if loss < best_loss - 1e-5:
            best, best_loss = trial, loss
    if law is Law.VECTOR:
        family = best.families[name]
        trial = _with_family(best, name, replace(family, rows_whole=not family.rows_whole))
        if _loss(trial, name, law, rows, origin) < best_loss - PULL:
            best = trial
    return best


def _moved(family: FamilyParameters, field: str, value: float) -> FamilyParameters:
    changes: dict[str, Any] = {field: value}
    return replace(family, **changes)


def _with_family(parameters: CostParameters, name: str, family: FamilyParameters) -> CostParameters:
    return replace(parameters, families={**parameters.families, name: family})


def _loss(
    parameters: CostParameters,
    name: str,
    law: Law,
    rows: Sequence[MeasuredKernels],
    origin: FamilyParameters,
) -> float:
    errors = [np.abs(np.log(part.predicted_ns(parameters) / part.measured_ns)) for part in rows]
    family = parameters.families[name]
    moved = 0.0
    for field, (low, _) in FREE[law].items():
        moved += abs(float(np.log(max(getattr(family, field), low) / max(getattr(origin, field), low))))
    return float(np.concatenate(errors).mean()) + PULL * moved
