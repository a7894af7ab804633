"""Writes the shipped constants anew: ``python -m engine.workloads.fidelity.refit VALIDATION CAPTURE OUT``.

Deterministic: the same tables and capture give the same file. A person runs it when a law changes, looks at
``cannscope fidelity`` and commits the result.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.devices.spec import DeviceSpec
from engine.formats.opening import open_job
from engine.formats.readers import built_in_readers
from engine.runtime.cost.fitting import MeasuredKernels, fit_families
from engine.runtime.cost.operators import Law
from engine.runtime.cost.parameters import CostParameters, FamilyParameters, load_parameters
from engine.runtime.cost.rates import stand_in_family
from engine.workloads.calibration.calibrate import capture_rows
from engine.workloads.fidelity.matmul_rows import HOST_TIMED, read_matmul_rows
from engine.workloads.fidelity.operator_rows import FILE, OperatorRows, read_operator_rows
from engine.workloads.fidelity.operators import typical_family

HOST_SHARE_NS = 100_000
"""Host-timed matmuls shorter than this are left out of the fit: their times are the host's as much as the device's."""
RUNNER_NS = 100_000
"""Families whose fixed time is longer measured a benchmark's runner, not a kernel; they are no typical kernels."""


def refit(validation: Path, capture: Path) -> CostParameters:
    """Returns constants fitted to the operator table, the matmul tables and the kernels of a training capture."""
    tables = [table.measured for table in read_operator_rows(validation / FILE)]
    matmuls = [_device_timed(table) for table in read_matmul_rows(validation)]
    job = open_job([capture], built_in_readers())
    device, kernels = capture_rows(job, "a training capture")
    shipped = load_parameters()
    rows_of = [*tables, *matmuls, kernels]
    fitted_here = {name for part in rows_of for name in part.kernels.families}
    kept = {name: family for name, family in shipped.families.items() if name not in fitted_here}
    stand_ins = {stand_in_family(law): shipped.priors[law.name.lower()] for law in Law}
    start = replace(shipped, families={**kept, **stand_ins})
    source = "cann-bench at d59d44ca (910B2, 910B3), published matmul rates, Qwen3-0.6B training kernels"
    fitted = fit_families(rows_of, start, source)
    typical = typical_family(_kernels_only(fitted, [*tables, kernels]), Law.VECTOR)
    rows = sum(len(part.measured_ns) for part in rows_of)
    return replace(
        fitted,
        families={**fitted.families, stand_in_family(Law.VECTOR): typical},
        fitted_on=f"{rows} rows: {source}; the capture's device taken as {_named(device)}",
    )


def _device_timed(table: OperatorRows) -> MeasuredKernels:
    host_timed = np.array([name == HOST_TIMED for name in table.names])
    return table.measured.select(~host_timed | (table.measured.measured_ns > HOST_SHARE_NS))


def _kernels_only(fitted: CostParameters, tables: Sequence[MeasuredKernels]) -> list[FamilyParameters]:
    names = {
        name
        for table in tables
        for code, name in enumerate(table.kernels.families)
        if (table.kernels.law[table.kernels.family == code] == Law.VECTOR).any()
    }
    return [fitted.families[name] for name in sorted(names) if fitted.families[name].fixed_ns < RUNNER_NS]


def _named(device: DeviceSpec) -> str:
    return f"{device.id} at {device.clock_hz / 1e9:.2f} GHz"


def parameters_document(parameters: CostParameters) -> dict[str, Any]:
    """Returns the document that ``load_parameters`` reads."""
    return {
        "format": 1,
        "fitted_on": parameters.fitted_on,
        "shared": {
            name: {
                "value": constant.value,
                "unit": constant.unit,
                "kind": constant.kind.value,
                "source": constant.source,
            }
            for name, constant in parameters.shared.items()
        },
        "priors": _families_document(parameters.priors),
        "families": _families_document(parameters.families),
    }


def _families_document(families: Mapping[str, FamilyParameters]) -> dict[str, Any]:
    return {name: {**asdict(family), "kind": family.kind.value} for name, family in sorted(families.items())}


if __name__ == "__main__":
    document = parameters_document(refit(Path(sys.argv[1]), Path(sys.argv[2])))
    Path(sys.argv[3]).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
