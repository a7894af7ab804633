"""Colours of the window, light and dark, exchanged while it runs.

Roles differ in lightness as well as in hue (the hues are those of Okabe and Ito's palette, made for colour-blind
readers), so that computing, communication, copies and idle time can be told apart in greyscale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPalette


class ThemeMode(StrEnum):
    """What the user asked for."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Colours:
    """Colour roles as ``#rrggbb``, for painters and plots; widgets take theirs from the palette.

    Attributes:
        computing: Device computing.
        communication: Collectives that are not split, and the exposed part where it is told apart.
        transfer: A collective after its last member arrived.
        wait: A collective before that, and bubbles.
        idle: Nothing to do.
        memory: Copies and fills.
        synchronization: Stream held by an event or notification.
        host: Host work.
        preparing: Before the first device work of a step.
        allocated: In use by tensors.
        active: In use or waiting for another stream.
        reserved: Taken from the driver.
        limit: The device's capacity.
        stranded: Reserved, free and of no use.
        error: Severity.
        warning: Severity.
        notice: Severity.
        baseline: Run A in comparisons.
        candidate: Run B in comparisons.
        background: Of drawn views.
        alternate: Every other row.
        grid: Lines behind drawings.
        text: On the background.
        faint: Less important text.
        selection: Outline of what is selected: dark on light, light on dark.
        hover: Outline of what is under the pointer.
        range: Fill of a selected stretch.
        mark: Marks.
        match: Search hits.
        link: Text that can be clicked.
    """

    computing: str
    communication: str
    transfer: str
    wait: str
    idle: str
    memory: str
    synchronization: str
    host: str
    preparing: str
    allocated: str
    active: str
    reserved: str
    limit: str
    stranded: str
    error: str
    warning: str
    notice: str
    baseline: str
    candidate: str
    background: str
    alternate: str
    grid: str
    text: str
    faint: str
    selection: str
    hover: str
    range: str
    mark: str
    match: str
    link: str


LIGHT = Colours(
    computing="#009e73",
    communication="#d55e00",
    transfer="#a34700",
    wait="#f0a860",
    idle="#d0d4da",
    memory="#cc79a7",
    synchronization="#a89ac8",
    host="#56b4e9",
    preparing="#8a97a8",
    allocated="#0072b2",
    active="#56b4e9",
    reserved="#8a97a8",
    limit="#b3261e",
    stranded="#c98a00",
    error="#b3261e",
    warning="#9a6700",
    notice="#3a6ea5",
    baseline="#8a8f98",
    candidate="#0072b2",
    background="#ffffff",
    alternate="#f5f6f8",
    grid="#e2e5ea",
    text="#1c1f24",
    faint="#646b75",
    selection="#101418",
    hover="#4a5058",
    range="#3a6ea5",
    mark="#7a3db8",
    match="#ffd54a",
    link="#0b5cad",
)
DARK = Colours(
    computing="#2bbf93",
    communication="#e5772a",
    transfer="#c05a10",
    wait="#f5bd80",
    idle="#4a5058",
    memory="#d990ba",
    synchronization="#9487bd",
    host="#62b8ea",
    preparing="#7d8998",
    allocated="#4ba3e3",
    active="#8fd0f5",
    reserved="#8a97a8",
    limit="#ff7b72",
    stranded="#e3b341",
    error="#ff7b72",
    warning="#e3b341",
    notice="#79b8ff",
    baseline="#8d939c",
    candidate="#4ba3e3",
    background="#16181c",
    alternate="#1b1e23",
    grid="#2c3037",
    text="#e4e7eb",
    faint="#98a0aa",
    selection="#ffffff",
    hover="#c0c5cc",
    range="#79b8ff",
    mark="#c792ea",
    match="#ffd54a",
    link="#79b8ff",
)


class Theme(QObject):
    """The theme in use.

    Args:
        application: Whose palette is set.

    Signals:
        changed: The colours are others now.
    """

    changed = Signal()

    def __init__(self, application: QGuiApplication, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._application = application
        self._mode = ThemeMode.SYSTEM
        self._is_dark: bool | None = None
        application.styleHints().colorSchemeChanged.connect(self._update)

    @property
    def is_dark(self) -> bool:
        """Whether dark colours are in use."""
        return bool(self._is_dark)

    @property
    def colours(self) -> Colours:
        """The roles in use."""
        return DARK if self._is_dark else LIGHT

    def colour(self, role: Callable[[Colours], str]) -> QColor:
        """Returns a role as a colour: ``theme.colour(lambda roles: roles.computing)``."""
        return QColor(role(self.colours))

    def apply(self, mode: ThemeMode) -> None:
        """Changes the colours of the whole application now."""
        self._mode = mode
        self._update()

    def _update(self) -> None:
        system_is_dark = self._application.styleHints().colorScheme() is Qt.ColorScheme.Dark
        is_dark = self._mode is ThemeMode.DARK or (self._mode is ThemeMode.SYSTEM and system_is_dark)
        if is_dark != self._is_dark:
            self._is_dark = is_dark
            self._application.setPalette(palette_of(self.colours, is_dark=is_dark))
            self.changed.emit()


def palette_of(colours: Colours, *, is_dark: bool) -> QPalette:
    """Returns the palette of the widgets."""
    role = QPalette.ColorRole
    window, button = ("#2a2e35", "#363b43") if is_dark else ("#eef0f3", "#f7f8fa")
    palette = QPalette()
    for name, colour in (
        (role.Window, window),
        (role.WindowText, colours.text),
        (role.Base, colours.background),
        (role.AlternateBase, colours.alternate),
        (role.Text, colours.text),
        (role.Button, button),
        (role.ButtonText, colours.text),
        (role.BrightText, colours.error),
        (role.ToolTipBase, "#363b43" if is_dark else "#ffffff"),
        (role.ToolTipText, colours.text),
        (role.PlaceholderText, colours.faint),
        (role.Highlight, "#2f6db3" if is_dark else "#2a6fb8"),
        (role.HighlightedText, "#ffffff"),
        (role.Link, colours.link),
        (role.LinkVisited, colours.link),
        (role.Light, "#4a505a" if is_dark else "#ffffff"),
        (role.Midlight, "#40454e" if is_dark else "#f2f3f5"),
        (role.Mid, "#4a505a" if is_dark else "#c4c8ce"),
        (role.Dark, "#101216" if is_dark else "#a4a9b0"),
        (role.Shadow, "#000000" if is_dark else "#6b7077"),
    ):
        palette.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, name, QColor("#6a7079" if is_dark else "#9aa0a8"))
    return palette
