"""A device fitted to a capture: the ``devices --calibrate`` document and text."""

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.core.number_format import format_count, format_ratio
from engine.report.devices import constants_document, families_document
from engine.workloads.calibration.calibrate import Calibration

SHOWN_FAMILIES = 25
"""Families a person is shown; the document has all."""


def calibration_document(calibration: Calibration, path: str) -> dict[str, Any]:
    """Returns the document ``cannscope.calibration/1``: the fitted device and how well it fits."""
    device = calibration.device
    return {
        "schema": "cannscope.calibration/1",
        "capture": path,
        "nearest": calibration.nearest,
        "named": calibration.named,
        "kernels": calibration.kernels_count,
        "distinct_kernels": sum(fit.kernels_count for fit in calibration.families),
        "unpriced": dict(calibration.unpriced),
        "unpriced_share_ratio": calibration.unpriced_share_ratio,
        "seen": {"median_ratio": calibration.seen_ratio},
        "unseen": {
            "median_ratio": calibration.unseen_ratio,
            "total_time_ratio": calibration.unseen_time_ratio,
        },
        "shipped": {"median_ratio": calibration.shipped_ratio},
        "total_time_ratio": calibration.total_time_ratio,
        "families": [asdict(fit) for fit in calibration.families],
        "device": {"id": device.id, "constants": constants_document(device.constants)},
        "efficiency": {
            "families": families_document(
                {fit.family: calibration.parameters.families[fit.family] for fit in calibration.families}
            )
        },
    }


def calibration_text(calibration: Calibration, path: str) -> RenderableType:
    """Returns the same for people: the device, the errors on seen and unseen kernels, a row per family."""
    device = calibration.device
    how = "named" if calibration.named else "found by its cores and memory rate"
    clock = device.constants["clock_hz"]
    unseen_time = calibration.unseen_time_ratio
    lines = [
        (
            f"{path}: {format_count(calibration.kernels_count)} kernels on {device.id} ({how}), "
            f"{clock.value / 1e9:.2f} GHz ({clock.kind.value})"
        ),
        (
            f"median error: {format_ratio(calibration.seen_ratio)} on kernels the fit saw, "
            f"{format_ratio(calibration.unseen_ratio)} on kernels it did not see, "
            f"{format_ratio(calibration.shipped_ratio)} with the shipped constants"
        ),
        (
            f"predicted time of all priced kernels ÷ recorded: {calibration.total_time_ratio:.3f}"
            f"{'' if unseen_time is None else f', of unseen ones: {unseen_time:.3f}'}"
        ),
    ]
    if calibration.unpriced:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(calibration.unpriced.items()))
        lines.append(f"not priced, {format_ratio(calibration.unpriced_share_ratio)} of kernel time: {names}")
    table = Table("family", "distinct kernels", "share of time", "median error seen", "unseen")
    for fit in calibration.families[:SHOWN_FAMILIES]:
        table.add_row(
            fit.family,
            str(fit.kernels_count),
            format_ratio(fit.share_ratio),
            format_ratio(fit.seen_ratio),
            format_ratio(fit.unseen_ratio),
        )
    return Group(Text("\n".join(lines)), table)
