import itertools
from dataclasses import fields

import pytest
from PySide6.QtGui import QColor, QPalette

from profiler_gui.toolkit.theme import DARK, LIGHT, Theme, ThemeMode

ACTIVITIES = ("computing", "transfer", "wait", "idle")


def lightness(colour):
    """Relative luminance by WCAG 2."""
    parts = (QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF())
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    high, low = sorted((lightness(first), lightness(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def theme(qapp):
    before = QPalette(qapp.palette())
    yield Theme(qapp)
    qapp.setPalette(before)


def test_the_theme_changes_at_run_time_and_says_so(theme, qapp, qtbot):
    theme.apply(ThemeMode.LIGHT)
    with qtbot.waitSignal(theme.changed):
        theme.apply(ThemeMode.DARK)
    assert theme.is_dark
    assert theme.colours is DARK
    assert qapp.palette().color(QPalette.ColorRole.Base) == QColor(DARK.background)
    with qtbot.assertNotEmitted(theme.changed):
        theme.apply(ThemeMode.DARK)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_every_role_is_a_colour(colours):
    assert all(QColor(getattr(colours, item.name)).isValid() for item in fields(colours))


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_text_can_be_read(colours):
    for role in ("text", "faint", "link", "error", "warning"):
        assert contrast(getattr(colours, role), colours.background) >= 4.5, role


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_what_stands_side_by_side_differs_in_lightness(colours):
    levels = sorted(lightness(getattr(colours, role)) for role in ACTIVITIES)
    assert all((high + 0.05) / (low + 0.05) > 1.15 for low, high in itertools.pairwise(levels))


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_the_selection_stands_out(colours):
    assert contrast(colours.selection, colours.background) >= 10
