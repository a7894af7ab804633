"""Tables over the results of the analyses: one row per result, in the engine's order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.core.number_format import format_bytes, format_count, format_duration_ns, format_ratio
from profiler_gui.item_models.columns import Column, is_nan, nullable, number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.toolkit.time_axis import TimeUnit, time_text
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.communication import Collective, LinkStatistic
    from engine.analyses.fusion import FusionCandidate
    from engine.analyses.idle import IdleGap
    from engine.analyses.modules import ModuleTime
    from engine.analyses.operators import OperatorStatistic
    from engine.analyses.steps import Step


def operator_table(operators: tuple[OperatorStatistic, ...]) -> TableModel:
    """Returns the table of operator types; the source row is the index into ``operators``."""
    columns = (
        text_column("type", tr("Type"), [item.type for item in operators]),
        text_column("core", tr("Core"), [item.core_type for item in operators]),
        _counts("count", tr("Count"), (item.count for item in operators)),
        _durations("total", tr("Total"), [item.total_ns for item in operators]),
        _durations("mean", tr("Mean"), [item.total_ns / item.count if item.count else None for item in operators]),
        _durations("minimum", tr("Minimum"), [item.min_ns for item in operators]),
        _durations("maximum", tr("Maximum"), [item.max_ns for item in operators]),
        _ratios("share", tr("Share"), [item.share_ratio for item in operators]),
        text_column("name", tr("Kernel"), [item.name for item in operators]),
    )
    return TableModel(columns, len(operators))


def module_table(modules: tuple[ModuleTime, ...]) -> TableModel:
    """Returns the table of module paths; the source row is the index into ``modules``."""
    total_ns = sum(item.total_ns for item in modules)
    columns = (
        text_column("path", tr("Path"), [item.path for item in modules]),
        text_column("phase", tr("Phase"), [item.phase for item in modules]),
        _counts("count", tr("Count"), (item.count for item in modules)),
        _durations("total", tr("Total"), [item.total_ns for item in modules]),
        _ratios("share", tr("Share"), [item.total_ns / total_ns if total_ns else None for item in modules]),
        text_column("source", tr("Source"), [item.source for item in modules]),
        text_column("inferred", tr("Found by"), [_found_by(item) for item in modules]),
    )
    return TableModel(columns, len(modules))


def collective_table(collectives: tuple[Collective, ...], unit: TimeUnit = TimeUnit.AUTO) -> TableModel:
    """Returns the table of a rank's collectives; the source row is the index into ``collectives``."""
    columns = (
        text_column("name", tr("Operator"), [item.name for item in collectives]),
        text_column("group", tr("Group"), [item.group_name or item.group for item in collectives]),
        _moments("start", tr("Start"), (item.start_ns for item in collectives), unit),
        _durations("elapsed", tr("Elapsed"), [item.elapsed_ns for item in collectives]),
        _sizes("bytes", tr("Payload"), [item.bytes for item in collectives]),
        _durations("wait", tr("Wait"), [item.wait_ns for item in collectives]),
        _durations("transfer", tr("Transfer"), [item.transfer_ns for item in collectives]),
        _durations("exposed", tr("Exposed"), [item.exposed_ns for item in collectives]),
        _durations("hideable", tr("Hideable"), [item.hideable_ns for item in collectives]),
        _plain("late", tr("Late rank"), [item.late_rank for item in collectives]),
        _bandwidths("bandwidth", tr("Bandwidth"), [item.bandwidth_bytes_per_s for item in collectives]),
        _durations("vendor_wait", tr("Wait (file)"), [item.vendor_wait_ns for item in collectives]),
        _durations("vendor_transit", tr("Transit (file)"), [item.vendor_transit_ns for item in collectives]),
        _durations("vendor_idle", tr("Idle (file)"), [item.vendor_idle_ns for item in collectives]),
        _plain("step", tr("Step"), [item.step for item in collectives]),
    )
    return TableModel(columns, len(collectives))


def link_table(links: tuple[LinkStatistic, ...]) -> TableModel:
    """Returns the table of a rank's links; the source row is the index into ``links``."""
    bandwidths = [item.bytes * 1e9 / item.transit_ns if item.transit_ns > 0 else None for item in links]
    columns = (
        text_column("link", tr("Link"), [item.link for item in links]),
        _sizes("bytes", tr("Payload"), [item.bytes for item in links]),
        _durations("transit", tr("Transit"), [item.transit_ns for item in links]),
        _bandwidths("bandwidth", tr("Bandwidth"), bandwidths),
        _ratios("large", tr("Large packets"), [item.large_packet_ratio for item in links]),
    )
    return TableModel(columns, len(links))


