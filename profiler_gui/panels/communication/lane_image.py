"""A lane as an image: full height where communication is exposed, half height where computing hides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtGui import QColor, QImage

from profiler_gui.panels.communication.lanes import LaneClass, LanePixels
from profiler_gui.toolkit.theme import Colours

if TYPE_CHECKING:  # the engine is imported after the first paint
    from engine.core.arrays import Float64Array, UInt8Array

HATCH_PX = 7
PALE_RATIO = 0.35
"""How strong the colour is between the lines of a hatch."""
MIN_VISIBLE_RATIO = 0.2
"""What fills less of its column is still drawn this dark: pale, not invisible."""


def lane_image(pixels: LanePixels, height_px: int, colours: Colours) -> QImage:
    """Returns the image of a lane, one column per column of ``pixels``."""
    exposed, hidden = _visible(pixels.exposed), _visible(pixels.hidden)
    width_px = exposed.shape[1]
    half = height_px // 2
    bytes_ = np.zeros((height_px, width_px, 4), dtype=np.uint8)
    for part, ratios in (
        (slice(0, half), exposed),
        (slice(half, height_px), np.minimum(exposed + hidden, 1.0)),
    ):
        pale = _blend(ratios, colours, unsplit_ratio=PALE_RATIO)
        if not ratios[LaneClass.UNSPLIT].any():
            bytes_[part, :, :3] = pale
            continue
        rows, columns = np.mgrid[part, 0:width_px]
        hatched = (columns - rows) % HATCH_PX < HATCH_PX // 2
        strong = _blend(ratios, colours, unsplit_ratio=1.0)
        bytes_[part, :, :3] = np.where(hatched[:, :, None], strong, pale)
    image = QImage(bytes_.tobytes(), width_px, height_px, width_px * 4, QImage.Format.Format_RGBX8888)
    return image.copy()  # the image must own its pixels: ours go


def _visible(ratios: Float64Array) -> Float64Array:
    shown: Float64Array = np.where(ratios > 0, np.maximum(ratios, MIN_VISIBLE_RATIO), 0.0)
    return shown


def _blend(ratios: Float64Array, colours: Colours, *, unsplit_ratio: float) -> UInt8Array:
    """Returns uint8 RGB per column, shape (columns, 3): the classes over the background, in their shares."""
    background = _rgb(colours.background)
    unsplit = unsplit_ratio * _rgb(colours.communication) + (1 - unsplit_ratio) * background
    by_class = {
        LaneClass.TRANSFER: _rgb(colours.transfer),
        LaneClass.WAIT: _rgb(colours.wait),
        LaneClass.UNSPLIT: unsplit,
    }
    palette = np.stack([by_class[kind] for kind in LaneClass])
    total = ratios.sum(axis=0)
    shares = ratios / np.maximum(total, 1.0)
    filled = np.minimum(total, 1.0)
    mixture: UInt8Array = np.rint(shares.T @ palette + (1 - filled)[:, None] * background).astype(np.uint8)
    return mixture


def _rgb(name: str) -> Float64Array:
    colour = QColor(name)
    return np.array([colour.red(), colour.green(), colour.blue()], dtype=np.float64)
