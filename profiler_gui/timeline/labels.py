"""Names inside slices: every name is drawn once into an atlas of masks, and copied from there into each frame.

Shortening a name is choosing how many of its characters to copy, so zooming draws no text anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter

from engine.core.arrays import Float64Array, Int64Array, UInt8Array
from profiler_gui.timeline.raster import Image

MAX_LABELS = 400
"""Names per frame; the widest slices are served first."""
MAX_NEW_LABELS = 16
"""Names drawn anew per frame; the others follow in the next frames."""
MIN_LABEL_PX = 26
"""Logical width from which a slice may carry a name."""
_PADDING_PX = 3
_MAX_TEXT_PX = 460
_SLOTS = 2048
_ELLIPSIS = "…"
_MAX_CHARACTERS = 160


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Names to write into a frame (all have one: no −1). Device pixels; shape (n,).

    Attributes:
        name: int64 string ids.
        left: float64, visible left edge of the slice.
        right: float64, visible right edge.
        top: int64, first image row of the lane.
        height: int64, rows of the lane.
        text: uint32 colour of the text.
    """

    name: Int64Array
    left: Float64Array
    right: Float64Array
    top: Int64Array
    height: Int64Array
    text: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.name)

    def widest(self, count: int) -> "Labels":
        """Returns the ``count`` widest."""
        if len(self) <= count:
            return self
        width = self.right - self.left
        kept = np.argpartition(-width, count)[:count]
        return Labels(*(getattr(self, item)[kept] for item in self.__slots__))


class LabelAtlas:
    """Masks of names in one size of one font.

    Args:
        font: Its size is in device pixels.
        text_of: Returns the text of a string id.
        name_count: How many string ids there are.
    """

    def __init__(self, font: QFont, text_of: Callable[[int], str], name_count: int) -> None:
        self._font = QFont(font)
        # Without kerning the width of a text is the sum of its characters' widths.
        self._font.setKerning(False)
        self._metrics = QFontMetricsF(self._font)
        self._text_of = text_of
        self._height = int(np.ceil(self._metrics.height()))
        self._width = round(_MAX_TEXT_PX * max(1.0, self._height / 14))
        # Slot 0 holds the ellipsis.
        self._masks: UInt8Array = np.zeros((_SLOTS * self._height, self._width), dtype=np.uint8)
        self._slot_of_name: NDArray[np.int32] = np.full(name_count, -1, dtype=np.int32)
        self._advances: Float64Array = np.zeros((_SLOTS, _MAX_CHARACTERS + 1), dtype=np.float64)
        self._character_widths: dict[str, float] = {}
        self._used = 0
        self._clear()

    @property
    def height(self) -> int:
        """Of a line, in device pixels."""
        return self._height

    def write(self, image: Image, labels: Labels, padding: int = _PADDING_PX) -> bool:
        """Writes the names into the image; returns whether all were drawn (else ask for another frame)."""
        slots, is_complete = self._slots(labels.name)
        known = slots >= 0
        _write(
            image,
            self._masks,
            self._height,
            self._advances,
            slots[known],
            labels.left[known],
            labels.right[known],
            labels.top[known] + (labels.height[known] - self._height) // 2,
            labels.text[known],
            padding,
        )
        return is_complete

    def _slots(self, names: Int64Array) -> tuple[NDArray[np.int32], bool]:
        missing = np.unique(names[self._slot_of_name[names] < 0])
        if len(missing):
            new = missing[:MAX_NEW_LABELS]
            if self._used + len(new) > _SLOTS:
                self._clear()
                new = np.unique(names)[:MAX_NEW_LABELS]
            self._draw([(self._text_of(int(name)), int(name)) for name in new])
        slots = self._slot_of_name[names]
        return slots, bool(np.all(slots >= 0))

    def _clear(self) -> None:
        self._slot_of_name[:] = -1
        self._used = 0
        self._draw([(_ELLIPSIS, -1)])

    def _draw(self, texts: list[tuple[str, int]]) -> None:
        """Draws texts into the next free slots. A loop over at most ``MAX_NEW_LABELS`` texts."""
        first = self._used
        block = self._masks[first * self._height : (first + len(texts)) * self._height]
        block[:] = 0
        canvas = QImage(block.data, self._width, block.shape[0], block.strides[0], QImage.Format.Format_Grayscale8)
        painter = QPainter(canvas)
        painter.setFont(self._font)
        painter.setPen(QColor(Qt.GlobalColor.white))
        for index, (text, name) in enumerate(texts):
            line = text.replace("\n", " ")[:_MAX_CHARACTERS]
            painter.setClipRect(0, index * self._height, self._width, self._height)
            painter.drawText(QRectF(0, index * self._height, 1e5, self._height), Qt.AlignmentFlag.AlignVCenter, line)
            widths = [self._width_of(character) for character in line]
            advances = self._advances[first + index]
            advances[:] = np.inf
            advances[0] = 0.0
            advances[1 : len(line) + 1] = np.cumsum(widths)
            if name >= 0:
                self._slot_of_name[name] = first + index
        painter.end()
        self._used += len(texts)

    def _width_of(self, character: str) -> float:
        width = self._character_widths.get(character)
        if width is None:
            width = self._metrics.horizontalAdvance(character)
            self._character_widths[character] = width
        return width


