"""The toggles of a service: what an engine of the real thing is started with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from profiler_gui.session.toggles import Toggles
from profiler_gui.toolkit.flow_box import FlowBox
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's workloads are imported after the first paint
    from engine.workloads.serving.settings import ServingSettings

SERVICE_TOGGLES = {
    "serving.dynamic_batching": "Dynamic &Batching",
    "serving.prefix_cache": "&Prefix Cache",
    "serving.quantization": "&Quantization (W8A8)",
    "host.graph_mode": "&Graph Mode",
    "serving.chunked_prefill": "C&hunked Prefill",
    "serving.speculative": "Speculati&ve Decoding",
}
"""Toggles in the order they stand in, by id; with the mnemonics of their menu."""


class ServiceToggles(FlowBox):
    """A checkbox per toggle; one the service has on by itself says so and cannot be pressed.

    Signals:
        switched: Id and whether it is on now.
    """

    switched = Signal(str, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(14, parent)
        self.setAccessibleName(tr("Toggles of the service"))
        self.boxes: dict[str, QCheckBox] = {}
        for identifier, title in SERVICE_TOGGLES.items():
            box = QCheckBox(tr(title).replace("&", ""))
            box.clicked.connect(lambda on, key=identifier: self.switched.emit(key, on))
            self.boxes[identifier] = box
            self.insert(len(self.boxes) - 1, box)

    def show_state(self, toggles: Toggles, settings: ServingSettings | None) -> None:
        """Shows what is on.

        Args:
            toggles: Of the session.
            settings: Of the service as it is; None until they are known.
        """
        from engine.workloads.serving.settings_file import optimized

        for identifier, box in self.boxes.items():
            box.setChecked(identifier in toggles.on)
            parameters = toggles.parameters_of(identifier)
            is_on_anyway = settings is not None and optimized(settings, {identifier: parameters}) == settings
            box.setEnabled(settings is not None and (not is_on_anyway or identifier in toggles.on))
            box.setToolTip(tr("The service has this on already") if is_on_anyway else identifier)
