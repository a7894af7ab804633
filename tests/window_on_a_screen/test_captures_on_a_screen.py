"""The window on a screen of its own (X11 or Wayland), as people see it: run under ``xvfb-run`` by ``.ci/run``."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from tests.support.capture_tour import MIN_COLOURS, PAGES, Tour, colour_count
from tests.support.windows import built_window

KEYS_OF_PAGES = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4, Qt.Key.Key_5, Qt.Key.Key_6)
CAPTURES = (
    "ascend/910b-qwen3-0.6b-pp2dp2",
    "pytorch/df_index_resolver.json.gz",
    "ascend/910b-cnn-ddp2-text/level2/rank0_ascend_pt",
)


@pytest.fixture
def tour(qapp, qtbot, tmp_path):
    if qapp.platformName() in ("offscreen", "minimal"):
        pytest.skip("no screen: run it under xvfb-run with QT_QPA_PLATFORM=xcb")
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    qtbot.waitExposed(window)
    yield Tour(window)
    window.close()


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_keys_of_the_pages_show_them_on_the_screen(tour, qtbot, captures, capture):
    tour.open((captures / capture,))
    tour.window.activateWindow()
    tour.window.setFocus()
    for key, page in zip(KEYS_OF_PAGES, PAGES, strict=True):
        QTest.keyClick(tour.window, key, Qt.KeyboardModifier.ControlModifier)
        assert tour.window.page == page
        assert colour_count(tour.image(page)) >= MIN_COLOURS


def test_the_window_keeps_inside_a_small_screen(tour, captures):
    tour.open((captures / CAPTURES[0],))
    for page in PAGES:
        tour.image(page)
        assert tour.window.minimumSizeHint().width() <= 1280, page
        assert tour.window.minimumSizeHint().height() <= 800, page
