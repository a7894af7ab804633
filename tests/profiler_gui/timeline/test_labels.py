import numpy as np
import pytest
from PySide6.QtGui import QFont

from profiler_gui.timeline.labels import MAX_NEW_LABELS, LabelAtlas, Labels

BACKGROUND = 0xFF204060
TEXT = 0xFFFFFFFF
NAMES = ["aten::matmul", "Ünïcode 核函数", "i", "", "x" * 500, *(f"name {index}" for index in range(5000))]


@pytest.fixture
def atlas(qapp) -> LabelAtlas:
    font = QFont(qapp.font())
    font.setPixelSize(11)
    return LabelAtlas(font, NAMES.__getitem__, len(NAMES))


def labels(*places: tuple[int, float, float, int]) -> Labels:
    names, left, right, top = (np.array(column) for column in zip(*places, strict=True))
    return Labels(
        names.astype(np.int64),
        left.astype(np.float64),
        right.astype(np.float64),
        top.astype(np.int64),
        np.full(len(names), 18),
        np.full(len(names), TEXT, dtype=np.uint32),
    )


def written(atlas: LabelAtlas, *places: tuple[int, float, float, int], size=(60, 600)) -> np.ndarray:
    image = np.full(size, BACKGROUND, dtype=np.uint32)
    while not atlas.write(image, labels(*places)):
        image[:] = BACKGROUND
    return image != BACKGROUND


def test_a_name_is_written_inside_its_slice(atlas):
    ink = written(atlas, (0, 100.0, 300.0, 20))
    rows, columns = np.nonzero(ink)
    assert len(rows) > 50
    assert rows.min() >= 20
    assert rows.max() < 38
    assert columns.min() >= 103
    assert columns.max() < 300


def test_names_of_neighbours_never_overlap(atlas):
    left = written(atlas, (0, 10.0, 60.0, 0))
    right = written(atlas, (0, 60.0, 90.0, 0))
    assert np.nonzero(left)[1].max() < 60 <= np.nonzero(right)[1].min()
    assert np.array_equal(written(atlas, (0, 10.0, 60.0, 0), (0, 60.0, 90.0, 0)), left | right)


def test_a_name_that_does_not_fit_is_shortened_and_one_that_says_nothing_is_left_out(atlas):
    whole, short = written(atlas, (0, 0.0, 400.0, 0)), written(atlas, (0, 0.0, 50.0, 0))
    assert np.nonzero(short)[1].max() < 50
    assert 0 < np.count_nonzero(short) < np.count_nonzero(whole)
    assert not written(atlas, (0, 0.0, 20.0, 0)).any()


def test_a_short_name_fits_where_a_long_one_would_not(atlas):
    assert written(atlas, (2, 0.0, 14.0, 0)).any()


def test_an_empty_name_writes_nothing_and_a_very_long_one_stays_in_its_slice(atlas):
    assert not written(atlas, (3, 0.0, 400.0, 0)).any()
    assert np.nonzero(written(atlas, (4, 0.0, 590.0, 0)))[1].max() < 590


def test_names_are_clipped_at_the_edges_of_the_image(atlas):
    assert written(atlas, (0, 500.0, 900.0, 50), (0, 0.0, 200.0, -9)).any()


def test_ink_is_the_same_when_the_name_is_written_again(atlas):
    first = written(atlas, (1, 3.0, 200.0, 0))
    assert np.array_equal(first, written(atlas, (1, 3.0, 200.0, 0)))
    assert first.any()


def test_many_new_names_are_drawn_over_several_frames(atlas):
    places = [(10 + index, 0.0, 200.0, 0) for index in range(3 * MAX_NEW_LABELS)]
    image = np.full((60, 600), BACKGROUND, dtype=np.uint32)
    answers = [atlas.write(image, labels(*places)) for _ in range(4)]
    assert answers[:2] == [False, False]
    assert answers[-1]


def test_an_atlas_that_is_full_begins_anew(atlas):
    for start in range(5, 5000, 200):
        written(atlas, *((index, 0.0, 200.0, 0) for index in range(start, start + 200)))
    assert written(atlas, (0, 0.0, 200.0, 0)).any()


def test_the_widest_labels_are_kept():
    kept = labels((0, 0, 10, 0), (1, 0, 30, 0), (2, 0, 20, 0)).widest(2)
    assert sorted(kept.name.tolist()) == [1, 2]
