"""Colours of slices: a family of shades per kind of work, so that kinds differ in hue and lightness and names in shade.

A palette index is one byte: ``family · SHADES + shade``, plus ``DIMMED`` for slices that a search did not hit.
"""

import colorsys
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from profiler_gui.toolkit.theme import Colours

SHADES = 8
DIMMED = 128
"""Palette indices from here on are the same colours, nearly gone into the background."""
_DIMMED_RATIO = 0.82
_HUE_SPREAD = 0.03
_LIGHTNESS_SPREAD = 0.075
# Pure black and white: the better of the two has a contrast of at least 4.58 on any colour.
_TEXT_DARK = 0xFF000000
_TEXT_LIGHT = 0xFFFFFFFF


class Family(IntEnum):
    """What kind of work a slice is, as far as its colour goes."""

    HOST = 0
    RUNTIME = 1
    PYTHON = 2
    COMPUTING = 3
    COMMUNICATION = 4
    TRANSFER = 5
    MEMORY = 6
    SYNCHRONIZATION = 7
    IDLE = 8
    ANNOTATION = 9
    OTHER = 10


FAMILY_TITLES = {
    Family.HOST: "Host operators",
    Family.RUNTIME: "Runtime calls",
    Family.PYTHON: "Python",
    Family.COMPUTING: "Computing",
    Family.COMMUNICATION: "Communication",
    Family.TRANSFER: "Inside collectives",
    Family.MEMORY: "Copies",
    Family.SYNCHRONIZATION: "Waiting",
    Family.IDLE: "Free",
    Family.ANNOTATION: "Steps and annotations",
    Family.OTHER: "Other",
}
"""English; shown through ``tr``."""


@dataclass(frozen=True, slots=True, eq=False)
class SlicePalette:
    """Colours by palette index.

    Attributes:
        fill: uint32 0xffRRGGBB, shape (256,).
        text: uint32, shape (256,): readable on the fill.
        background: 0xffRRGGBB.
    """

    fill: NDArray[np.uint32]
    text: NDArray[np.uint32]
    background: int


def slice_palette(colours: Colours) -> SlicePalette:
    """Returns the palette of a theme."""
    background = rgb(colours.background)
    fill = np.full(256, rgb(colours.faint), dtype=np.uint32)
    text = np.full(256, _TEXT_LIGHT, dtype=np.uint32)
    for family, role in _roles(colours).items():
        for shade in range(SHADES):
            index = family * SHADES + shade
            fill[index] = _shade(role, shade)
            text[index] = _readable_on(int(fill[index]))
            fill[index + DIMMED] = mix(int(fill[index]), background, _DIMMED_RATIO)
            text[index + DIMMED] = mix(rgb(colours.text), background, 0.6)
    return SlicePalette(fill, text, background)


def family_colour(colours: Colours, family: Family) -> int:
    """Returns the base colour of a family, 0xffRRGGBB."""
    return rgb(_roles(colours)[family])


def rgb(colour: str) -> int:
    """Returns ``#rrggbb`` as 0xffRRGGBB."""
    return 0xFF000000 | int(colour.removeprefix("#"), 16)


def mix(colour: int, other: int, other_ratio: float) -> int:
    """Returns the mixture of two 0xffRRGGBB colours, channel by channel."""
    mixed = 0xFF
    for shift in (16, 8, 0):
        here, there = (colour >> shift) & 0xFF, (other >> shift) & 0xFF
        mixed = (mixed << 8) | round(here + (there - here) * other_ratio)
    return mixed


def relative_luminance(colour: int) -> float:
    """Returns the luminance of 0xffRRGGBB from 0 (black) to 1 (white), as WCAG 2 defines it."""
    channels = [((colour >> shift) & 0xFF) / 255 for shift in (16, 8, 0)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: int, other: int) -> float:
    """Returns the contrast ratio of two colours, 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((relative_luminance(colour), relative_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _roles(colours: Colours) -> dict[Family, str]:
    return {
        Family.HOST: colours.host,
        Family.RUNTIME: colours.allocated,
        Family.PYTHON: colours.preparing,
        Family.COMPUTING: colours.computing,
        Family.COMMUNICATION: colours.communication,
        Family.TRANSFER: colours.wait,
        Family.MEMORY: colours.memory,
        Family.SYNCHRONIZATION: colours.synchronization,
        Family.IDLE: colours.idle,
        Family.ANNOTATION: colours.mark,
        Family.OTHER: colours.baseline,
    }


def _shade(role: str, shade: int) -> int:
    """Returns one of the shades around a role: hue and lightness vary, the family stays recognisable."""
    red, green, blue = (((rgb(role) >> shift) & 0xFF) / 255 for shift in (16, 8, 0))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    # Neighbouring shade numbers lie far apart in hue; lightness follows another rhythm.
    hue_step = ((shade * 3) % SHADES) / (SHADES - 1) * 2 - 1
    lightness_step = (shade % 4) / 3 * 2 - 1
    shaded = colorsys.hls_to_rgb(
        (hue + hue_step * _HUE_SPREAD) % 1.0,
        min(max(lightness + lightness_step * _LIGHTNESS_SPREAD, 0.0), 1.0),
        saturation,
    )
    return 0xFF000000 | sum(round(part * 255) << shift for part, shift in zip(shaded, (16, 8, 0), strict=True))


def _readable_on(fill: int) -> int:
    return max((_TEXT_DARK, _TEXT_LIGHT), key=lambda text: contrast(text, fill))
