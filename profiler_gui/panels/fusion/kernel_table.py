"""The kernels of one occurrence as a table: names and shapes that do not fit into a lane."""

from __future__ import annotations

import numpy as np

from profiler_gui.item_models.columns import number_column, text_column
from profiler_gui.item_models.table_model import TableModel
from profiler_gui.item_models.trace_tables import duration_column
from profiler_gui.panels.fusion.occurrences import OccurrenceLane
from profiler_gui.toolkit.translations import tr


def kernel_table(lane: OccurrenceLane) -> TableModel:
    """Returns the table of an occurrence's kernels in order; the source row is the index into ``lane.slices``."""
    offsets_ns = np.array([item.offset_ns for item in lane.slices], dtype=np.int64)
    durations_ns = np.array([item.duration_ns for item in lane.slices], dtype=np.int64)
    gaps_ns = offsets_ns.copy()
    gaps_ns[1:] -= np.maximum.accumulate(offsets_ns + durations_ns)[:-1]
    columns = (
        number_column("number", tr("No."), np.arange(1, len(lane.slices) + 1)),
        text_column("name", tr("Kernel"), [item.name for item in lane.slices]),
        duration_column("duration", tr("Duration"), durations_ns),
        # Kernels of two streams may overlap: then there is no gap.
        duration_column("gap", tr("Gap before"), np.maximum(gaps_ns, 0)),
        text_column("shapes", tr("Shapes"), [item.shapes for item in lane.slices]),
        text_column("full_name", tr("Name on the timeline"), [item.full_name for item in lane.slices]),
    )
    return TableModel(columns, len(lane.slices))