def compile_kernels(image: Image) -> None:
    """Compiles what writes names, with the array types that ``LabelAtlas`` uses; writes nothing."""
    nothing, nowhere = np.empty(0, dtype=np.float64), np.empty(0, dtype=np.int64)
    masks, advances = np.zeros((1, 1), dtype=np.uint8), np.zeros((1, 2), dtype=np.float64)
    slots, text = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint32)
    _write(image, masks, 1, advances, slots, nothing, nothing, nowhere, text, _PADDING_PX)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _blit(image: Any, masks: Any, mask_top: Any, height: Any, left: Any, top: Any, width: Any, text: Any) -> Any:
    # Red and blue are mixed in one multiplication, green in another; a cover of 255 counts as 256.
    text_red_blue, text_green = np.int64(text) & 0xFF00FF, np.int64(text) & 0x00FF00
    for row in range(max(0, -top), min(height, image.shape[0] - top)):
        for column in range(max(0, -left), min(width, image.shape[1] - left, masks.shape[1])):
            cover = np.int64(masks[mask_top + row, column])
            if cover == 0:
                continue
            cover += cover >> 7
            below = np.int64(image[top + row, left + column])
            red_blue = ((below & 0xFF00FF) * (256 - cover) + text_red_blue * cover) >> 8
            green = ((below & 0x00FF00) * (256 - cover) + text_green * cover) >> 8
            image[top + row, left + column] = np.uint32(0xFF000000 | (red_blue & 0xFF00FF) | (green & 0x00FF00))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _write(
    image: Any,
    masks: Any,
    height: Any,
    advances: Any,
    slots: Any,
    left: Any,
    right: Any,
    top: Any,
    text: Any,
    padding: Any,
) -> Any:
    ellipsis = advances[0, 1]
    for label in range(len(slots)):
        slot = slots[label]
        room = right[label] - left[label] - 2 * padding
        count = 0
        while count + 1 < advances.shape[1] and advances[slot, count + 1] <= room:
            count += 1
        is_whole = count + 1 == advances.shape[1] or np.isinf(advances[slot, count + 1])
        if is_whole:
            is_whole = advances[slot, count] <= masks.shape[1]
        if not is_whole:
            while count > 0 and advances[slot, count] + ellipsis > min(room, masks.shape[1]):
                count -= 1
            # One letter and an ellipsis name nothing.
            if count < 2:
                continue
        x = np.int64(np.ceil(left[label])) + padding
        width = np.int64(np.ceil(advances[slot, count]))
        _blit(image, masks, slot * height, height, x, top[label], width, text[label])
        if not is_whole:
            _blit(image, masks, 0, height, x + width, top[label], np.int64(np.ceil(ellipsis)), text[label])
