"""Operators against their measured device times: with the shipped constants, and on rows a fit did not see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.core.arrays import AnyArray, BoolArray, Float64Array
from engine.core.progress import Progress, part_of
from engine.devices.spec import Provenance
from engine.runtime.cost.fitting import FREE, fit_families
from engine.runtime.cost.operators import Law
from engine.runtime.cost.parameters import CostParameters, FamilyParameters, load_parameters
from engine.runtime.cost.rates import stand_in_family
from engine.workloads.fidelity.matmul_rows import DECODE_FILE, MICRO_FILE, read_matmul_rows
from engine.workloads.fidelity.operator_rows import FILE, OperatorRows, read_operator_rows
from engine.workloads.fidelity.scores import Scores, scores
from engine.workloads.fidelity.tables import FidelityResult, FidelityTable, Target

FOLDS = 5
"""Parts the cases of each operator are dealt to for cross-validation, in file order."""


def evaluate_operators(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the cann-bench rows of 910B2 and 910B3 priced with the shipped constants."""
    progress(0.0, "operators")
    tables = read_operator_rows(directory / FILE)
    return _result(
        "operators",
        "operators of 910B2 and 910B3, device time",
        tables,
        [table.measured.predicted_ns(load_parameters()) for table in tables],
        target=Target("median_ratio", 0.20),
        notes=("constants of each operator were fitted to these rows; see operators-unseen-cases",),
    )


def evaluate_matmuls(directory: Path, progress: Progress) -> FidelityResult:
    """Returns published matmul rates of stated shapes, priced with the shipped constants."""
    progress(0.0, "matmuls")
    tables = read_matmul_rows(directory)
    return _result(
        "matmuls",
        "matmuls of stated shapes, 910B2 (host-timed or read off a plot) and decode on an A3 die",
        tables,
        [table.measured.predicted_ns(load_parameters()) for table in tables],
        notes=("the constants of matmul were fitted to these rows and to a training capture",),
    )


