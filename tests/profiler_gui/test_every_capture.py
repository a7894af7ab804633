"""Every real capture in the product's own window."""

import logging

from tests.support.capture_tour import MIN_COLOURS, Tour, colour_count, paths_to_open
from tests.support.windows import built_window


def test_every_text_kineto_and_chrome_capture_shows_all_pages_without_a_warning(
    qapp, qtbot, tmp_path, captures, caplog
):
    caplog.set_level(logging.WARNING)
    window = built_window(qapp, tmp_path)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    tour = Tour(window)
    empty = []
    for name, paths in paths_to_open(captures).items():
        tour.open(paths)
        empty += [(name, page) for page, image in tour.images().items() if colour_count(image) < MIN_COLOURS]
        assert [record.getMessage() for record in caplog.records] == [], name
    window.close()
    assert empty == []
