"""Running text: its labels, the fonts of its headings, sentences and tables of figures."""

from collections.abc import Iterable
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLabel


def text_label(text: str = "", name: str = "") -> QLabel:
    """Returns a label whose plain text wraps and can be selected and copied.

    Args:
        text: In it.
        name: For screen readers; "" where the text says enough.
    """
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    if name:
        label.setAccessibleName(name)
    return label


def bold(font: QFont) -> QFont:
    """Returns a font made bold."""
    heavier = QFont(font)
    heavier.setBold(True)
    return heavier


def enlarged(font: QFont, scale: float) -> QFont:
    """Returns a font made larger."""
    larger = QFont(font)
    larger.setPointSizeF(font.pointSizeF() * scale)
    return larger


def sentence(text: str) -> str:
    """Returns a phrase as a sentence; "" for none."""
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def figures_html(rows: Iterable[tuple[str, str]]) -> str:
    """Returns names and values as a table of rich text, each escaped; "" for none."""
    lines = "".join(
        f"<tr><td>{escape(name, quote=False)}</td><td style='padding-left:18px'>{escape(value, quote=False)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{lines}</table>" if lines else ""
