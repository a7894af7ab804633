"""Real captures in the product's own window: one of each kind always, all of them in the slow suite."""

import logging

import pytest

from tests.support.capture_tour import MIN_COLOURS, Tour, colour_count, paths_to_open
from tests.support.windows import built_window

KINDS = (
    "ascend/910b-cnn-ddp2-text/level2/rank0_ascend_pt",
    "ascend/old-cann7-timeline",
    "pytorch/alexnet.json.gz",
    "pytorch/rank_non_gpu.json.gz",
    "pytorch/gpt-cpu/ddp4_gloo",
)
"""With communication and memory, an old timeline, a GPU, a host alone, several files at once."""


@pytest.fixture
def shown_without_a_warning(qapp, qtbot, tmp_path, captures, caplog):
    """Returns what opens captures one after the other and gives the pages that stayed empty."""

    def show(names):
        caplog.set_level(logging.WARNING)
        window = built_window(qapp, tmp_path)
        qtbot.addWidget(window)
        window.resize(1280, 800)
        window.show()
        tour = Tour(window)
        paths = paths_to_open(captures)
        empty = []
        for name in names or paths:
            tour.open(paths[name])
            empty += [(name, page) for page, image in tour.images().items() if colour_count(image) < MIN_COLOURS]
            assert [record.getMessage() for record in caplog.records] == [], name
        window.close()
        return empty

    return show


def test_a_capture_of_each_kind_shows_all_pages_without_a_warning(shown_without_a_warning):
    assert shown_without_a_warning(KINDS) == []


@pytest.mark.slow
def test_every_text_kineto_and_chrome_capture_shows_all_pages_without_a_warning(shown_without_a_warning):
    assert shown_without_a_warning(()) == []
