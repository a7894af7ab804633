"""Fits a device to a capture: clock and cores from its counters, constants of families from its kernels.

The device a capture ran on is often unnamed ("NPU 0"). Cores come from the most cores a kernel used, the clock from
cycle counters where the profiler recorded them, the memory's rate from kernels that stream more than a cache; the
catalogue's device nearest to them stands for everything a capture does not show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.core.arrays import BoolArray, Float64Array
from engine.core.errors import MissingDataError
from engine.core.progress import Progress, no_progress, part_of
from engine.devices.catalogue import device_ids, device_named, load_device
from engine.devices.spec import Constant, DeviceSpec, Provenance
from engine.runtime.cost.fitting import MeasuredKernels, fit_families
from engine.runtime.cost.operators import Law, OperatorTable, concatenate
from engine.runtime.cost.parameters import CostParameters, load_parameters
from engine.trace.job import Job
from engine.trace.trace import Trace
from engine.workloads.calibration.capture_kernels import CaptureKernels, capture_kernels

HELD_OUT = 3
"""One of so many distinct kernels of a family is held out to judge the fit."""
STREAM_FOOTPRINT = 4.0
"""Kernels that move this many times the cache show the memory's rate."""
SAMPLED_KERNELS = 50
"""Kernels whose cycle counters are read for the clock."""


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """How well a family is reproduced.

    Attributes:
        family: Its name.
        kernels_count: Distinct kernels.
        share_ratio: Their share of the priced time.
        seen_ratio: Median relative error of distinct kernels the fit saw.
        unseen_ratio: The same of those it did not see, None for a family with fewer than ``HELD_OUT`` kernels.
    """

    family: str
    kernels_count: int
    share_ratio: float
    seen_ratio: float
    unseen_ratio: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """A device fitted to a capture.

    Attributes:
        device: The nearest device of the catalogue with what the capture showed of clock and memory.
        nearest: Its id in the catalogue.
        named: Whether the user or the capture named it; else it was found by cores and memory rate.
        parameters: Constants fitted to all kernels.
        families: Fit quality by family, slowest first.
        seen_ratio: Median relative error over distinct kernels the judging fit saw.
        unseen_ratio: The same over those it did not see; None where nothing could be held out.
        shipped_ratio: Median relative error of the shipped constants on the same device.
        total_time_ratio: Predicted over measured time of all priced kernels, each as often as it ran.
        unseen_time_ratio: The same over kernels the judging fit did not see; None where nothing could be held out.
        kernels_count: Kernels priced, with repeats.
        unpriced: Kernel types left out, with how often they ran.
        unpriced_share_ratio: Their share of all kernel time, communication apart.
    """

    device: DeviceSpec
    nearest: str
    named: bool
    parameters: CostParameters
    families: tuple[FamilyFit, ...]
    seen_ratio: float
    unseen_ratio: float | None
    shipped_ratio: float
    total_time_ratio: float
    unseen_time_ratio: float | None
    kernels_count: int
    unpriced: Mapping[str, int]
    unpriced_share_ratio: float


def calibrate(job: Job, source: str, base: DeviceSpec | None = None, progress: Progress = no_progress) -> Calibration:
    """Returns the device and constants that reproduce the kernels of a capture.

    Two fits are made: one that does not see every third distinct kernel of a family, to be judged on those, and one on
    all kernels, which is returned.

    Args:
        job: The capture's ranks.
        source: What is noted as the source of everything fitted.
        base: The device it ran on; found from the capture by default.
        progress: Told about both fits.

    Raises:
        MissingDataError: The capture has no kernels with shapes.
    """
    ranks, found = _kernels_of(job)
    device, named = _device(ranks, found, source, base)
    rows = _rows(device, found)
    held_out = _held_out(rows.kernels, [label for kernels in found for label in kernels.labels])
    shipped = load_parameters()
    judging = fit_families(
        [rows.select(~held_out)], _without(shipped, rows.kernels), source, progress=part_of(progress, 0.0, 0.5)
    )
    final = fit_families([rows], _without(shipped, rows.kernels), source, progress=part_of(progress, 0.5, 1.0))
    return _calibration(device, named=named, found=found, rows=rows, held_out=held_out, judging=judging, final=final)


