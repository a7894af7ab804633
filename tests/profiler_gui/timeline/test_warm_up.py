import numpy as np

from profiler_gui.timeline import counters, labels, lod, raster
from profiler_gui.timeline.warm_up import warm_up
from tests.support.trace_text import trace_from_text

KERNELS = (
    lod._fold,
    raster._fill_columns,
    raster._paint_columns,
    counters._extremes,
    counters._paint_area,
    labels._write,
)


def test_frames_compile_nothing_that_was_not_warmed_up(show):
    warm_up()
    before = [len(kernel.signatures) for kernel in KERNELS]
    stage = show(trace_from_text("host 1 | AAAA..BBBB |\nhost 1 | .CC....... |\ngpu 7 | CC..DD.... |"))
    stage.session.show_range(1_000, 3_000)
    stage.settle()
    steps = counters.make_steps(np.arange(200), np.arange(200.0))
    counters.column_extremes(steps, 0, 100, 10)
    assert [len(kernel.signatures) for kernel in KERNELS] == before
