"""Controls of the New Simulation dialog: each shows one value of a scenario and says what it is now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.toolkit.translations import tr
from profiler_gui.window.simulation.fields import ScenarioField

_DISTRIBUTIONS = ("fixed", "lognormal", "uniform")
_USUAL_LENGTH = 4096
_USUAL_SIGMA = 0.5
_MAX_TOKENS = 10_000_000


class _Framed(QWidget):
    """An editor with room for what is wrong with its value.

    Signals:
        changed: The user gave another value.
    """

    changed = Signal()

    def __init__(self, editor: QWidget, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editor = editor
        editor.setAccessibleName(name)
        self.setFocusProxy(editor)
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        self.problem.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(1)
        layout.addWidget(editor)
        layout.addWidget(self.problem)

    def show_problem(self, text: str, colour: str) -> None:
        """Says what is wrong with the value; "" where nothing is."""
        self.problem.setStyleSheet(f"color: {colour};")
        self.problem.setText(text)
        self.problem.setVisible(bool(text))
        self.editor.setAccessibleDescription(text)


def control_of(field: ScenarioField) -> FieldControl:
    """Returns the control for a field."""
    control: FieldControl
    if field.choices:
        control = ChoiceControl(field)
    elif isinstance(field.default, bool):
        control = FlagControl(field)
    elif isinstance(field.default, str):
        control = TextControl(field)
    else:
        control = NumberControl(field)
    control.editor.setToolTip(tr(field.tip) if field.tip else "")
    return control


def plain(title: str) -> str:
    """Returns a title without its mnemonic, translated."""
    return tr(title).replace("&", "")


class ChoiceControl(_Framed):
    """One of a few words; a file that says nothing of them (a model given by its shapes) keeps saying nothing."""

    def __init__(self, field: ScenarioField) -> None:
        self._box = QComboBox()
        super().__init__(self._box, plain(field.title))
        self._field = field
        for choice in field.choices:
            self._box.addItem(choice, choice)
        self._box.currentIndexChanged.connect(lambda _: self.changed.emit())
        self.set_value(field.default)

    def value(self) -> str | None:
        """Returns the word."""
        return self._box.currentData()  # type: ignore[no-any-return]  # the words put in above

    def set_value(self, value: Any) -> None:
        """Shows a word; one that is not known is shown as it is, so that the engine can say so."""
        self._box.blockSignals(True)
        if value is None and self._field.path[-1] == "preset":
            if self._box.findData(None) < 0:
                self._box.addItem(tr("as in the file"), None)
        elif value is not None and self._box.findData(value) < 0:
            self._box.addItem(str(value), value)
        wanted = self._field.default if value is None and self._field.path[-1] != "preset" else value
        self._box.setCurrentIndex(self._box.findData(wanted))
        self._box.blockSignals(False)


class TextControl(_Framed):
    """Free text."""

    def __init__(self, field: ScenarioField) -> None:
        self._edit = QLineEdit(field.default)
        super().__init__(self._edit, plain(field.title))
        self._field = field
        self._edit.textChanged.connect(lambda _: self.changed.emit())

    def value(self) -> str | None:
        """Returns the text."""
        return self._edit.text() or None

    def set_value(self, value: Any) -> None:
        """Shows a text."""
        self._edit.blockSignals(True)
        self._edit.setText(self._field.default if value is None else str(value))
        self._edit.blockSignals(False)


class FlagControl(_Framed):
    """Whether something is on."""

    def __init__(self, field: ScenarioField) -> None:
        self._box = QCheckBox()
        super().__init__(self._box, plain(field.title))
        self._field = field
        self._box.toggled.connect(lambda _: self.changed.emit())
        self.set_value(None)

    def value(self) -> bool:
        """Returns whether it is on."""
        return self._box.isChecked()

    def set_value(self, value: Any) -> None:
        """Shows whether it is on; what is no flag shows the default, and the engine says what is wrong."""
        self._box.blockSignals(True)
        self._box.setChecked(value if isinstance(value, bool) else self._field.default)
        self._box.blockSignals(False)


class NumberControl(_Framed):
    """A number, whole or not, in the unit of the form."""

    def __init__(self, field: ScenarioField) -> None:
        self._is_whole = isinstance(field.default, int)
        self._box: QSpinBox | QDoubleSpinBox = QSpinBox() if self._is_whole else QDoubleSpinBox()
        super().__init__(self._box, plain(field.title))
        self._field = field
        self._as_given: tuple[float, Any] | None = None
        if isinstance(self._box, QDoubleSpinBox):
            self._box.setDecimals(2)
        self._box.setRange(field.minimum, field.maximum)  # type: ignore[arg-type]  # whole bounds of whole fields
        self._box.setGroupSeparatorShown(True)
        if field.unit:
            self._box.setSuffix(f" {tr(field.unit)}")
        if field.unset:
            self._box.setSpecialValueText(tr(field.unset))
        self._box.valueChanged.connect(lambda _: self.changed.emit())
        self.set_value(None)

    def value(self) -> Any:
        """Returns the number in the file's unit; exactly what the file says while the form shows that."""
        shown = self._box.value()
        if self._field.unset and shown == self._box.minimum() and self._field.default == 0:
            return None
        if self._as_given is not None and self._as_given[0] == shown:
            return self._as_given[1]
        return shown if self._field.scale == 1 else round(shown * self._field.scale)

    def set_value(self, value: Any) -> None:
        """Shows a number; what is none shows the default, and the engine says what is wrong with the file."""
        self._box.blockSignals(True)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        shown = value / self._field.scale if is_number else self._field.default
        self._box.setValue(int(shown) if self._is_whole else float(shown))  # type: ignore[arg-type]  # as the box's kind
        self._as_given = (self._box.value(), value) if value is not None else None
        self._box.blockSignals(False)


