"""The form of the New Simulation dialog: a scenario document in controls, and back without losing what has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFormLayout, QGroupBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from profiler_gui.toolkit.translations import tr
from profiler_gui.window.simulation.controls import FieldControl, LengthsControl, StepsControl, control_of
from profiler_gui.window.simulation.fields import (
    LENGTHS,
    PROFILED,
    Group,
    KeyPath,
    ScenarioField,
    blamed_path,
    scenario_fields,
    value_at,
    with_value,
)
from profiler_gui.window.simulation.service_fields import service_fields

_TRAINING = ((Group.JOB, Group.LAYOUT), (Group.BATCH, Group.MEMORY, Group.LENGTH))
_SERVING = ((Group.JOB, Group.LAYOUT, Group.LIMITS), (Group.REQUESTS, Group.ENGINE))
"""Groups of the columns."""
_TITLES = {
    Group.JOB: "Job",
    Group.LAYOUT: "Parallelism",
    Group.BATCH: "Batch",
    Group.MEMORY: "Memory",
    Group.LENGTH: "Run",
    Group.REQUESTS: "Requests",
    Group.ENGINE: "Engine",
    Group.LIMITS: "Late beyond",
}


def training_form() -> ScenarioForm:
    """Returns the form of a job that trains."""
    return ScenarioForm(scenario_fields(), _TRAINING)


def service_form() -> ScenarioForm:
    """Returns the form of a service."""
    return ScenarioForm(service_fields(), _SERVING)


class ScenarioForm(QWidget):
    """Edits a scenario document.

    Args:
        fields: What has a control.
        columns: Which groups of them stand where.

    Signals:
        changed: The user changed something.
    """

    changed = Signal()

    def __init__(
        self, fields: tuple[ScenarioField, ...], columns: tuple[tuple[Group, ...], ...], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._fields = fields
        self._document: Mapping[str, Any] = {}
        self.controls: dict[KeyPath, FieldControl] = {field.path: control_of(field) for field in self._fields}
        groups = [group for column in columns for group in column]
        self._forms = {group: QFormLayout() for group in groups}
        for field in self._fields:
            self._add_row(field.group, field.title, field.path)
        if Group.BATCH in groups:
            self.controls |= {LENGTHS: LengthsControl(), PROFILED: StepsControl()}
            self._add_row(Group.BATCH, "Sequence len&gth", LENGTHS)
            self._add_row(Group.LENGTH, "Recorded steps", PROFILED)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for column in columns:
            stack = QVBoxLayout()
            for group in column:
                box = QGroupBox(tr(_TITLES[group]))
                box.setLayout(self._forms[group])
                stack.addWidget(box)
            stack.addStretch(1)
            layout.addLayout(stack, 1)
        for control in self.controls.values():
            control.changed.connect(self.changed)

    def _add_row(self, group: Group, title: str, path: KeyPath) -> None:
        label = QLabel(tr(title))
        label.setBuddy(self.controls[path])
        label.setContentsMargins(0, 0, 2, 0)  # some styles cut the last letter of a label with a mnemonic
        self._forms[group].addRow(label, self.controls[path])

    @property
    def document(self) -> dict[str, Any]:
        """The scenario as it stands in the form; keys that have no control are those of the opened file."""
        document = dict(self._document)
        defaults = {field.path: field.default for field in self._fields}
        for path, control in self.controls.items():
            value = control.value()
            is_usual = value == defaults.get(path) and path[-1] != "preset"
            if not (is_usual and value_at(self._document, path) is None):
                document = with_value(document, path, value)
        return document

    def set_document(self, document: Mapping[str, Any]) -> None:
        """Shows a scenario."""
        self._document = document
        for path, control in self.controls.items():
            control.set_value(value_at(document, path))
        self.changed.emit()

    def show_problem(self, message: str, colour: str) -> bool:
        """Says what is wrong beside the field that it names; returns whether there is one. "" where all is well."""
        blamed = blamed_path(message, self.controls)
        for path, control in self.controls.items():
            control.show_problem(message if path == blamed else "", colour)
        return blamed is not None