def idle_table(gaps: tuple[IdleGap, ...], unit: TimeUnit = TimeUnit.AUTO) -> TableModel:
    """Returns the table of device gaps; the source row is the index into ``gaps``."""
    columns = (
        text_column("cause", tr("Cause"), [tr(gap.cause.value.replace("_", " ")) for gap in gaps]),
        _moments("start", tr("Start"), (gap.start_ns for gap in gaps), unit),
        _durations("duration", tr("Duration"), [gap.end_ns - gap.start_ns for gap in gaps]),
    )
    return TableModel(columns, len(gaps))


def candidate_table(candidates: tuple[FusionCandidate, ...]) -> TableModel:
    """Returns the table of fusion candidates; the source row is the index into ``candidates``."""
    columns = (
        text_column("pattern", tr("Pattern"), [item.title for item in candidates]),
        text_column("replacement", tr("Replacement"), [item.replacement for item in candidates]),
        _counts("count", tr("Count"), (item.count for item in candidates)),
        _durations("total", tr("Device time"), [item.total_ns for item in candidates]),
        _counts("launches", tr("Launches"), (item.launches for item in candidates)),
        text_column("bound", tr("Bound by"), [item.bound for item in candidates]),
        _durations("low", tr("Saving, low"), [item.saving_ns.low for item in candidates]),
        _durations("expected", tr("Saving, expected"), [item.saving_ns.expected for item in candidates]),
        _durations("high", tr("Saving, high"), [item.saving_ns.high for item in candidates]),
        text_column("matched", tr("Found in"), [item.matched_by for item in candidates]),
        text_column("reason", tr("Why"), [item.reason for item in candidates]),
    )
    return TableModel(columns, len(candidates))


def step_table(steps: tuple[Step, ...]) -> TableModel:
    """Returns the table of steps; the source row is the index into ``steps``."""
    columns = (
        _plain("step", tr("Step"), [item.step for item in steps]),
        _durations("length", tr("Length"), [item.range.duration_ns for item in steps]),
        _durations("computing", tr("Computing"), [item.computing_ns for item in steps]),
        _durations("communication", tr("Communication"), [item.communication_ns for item in steps]),
        _durations("exposed", tr("Not overlapped"), [item.communication_not_overlapped_ns for item in steps]),
        _durations("overlapped", tr("Overlapped"), [item.overlapped_ns for item in steps]),
        _durations("free", tr("Free"), [item.free_ns for item in steps]),
        _durations("bubble", tr("Bubble"), [item.bubble_ns for item in steps]),
        _durations("preparing", tr("Preparing"), [item.preparing_ns for item in steps]),
        _durations("wait", tr("Wait"), [item.wait_ns for item in steps]),
        _durations("transfer", tr("Transfer"), [item.transfer_ns for item in steps]),
    )
    return TableModel(columns, len(steps))


def _found_by(module: ModuleTime) -> str:
    return tr("period of kernels") if module.inferred else tr("module events")


def _counts(column_id: str, title: str, values: Iterable[int]) -> Column:
    column: NDArray[Any] = np.fromiter(values, dtype=np.int64)
    return number_column(column_id, title, column, lambda value: format_count(int(value)))


def _moments(column_id: str, title: str, values: Iterable[int], unit: TimeUnit) -> Column:
    column: NDArray[Any] = np.fromiter(values, dtype=np.int64)
    shown = TimeUnit.AUTO if unit is TimeUnit.WALL_CLOCK else unit
    return number_column(column_id, title, column, lambda value: time_text(int(value), shown), unit="ns")


def _durations(column_id: str, title: str, values: list[Any]) -> Column:
    return number_column(column_id, title, nullable(values), format_duration_ns, unit="ns", absent=is_nan)


def _sizes(column_id: str, title: str, values: list[Any]) -> Column:
    return number_column(column_id, title, nullable(values), format_bytes, unit="bytes", absent=is_nan)


def _bandwidths(column_id: str, title: str, values: list[float | None]) -> Column:
    return number_column(
        column_id, title, nullable(values), lambda value: f"{value / 1e9:.2f} GB/s", unit="bytes/s", absent=is_nan
    )


def _ratios(column_id: str, title: str, values: list[float | None]) -> Column:
    return number_column(column_id, title, nullable(values), format_ratio, absent=is_nan)


def _plain(column_id: str, title: str, values: list[int | None]) -> Column:
    return number_column(column_id, title, nullable(values), lambda value: f"{int(value)}", absent=is_nan)