class StepsControl(_Framed):
    """Step numbers, separated by commas; nothing for the last step."""

    def __init__(self) -> None:
        self._edit = QLineEdit()
        super().__init__(self._edit, tr("Recorded steps"))
        self._edit.setPlaceholderText(tr("the last one"))
        self._edit.setToolTip(tr("Steps, counted from 0, whose operators are kept; the history is kept for all steps."))
        self._edit.textChanged.connect(lambda _: self.changed.emit())

    def value(self) -> list[int | str] | None:
        """Returns the numbers; what is no number stays text, so that the engine can say so."""
        parts = [part.strip() for part in self._edit.text().split(",") if part.strip()]
        return [int(part) if part.isdecimal() else part for part in parts] or None

    def set_value(self, value: Any) -> None:
        """Shows the numbers."""
        self._edit.blockSignals(True)
        self._edit.setText(", ".join(map(str, value)) if isinstance(value, list) else "")
        self._edit.blockSignals(False)


class LengthsControl(_Framed):
    """Lengths of sequences: one number, or a distribution with what it needs."""

    def __init__(self) -> None:
        editor = QWidget()
        self._kind = QComboBox()
        for word, title in zip(_DISTRIBUTIONS, (tr("fixed"), tr("lognormal"), tr("uniform")), strict=True):
            self._kind.addItem(title, word)
        self._kind.setAccessibleName(tr("How lengths vary"))
        self._mean = self._tokens(tr("Mean length"), _USUAL_LENGTH)
        self._sigma = QDoubleSpinBox(value=_USUAL_SIGMA, minimum=0.0, maximum=10.0, decimals=2, singleStep=0.1)
        self._sigma.setAccessibleName(tr("Spread"))
        self._sigma.setToolTip(tr("Standard deviation of the logarithm of the length"))
        self._shortest = self._tokens(tr("Shortest"), 1)
        self._longest = self._tokens(tr("Longest"), 2 * _USUAL_LENGTH)
        self._given: Mapping[str, Any] = {}
        rows = QVBoxLayout(editor)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(2)
        self._labels = {box: QLabel(text) for box, text in ((self._sigma, "σ"), (self._longest, "≤"))}
        # Two rows, so that no distribution makes the form wider.
        above, below = (self._kind, self._mean), (*self._pair(self._sigma), self._shortest, *self._pair(self._longest))
        for widgets in (above, below):
            row = QHBoxLayout()
            for widget in widgets:
                row.addWidget(widget, 0 if isinstance(widget, QLabel) else 1)
            rows.addLayout(row)
        super().__init__(editor, tr("Sequence length"))
        self.setFocusProxy(self._kind)
        self._kind.currentIndexChanged.connect(self._on_kind)
        for box in (self._mean, self._sigma, self._shortest, self._longest):
            box.valueChanged.connect(lambda _: self.changed.emit())
        self._arrange()

    def _tokens(self, name: str, value: int) -> QSpinBox:
        box = QSpinBox()
        box.setRange(1, _MAX_TOKENS)
        box.setValue(value)
        box.setAccessibleName(name)
        box.setToolTip(name)
        return box

    def _pair(self, box: QWidget) -> tuple[QWidget, QWidget]:
        return self._labels[box], box  # type: ignore[index]  # the two boxes that have a label

    def _on_kind(self) -> None:
        self._arrange()
        self.changed.emit()

    def _arrange(self) -> None:
        kind = self._kind.currentData()
        for widget in self._pair(self._sigma):
            widget.setVisible(kind == "lognormal")
        self._shortest.setVisible(kind == "uniform")
        for widget in self._pair(self._longest):
            widget.setVisible(kind != "fixed")

    def value(self) -> Any:
        """Returns a number of tokens or a table; keys of the file's table that have no control stay."""
        kind = self._kind.currentData()
        if kind == "fixed":
            return self._mean.value()
        table = {**self._given, "distribution": kind, "mean": self._mean.value(), "max": self._longest.value()}
        if kind == "lognormal":
            return table | {"sigma": round(self._sigma.value(), 4)}
        return table | {"min": self._shortest.value()}

    def set_value(self, value: Any) -> None:
        """Shows a number of tokens or a table."""
        boxes = (self._kind, self._mean, self._sigma, self._shortest, self._longest)
        for box in boxes:
            box.blockSignals(True)
        table = value if isinstance(value, Mapping) else {}
        self._given = table
        kind = table.get("distribution", "lognormal") if table else "fixed"
        self._kind.setCurrentIndex(max(self._kind.findData(kind), 0))
        mean = int(_number(table.get("mean") if table else value, _USUAL_LENGTH))
        self._mean.setValue(mean)
        self._sigma.setValue(_number(table.get("sigma"), _USUAL_SIGMA))
        self._shortest.setValue(int(_number(table.get("min"), 1)))
        self._longest.setValue(int(_number(table.get("max"), 2 * mean)))
        for box in boxes:
            box.blockSignals(False)
        self._arrange()


FieldControl = ChoiceControl | TextControl | FlagControl | NumberControl | StepsControl | LengthsControl
"""What a form holds: ``value`` returns the value as a scenario has it, None where the key is to be left away;
``set_value`` shows one, None for a key that is absent, and emits nothing."""


def _number(value: Any, default: float) -> float:
    """Returns a number of a file, or the default where there is none: what is wrong with the file the engine says."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return min(max(float(value), 0.0), float(_MAX_TOKENS)) if is_number else default
