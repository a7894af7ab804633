"""Real captures on the timeline."""

import numpy as np
import pytest
from PySide6.QtGui import QImage

from engine.formats import open_job
from engine.formats.readers import built_in_readers


@pytest.mark.parametrize(
    "capture",
    ["ascend/910b-qwen3-0.6b-pp2dp2/rank_0_ascend_pt", "pytorch/nccl_data.json.gz", "ascend/old-cann7-timeline"],
)
def test_real_captures_are_drawn_from_the_whole_trace_to_a_few_ns(captures, show, capture):
    job = open_job([captures / capture], built_in_readers())
    stage = show(job.ranks[0].trace)
    image = stage.view.canvas.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), dtype=np.uint32)
    assert len(np.unique(pixels)) > 10
    limits = stage.session.limits
    for share in (10, 1_000, 100_000, 10**9):
        stage.session.show_range(limits.start_ns, limits.start_ns + max(limits.duration_ns // share, 1))
        stage.settle()
