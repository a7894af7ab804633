"""Compiles the kernels of the timeline (or takes them from numba's cache) outside the window's thread.

The first start after an installation compiles for seconds; painting must not be what waits for it.
"""

import numpy as np

from profiler_gui.timeline import labels
from profiler_gui.timeline.counters import Counter, make_steps, paint_counter
from profiler_gui.timeline.lod import build_lane
from profiler_gui.timeline.raster import Columns, fill_columns, paint_columns


def warm_up() -> None:
    """Runs every kernel once on next to nothing, with the array types that frames use."""
    one = np.ones(1, dtype=np.int64)
    lane = build_lane(np.zeros(1, dtype=np.int32), one, one, np.zeros(1, dtype=np.uint8))
    image = np.zeros((2, 4), dtype=np.uint32)
    columns = Columns(4)
    fill_columns(lane, 0, 8, columns, 1.0)
    paint_columns(image, 0, 2, columns, np.zeros(256, dtype=np.uint32), 0xFF000000)
    steps = make_steps(one, one.astype(np.float64))
    paint_counter(image, 0, 2, Counter("", "", (("", steps),), 1.0, 0.0), 0, 8, {"": 0xFF000000}, 0xFF000000)
    labels.compile_kernels(image)