def capture_rows(job: Job, source: str) -> tuple[DeviceSpec, MeasuredKernels]:
    """Returns the device a capture ran on and its distinct kernels. Raises MissingDataError."""
    ranks, found = _kernels_of(job)
    device, _ = _device(ranks, found, source, None)
    return device, _rows(device, found)


def _kernels_of(job: Job) -> tuple[list[Trace], list[CaptureKernels]]:
    ranks = [entry.trace for entry in job.ranks if len(entry.trace.kernels)]
    found = [capture_kernels(trace) for trace in ranks]
    if not sum(len(kernels) for kernels in found):
        raise MissingDataError("kernel shapes", "record with profiler level 1 or 2 and record_shapes=True")
    return ranks, found


def _rows(device: DeviceSpec, found: Sequence[CaptureKernels]) -> MeasuredKernels:
    return MeasuredKernels(
        device,
        concatenate([kernels.operators for kernels in found]),
        np.arange(sum(len(kernels) for kernels in found), dtype=np.int64),
        np.concatenate([kernels.median_ns for kernels in found]),
    )


def _calibration(
    device: DeviceSpec,
    *,
    named: bool,
    found: Sequence[CaptureKernels],
    rows: MeasuredKernels,
    held_out: BoolArray,
    judging: CostParameters,
    final: CostParameters,
) -> Calibration:
    count = np.concatenate([kernels.count for kernels in found])
    total_ns = np.concatenate([kernels.total_ns for kernels in found])
    judged_ns = rows.predicted_ns(judging)
    error = np.abs(judged_ns / rows.measured_ns - 1.0)
    unpriced: dict[str, int] = {}
    for kernels in found:
        for name, runs in kernels.unpriced.items():
            unpriced[name] = unpriced.get(name, 0) + runs
    left_out_ns = sum(kernels.unpriced_ns for kernels in found)
    unseen = held_out if held_out.any() else None
    return Calibration(
        device=device,
        nearest=device.id,
        named=named,
        parameters=final,
        families=_family_fits(rows.kernels, error, total_ns, held_out),
        seen_ratio=float(np.median(error[~held_out])),
        unseen_ratio=None if unseen is None else float(np.median(error[unseen])),
        shipped_ratio=float(np.median(np.abs(rows.predicted_ns(load_parameters()) / rows.measured_ns - 1.0))),
        total_time_ratio=float((rows.predicted_ns(final) * count).sum() / total_ns.sum()),
        unseen_time_ratio=None if unseen is None else float((judged_ns * count)[unseen].sum() / total_ns[unseen].sum()),
        kernels_count=int(count.sum()),
        unpriced=unpriced,
        unpriced_share_ratio=float(left_out_ns / (left_out_ns + total_ns.sum())),
    )


def _family_fits(
    operators: OperatorTable, error: Float64Array, total_ns: Float64Array, held_out: BoolArray
) -> tuple[FamilyFit, ...]:
    fits = []
    for code, family in enumerate(operators.families):
        own = operators.family == code
        unseen = own & held_out
        fits.append(
            FamilyFit(
                family=family,
                kernels_count=int(own.sum()),
                share_ratio=float(total_ns[own].sum() / total_ns.sum()),
                seen_ratio=float(np.median(error[own & ~held_out])),
                unseen_ratio=float(np.median(error[unseen])) if unseen.any() else None,
            )
        )
    return tuple(sorted(fits, key=lambda fit: -fit.share_ratio))


def _held_out(operators: OperatorTable, labels: Sequence[str]) -> BoolArray:
    """Every third distinct work of each family, the same on every rank that did it; the first two are always seen."""
    held = np.zeros(len(labels), np.bool_)
    seen: dict[str, dict[str, int]] = {}
    for row, (code, label) in enumerate(zip(operators.family.tolist(), labels, strict=True)):
        order = seen.setdefault(operators.families[code], {})
        held[row] = order.setdefault(label, len(order)) % HELD_OUT == HELD_OUT - 1
    return held


