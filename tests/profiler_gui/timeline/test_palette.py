import pytest

from profiler_gui.timeline.palette import (
    DIMMED,
    SHADES,
    Family,
    contrast,
    family_colour,
    relative_luminance,
    slice_palette,
)
from profiler_gui.toolkit.theme import DARK, LIGHT

THEMES = pytest.mark.parametrize("colours", [LIGHT, DARK])


@THEMES
def test_names_are_readable_on_every_slice(colours):
    palette = slice_palette(colours)
    for index in range(len(Family) * SHADES):
        assert contrast(int(palette.fill[index]), int(palette.text[index])) >= 4.5


@THEMES
def test_kinds_of_device_work_differ_in_lightness_and_not_in_hue_alone(colours):
    families = (Family.COMPUTING, Family.COMMUNICATION, Family.MEMORY, Family.SYNCHRONIZATION, Family.IDLE)
    luminances = sorted(relative_luminance(family_colour(colours, family)) for family in families)
    assert luminances[-1] / luminances[0] > 2
    computing, idle = (relative_luminance(family_colour(colours, family)) for family in (Family.COMPUTING, Family.IDLE))
    assert contrast(family_colour(colours, Family.COMPUTING), family_colour(colours, Family.IDLE)) > 1.5
    assert computing != idle


@THEMES
def test_dimmed_slices_are_nearer_to_the_background(colours):
    palette = slice_palette(colours)
    for index in range(len(Family) * SHADES):
        full, faint = int(palette.fill[index]), int(palette.fill[index + DIMMED])
        assert contrast(faint, palette.background) <= contrast(full, palette.background)


def test_indices_of_families_and_dimmed_ones_do_not_meet():
    assert len(Family) * SHADES <= DIMMED
