"""Every capture a window can open, and a tour through its pages. One window and one worker for all of them."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from profiler_gui.session.failure import Failure
from profiler_gui.window.main_window import MainWindow
from tests.support.patience import PATIENCE_MS

PAGES = ("overview", "timeline", "memory", "communication", "fusion", "whatif")
MIN_COLOURS = 8
"""A page that shows something has text, lines and surfaces in more colours than this."""


def paths_to_open(captures: Path) -> dict[str, tuple[Path, ...]]:
    """Returns what people would open → its paths: every text, Kineto and Chrome capture, jobs of ranks as a whole."""
    ascend, pytorch = captures / "ascend", captures / "pytorch"
    found = sorted(ascend.glob("910b-cnn-ddp2-text/level*/rank*_ascend_pt"))
    found += [ascend / "910b-qwen3-0.6b-pp2dp2", ascend / "910b-qwen3-0.6b-pp2dp2" / "rank_0_ascend_pt"]
    found += [ascend / "old-cann7-timeline"]
    found += sorted(pytorch.glob("*.json.gz"))
    found += [pytorch / "dlrm-v100-8ranks"]
    found += sorted(pytorch.glob("gpt-cpu/*.pt.trace.json.gz"))
    named = {str(path.relative_to(captures)): (path,) for path in found}
    ranks = tuple(sorted(pytorch.glob("gpt-cpu/ddp4_gloo/*.pt.trace.json.gz")))
    return named | {"pytorch/gpt-cpu/ddp4_gloo": ranks}


@dataclass
class Tour:
    """Opens captures in one window and looks at every page.

    Attributes:
        window: The window.
        failures: What the session reported.
    """

    window: MainWindow
    failures: list[Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = self.window.context.session
        self.session.failed.disconnect(self.window.show_failure)
        self.session.failed.connect(self.failures.append)

    def open(self, paths: tuple[Path, ...]) -> None:
        """Opens a capture and waits for its analyses."""
        self.session.open(paths)
        self.wait_until(lambda: not self.session.is_busy)
        assert self.failures == []
        assert self.session.document is not None
        assert self.session.document.paths == paths
        assert self.session.summary is not None

    def images(self) -> dict[str, QImage]:
        """Returns a picture of every page, taken when nothing is being computed for it any more."""
        return {page: self.image(page) for page in PAGES}

    def image(self, page: str) -> QImage:
        """Shows a page and returns a picture of the window when it has come to rest."""
        self.window.show_pane(page)
        self.settle(0.05)
        if page == "timeline":
            canvas = self.window.stack.currentWidget().pane.canvas
            self.wait_until(lambda: not canvas.is_loading and not canvas.frame_is_stale)
        return self.window.grab().toImage()

    def wait_until(self, is_met) -> None:
        """Lets the window work until something holds."""
        end_s = time.monotonic() + PATIENCE_MS / 1e3
        while not is_met():
            assert time.monotonic() < end_s, "the window did not come to rest"
            QApplication.processEvents()
            time.sleep(0.002)

    def settle(self, time_s: float) -> None:
        """Lets the window work for a moment."""
        end_s = time.monotonic() + time_s
        self.wait_until(lambda: time.monotonic() >= end_s)


def colour_count(image: QImage) -> int:
    """Returns the number of colours among every fourth pixel of every fourth line."""
    pixels = np.frombuffer(image.convertToFormat(QImage.Format.Format_RGB32).constBits(), dtype=np.uint32)
    return len(np.unique(pixels.reshape(image.height(), image.width())[::4, ::4]))