def evaluate_unseen_cases(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the same rows, each predicted by constants fitted without it: cases dealt to ``FOLDS`` parts."""
    tables = read_operator_rows(directory / FILE)
    predicted = [np.zeros(len(table)) for table in tables]
    for fold in range(FOLDS):
        seen = [_cases(table) % FOLDS != fold for table in tables]
        part = part_of(progress, fold / FOLDS, (fold + 1) / FOLDS)
        fitted = fit_families(
            [table.measured.select(rows) for table, rows in zip(tables, seen, strict=True)],
            _unfitted(load_parameters()),
            "cross-validation",
            progress=part,
        )
        for table, rows, result in zip(tables, seen, predicted, strict=True):
            result[~rows] = table.measured.predicted_ns(fitted)[~rows]
    return _result(
        "operators-unseen-cases",
        f"the same rows, each predicted by a fit that did not see it ({FOLDS} folds by case)",
        tables,
        predicted,
        target=Target("median_ratio", 0.20),
    )


def evaluate_unseen_operators(directory: Path, progress: Progress) -> FidelityResult:
    """Returns the same rows, each predicted without any row of its operator: by what stands in for unknown families."""
    progress(0.0, "unseen operators")
    tables = read_operator_rows(directory / FILE)
    shipped = load_parameters()
    predicted = [np.zeros(len(table)) for table in tables]
    for name in sorted({name for table in tables for name in table.names}):
        masks = [np.array([other == name for other in table.names]) for table in tables]
        without = _without_families(shipped, tables, masks)
        for table, mask, result in zip(tables, masks, predicted, strict=True):
            if mask.any():
                result[mask] = table.measured.select(mask).predicted_ns(without)
    return _result(
        "operators-unseen",
        "the same rows, each priced as an operator nobody measured",
        tables,
        predicted,
        notes=("families that only this operator uses are replaced by their law's typical constants",),
    )


OPERATOR_TABLES = (
    FidelityTable("operators", "operators of 910B2 and 910B3", (FILE,), evaluate_operators),
    FidelityTable("matmuls", "matmuls of stated shapes", (MICRO_FILE, DECODE_FILE), evaluate_matmuls),
    FidelityTable("operators-unseen", "operators nobody measured", (FILE,), evaluate_unseen_operators),
)
SLOW_OPERATOR_TABLES = (
    FidelityTable("operators-unseen-cases", "cases a fit did not see", (FILE,), evaluate_unseen_cases),
)
"""Evaluated only when named: it fits the constants several times."""


@dataclass(frozen=True, slots=True)
class _Joined:
    names: AnyArray
    predicted: Float64Array
    measured: Float64Array
    authors: Float64Array
    moved: Float64Array


def _result(
    table: str,
    title: str,
    tables: Sequence[OperatorRows],
    predicted: Sequence[Float64Array],
    *,
    target: Target | None = None,
    notes: tuple[str, ...] = (),
) -> FidelityResult:
    rows = _Joined(
        names=np.array([name for part in tables for name in part.names]),
        predicted=np.concatenate(predicted),
        measured=np.concatenate([part.measured.measured_ns for part in tables]),
        authors=np.concatenate([part.authors_ns for part in tables]),
        moved=np.concatenate([part.moved_ns for part in tables]),
    )
    known = np.isfinite(rows.authors)
    baselines: dict[str, Scores] = {"bytes over bandwidth": scores(rows.moved, rows.measured)}
    if known.any():
        baselines["the table's roofline"] = scores(rows.authors[known], rows.measured[known])
    return FidelityResult(
        table=table,
        title=title,
        scores=scores(rows.predicted, rows.measured),
        baselines=baselines,
        parts={str(name): _part(rows, rows.names == name) for name in np.unique(rows.names)},
        target=target,
        notes=(*notes, *_left_out(tables)),
    )


def _left_out(tables: Sequence[OperatorRows]) -> tuple[str, ...]:
    by_bytes = sum(table.by_bytes_count for table in tables)
    unreadable = sum(table.unreadable_count for table in tables)
    return (
        *([f"{by_bytes} rows of operators nobody described, priced by their bytes"] if by_bytes else []),
        *([f"{unreadable} rows could not be read and are left out"] if unreadable else []),
    )


def _part(rows: _Joined, mask: BoolArray) -> Scores:
    return scores(rows.predicted[mask], rows.measured[mask])


def _cases(table: OperatorRows) -> AnyArray:
    """Returns the number of each row inside its operator, in file order."""
    seen: dict[str, int] = {}
    numbers = []
    for name in table.names:
        seen[name] = seen.get(name, -1) + 1
        numbers.append(seen[name])
    return np.array(numbers, np.int64)


def _unfitted(parameters: CostParameters) -> CostParameters:
    """Returns only priors: a fit that starts from fitted constants would know the rows it must not see."""
    return replace(parameters, families={stand_in_family(law): parameters.priors[law.name.lower()] for law in Law})


def _without_families(
    parameters: CostParameters, tables: Sequence[OperatorRows], masks: Sequence[BoolArray]
) -> CostParameters:
    used: set[str] = set()
    own: set[str] = set()
    laws: dict[str, Law] = {}
    for table, mask in zip(tables, masks, strict=True):
        kernels = table.measured.kernels
        of_operator = mask[table.measured.row]
        for code, family in enumerate(kernels.families):
            of_family = kernels.family == code
            laws[family] = Law(int(kernels.law[of_family][0]))
            (own if (of_family & of_operator).any() else used).add(family)
            if (of_family & ~of_operator).any():
                used.add(family)
    hidden = own - used
    remaining = {name: family for name, family in parameters.families.items() if name not in hidden}
    for law in {laws[name] for name in hidden}:
        same = [remaining[name] for name, of in laws.items() if of is law and name in remaining]
        if same:
            remaining[stand_in_family(law)] = typical_family(same, law)
    return replace(parameters, families=remaining)


def typical_family(families: Sequence[FamilyParameters], law: Law) -> FamilyParameters:
    """Returns the medians of the fitted constants of a law: what stands in for a family nobody measured."""
    medians: Mapping[str, float] = {
        name: float(f"{np.median([getattr(family, name) for family in families]):.4g}") for name in FREE[law]
    }
    values = {
        name: medians.get(name, getattr(families[0], name))
        for name in ("fixed_ns", "block_cycles", "row_cycles", "memory_ratio", "cube_ratio", "traffic_ratio",
                     "unaligned_cycles")
    }  # fmt: skip
    return FamilyParameters(
        **values,
        rows_whole=sum(family.rows_whole for family in families) * 2 > len(families),
        kind=Provenance.ASSUMED,
        source=f"medians of {len(families)} fitted families",
    )
