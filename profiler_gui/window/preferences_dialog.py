"""The preferences, made from the descriptors of settings."""

from collections.abc import Callable
from typing import Any

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from profiler_gui.toolkit.settings import SettingDescriptor, SettingsStore
from profiler_gui.toolkit.translations import tr


class Preferences(QDialog):
    """One control per setting; a change applies at once, Cancel takes all of them back."""

    def __init__(self, settings: SettingsStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Preferences"))
        self.setMinimumWidth(460)
        self._settings = settings
        self._before = [(descriptor, settings.value(descriptor)) for descriptor in settings]
        self.controls: dict[str, QWidget] = {}
        form = QFormLayout()
        for descriptor in settings:
            control = self._control(descriptor)
            control.setAccessibleName(tr(descriptor.title))
            control.setToolTip(tr(descriptor.description))
            self.controls[descriptor.id] = control
            suffix = tr(" (after a restart)") if descriptor.requires_restart else ""
            form.addRow(QLabel(tr(descriptor.title) + suffix), control)
        standard = QDialogButtonBox.StandardButton
        buttons = QDialogButtonBox(standard.Ok | standard.Cancel | standard.RestoreDefaults)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        buttons.button(standard.RestoreDefaults).clicked.connect(self._restore_defaults)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(buttons)

    def reject(self) -> None:
        """Qt: closes and takes the changes back."""
        for descriptor, value in self._before:
            self._settings.set_value(descriptor, value)
        super().reject()

    def _control(self, descriptor: SettingDescriptor[Any]) -> QWidget:
        value = self._settings.value(descriptor)
        change = self._changer(descriptor)
        if isinstance(descriptor.default, bool):
            box = QCheckBox()
            box.setChecked(value)
            box.toggled.connect(change)
            return box
        if isinstance(descriptor.default, int):
            spin = QSpinBox()
            spin.setRange(descriptor.minimum, descriptor.maximum)
            spin.setValue(value)
            spin.valueChanged.connect(change)
            return spin
        if not descriptor.choices:
            edit = QLineEdit(value)
            edit.editingFinished.connect(lambda: change(edit.text()))
            return edit
        combo = QComboBox()
        for choice in descriptor.choices:
            combo.addItem(tr(choice.title), choice.value)
        combo.setCurrentIndex(combo.findData(value))
        combo.activated.connect(lambda index: change(combo.itemData(index)))
        return combo

    def _changer(self, descriptor: SettingDescriptor[Any]) -> Callable[[Any], None]:
        return lambda value: self._settings.set_value(descriptor, value)

    def _restore_defaults(self) -> None:
        self._settings.reset()
        for descriptor in self._settings:
            control, value = self.controls[descriptor.id], descriptor.default
            match control:
                case QCheckBox():
                    control.setChecked(value)
                case QSpinBox():
                    control.setValue(value)
                case QComboBox():
                    control.setCurrentIndex(control.findData(value))
                case QLineEdit():
                    control.setText(value)
