"""Editors of an optimization's parameters, each made from what the engine says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QDoubleSpinBox, QFormLayout, QLabel, QLineEdit, QSpinBox, QWidget

from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's optimizations are imported after the first paint
    from engine.optimizations.interface import Optimization, Parameter
    from profiler_gui.session.toggles import Value

EDITOR_PX = 130
"""Of an editor at most: beside it stands what it is for, in a dock that is narrow."""
LEAST_DECIMALS = 2
_WIDEST = 2_000_000_000
"""Of a number without a limit: the largest Qt's boxes hold, as a round number."""


class ParameterEditors(QWidget):
    """A form with one line per parameter.

    Args:
        optimization: Whose parameters.

    Signals:
        edited: Name and value of a parameter the user has set; None for its default.
    """

    edited = Signal(str, object)

    def __init__(self, optimization: Optimization, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parameters = optimization.parameters
        self.editors: dict[str, QWidget] = {}
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setSpacing(3)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for parameter in optimization.parameters:
            editor = self._editor(parameter)
            editor.setAccessibleName(f"{optimization.title}: {parameter.title}")
            editor.setToolTip("\n".join(filter(None, (parameter.title, parameter.provenance))))
            self.editors[parameter.name] = editor
            editor.setMaximumWidth(EDITOR_PX)
            title = QLabel(parameter.title)
            title.setWordWrap(True)
            title.setBuddy(editor)
            form.addRow(title, editor)

    def show_values(self, values: dict[str, Value]) -> None:
        """Shows values by name, defaults where none is given. Emits nothing."""
        for parameter in self._parameters:
            editor = self.editors[parameter.name]
            editor.blockSignals(True)
            _show(editor, values.get(parameter.name, parameter.default))
            editor.blockSignals(False)

    def _editor(self, parameter: Parameter) -> QWidget:
        default = parameter.default
        if isinstance(default, bool):
            box = QCheckBox(tr("on"))
            box.toggled.connect(lambda value: self._emit(parameter, value))
            return box
        if isinstance(default, int | float):
            return self._number(parameter)
        if parameter.choices:
            combo = QComboBox()
            combo.addItems(parameter.choices)
            combo.currentTextChanged.connect(lambda value: self._emit(parameter, value))
            return combo
        line = QLineEdit()
        line.editingFinished.connect(lambda: self._emit(parameter, line.text()))
        return line

    def _number(self, parameter: Parameter) -> QWidget:
        low, high = parameter.minimum, parameter.maximum
        lowest, highest = (-_WIDEST if low is None else low), (_WIDEST if high is None else high)
        if isinstance(parameter.default, int):
            whole = QSpinBox()
            whole.setRange(round(max(lowest, -_WIDEST)), round(min(highest, _WIDEST)))
            whole.setGroupSeparatorShown(True)
            whole.setKeyboardTracking(False)
            whole.valueChanged.connect(lambda value: self._emit(parameter, value))
            return whole
        box = QDoubleSpinBox()
        box.setDecimals(max(len(f"{parameter.default:g}".partition(".")[2]), LEAST_DECIMALS))
        box.setRange(lowest, highest)
        span = highest - lowest
        box.setSingleStep(0.05 if span <= 2 else 1.0)
        box.setKeyboardTracking(False)
        box.valueChanged.connect(lambda value: self._emit(parameter, value))
        return box

    def _emit(self, parameter: Parameter, value: Value) -> None:
        self.edited.emit(parameter.name, None if value == parameter.default else value)


def _show(editor: QWidget, value: Value) -> None:
    match editor:
        case QCheckBox():
            editor.setChecked(bool(value))
        case QSpinBox():
            editor.setValue(int(value))
        case QDoubleSpinBox():
            editor.setValue(float(value))
        case QComboBox():
            editor.setCurrentText(str(value))
        case QLineEdit():
            editor.setText(str(value))
