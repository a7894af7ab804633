"""What a toggle says of itself before it is pressed, in one chip and one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QSizePolicy

from profiler_gui.toolkit.fills import mixed
from profiler_gui.toolkit.theme import Colours, Theme
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's optimizations are imported after the first paint
    from engine.core.registry import Registry
    from engine.optimizations.interface import Applicability, Optimization
    from engine.optimizations.selection import Enabled
    from profiler_gui.session.toggles import Toggles


@dataclass(frozen=True, slots=True)
class ChipText:
    """One chip.

    Attributes:
        kind: ``"applies"``, ``"already on"``, ``"no effect"``, ``"twin"``, ``"unknown"``, ``"conflict"``,
            ``"needs"``, ``"simulator"`` or ``"pending"``.
        text: In it, with a mark so that it is not told by colour alone.
        reason: The sentence below the title; "" for none.
    """

    kind: str
    text: str
    reason: str


def chip_of(optimization: Optimization, applicability: Applicability | None, refusal: str) -> ChipText:
    """Returns what to say of an optimization.

    Args:
        optimization: The toggle.
        applicability: Whether it does something to the subject; None while that is not known.
        refusal: Why it cannot be on with what is on; "" where it can.
    """
    from engine.optimizations.interface import Verdict

    if refusal.startswith(f"{optimization.id} needs "):
        return ChipText("needs", tr("⊕ needs another"), refusal)
    if refusal:
        return ChipText("conflict", tr("⚠ refused"), refusal)
    if applicability is None:
        return ChipText("pending", tr("…"), "")
    reason = applicability.reason
    if applicability.verdict is Verdict.APPLIES and optimization.simulator_only:
        return ChipText("simulator", tr("✓ simulator only"), reason)
    kinds = {
        Verdict.APPLIES: ("applies", tr("✓ applies")),
        Verdict.NO_EFFECT: ("no effect", tr("○ no effect")),
        Verdict.ALREADY_ON: ("already on", tr("● already on")),
        Verdict.NEEDS_TWIN: ("twin", tr("◇ needs a twin")),
    }
    kind, text = kinds.get(applicability.verdict, ("unknown", tr("? cannot be told")))
    return ChipText(kind, text, reason)


def refusals_by_id(
    registry: Registry[Optimization], toggles: Toggles, environment: Mapping[str, str]
) -> dict[str, str]:
    """Returns why each optimization cannot be on with what is on, by id; those that can are left out."""
    from engine.core.errors import ScenarioError
    from engine.optimizations.selection import enabled, refusals

    on: Mapping[str, Enabled] = {}
    found: dict[str, str] = {}
    for optimization in registry:  # some dozens
        trial = {**toggles.chosen, optimization.id: toggles.parameters_of(optimization.id)}
        try:
            on = {item.id: item for item in enabled(trial, registry)}
        except ScenarioError as error:  # a value a file or another window has set
            found[optimization.id] = str(error)
            continue
        own = [item for item in refusals(on.values(), environment) if _concerns(item.id, item.reason, optimization.id)]
        if own:
            found[optimization.id] = own[0].reason
    return found


def _concerns(refused: str, reason: str, optimization: str) -> bool:
    """Returns whether a refusal is about an optimization: conflicts are stated once per pair, by either of them."""
    return refused == optimization or f"conflicts with {optimization}:" in reason


_ROLES: Mapping[str, Callable[[Colours], str]] = {
    "applies": lambda colours: colours.computing,
    "simulator": lambda colours: colours.mark,
    "already on": lambda colours: colours.range,
    "conflict": lambda colours: colours.error,
    "twin": lambda colours: colours.warning,
    "needs": lambda colours: colours.warning,
}


class Chip(QLabel):
    """A short word in a rounded frame."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._kind = "pending"
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        theme.changed.connect(self._paint_frame)

    @property
    def kind(self) -> str:
        """What it says, in one word."""
        return self._kind

    def show_text(self, chip: ChipText) -> None:
        """Says something else."""
        self._kind = chip.kind
        self.setText(chip.text)
        self.setToolTip(chip.reason)
        self._paint_frame()

    def _paint_frame(self) -> None:
        colours = self._theme.colours
        role = _ROLES.get(self._kind)
        colour = QColor(role(colours) if role else colours.faint)
        tint = mixed(colour, QColor(colours.background), 0.85)
        self.setStyleSheet(
            f"color: {colours.text}; background: {tint.name()}; border: 1px solid {colour.name()};"
            " border-radius: 7px; padding: 0px 6px;"
        )