def _without(parameters: CostParameters, operators: OperatorTable) -> CostParameters:
    """Forgets the families to be fitted: they begin at their priors, so that held-out kernels stay unseen."""
    stand_ins = {"default": Law.VECTOR, "matmul": Law.MATMUL, "flash_attention": Law.ATTENTION}
    kept = {name: family for name, family in parameters.families.items() if name not in operators.families}
    for name, law in stand_ins.items():
        kept.setdefault(name, parameters.priors[law.name.lower()])
    return replace(parameters, families=kept)


def _device(
    ranks: Sequence[Trace], found: Sequence[CaptureKernels], source: str, base: DeviceSpec | None
) -> tuple[DeviceSpec, bool]:
    """Returns the nearest device with the capture's clock, and whether the user or the capture named it."""
    texts = (f"{trace.metadata.device or ''} {trace.metadata.extra.get('soc_name', '')}" for trace in ranks)
    named = base or next((device for text in texts if (device := device_named(text)) is not None), None)
    clock_hz = _clock_hz(ranks)
    device = named or _nearest(found, clock_hz)
    if clock_hz is not None:
        clock = Constant(clock_hz, "Hz", Provenance.MEASURED, f"cycle counters of {source}")
        device = replace(device, constants={**device.constants, "clock_hz": clock})
    return device, named is not None


def _nearest(found: Sequence[CaptureKernels], clock_hz: float | None) -> DeviceSpec:
    """Returns the Ascend device with as many matrix cores as kernels used and the nearest memory rate and clock."""
    cores = max(
        (int(cores) for kernels in found for cores in kernels.core_counts[kernels.operators.law != Law.VECTOR]),
        default=-1,
    )
    devices = [load_device(name) for name in device_ids()]
    same = [device for device in devices if device.vendor == "Huawei" and device.cube_core_count == cores]
    if not same:
        raise MissingDataError("device", f"no device of the catalogue has {cores} matrix cores; name one")

    def distance(device: DeviceSpec) -> float:
        clock = 0.0 if clock_hz is None else abs(np.log(clock_hz / device.clock_hz))
        return float(clock + abs(np.log(_streaming(found, device) / device.hbm_bytes_per_s)))

    return min(same, key=distance)


def _streaming(found: Sequence[CaptureKernels], device: DeviceSpec) -> float:
    """Returns the median rate of kernels that move much more than the device's cache, in bytes per second."""
    rates = []
    for kernels in found:
        moved = (kernels.operators.read_bytes + kernels.operators.write_bytes).astype(np.float64)
        large = (kernels.operators.law == Law.VECTOR) & (moved > STREAM_FOOTPRINT * device.l2_bytes)
        rates += (moved[large] / kernels.median_ns[large] * 1e9).tolist()
    return float(np.median(rates)) if rates else device.hbm_bytes_per_s


def _clock_hz(ranks: Sequence[Trace]) -> float | None:
    """Returns cycles / (time x cores) over a sample of kernels with counters, None where a capture has none."""
    clocks: list[float] = []
    for trace in ranks:
        used = np.flatnonzero(trace.kernels.block_count > 1)
        for place in used[:: max(len(used) // SAMPLED_KERNELS, 1)].tolist():
            arguments = trace.arguments(int(trace.kernels.event[place]))
            cores = int(trace.kernels.block_count[place])
            for cycles, time in (("aic_total_cycles", "aicore_time(us)"), ("aiv_total_cycles", "aiv_time(us)")):
                try:
                    total, time_us = float(arguments[cycles]), float(arguments[time])
                except (KeyError, ValueError, TypeError):
                    continue
                if total > 0 and time_us > 10:
                    clocks.append(total / time_us / cores * 1e6)
    return float(np.median(clocks)) if clocks else None
