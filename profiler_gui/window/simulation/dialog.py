"""The dialog itself: fill in, open, save and run a scenario."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.core.errors import EngineError, ScenarioError
from engine.core.user_places import simulations_place
from profiler_gui.commands.panes import PaneContext
from profiler_gui.session.document import Run
from profiler_gui.session.failure import Failure
from profiler_gui.session.scenario_reading import SERVING, TRAINING, read_document
from profiler_gui.session.simulating import directory_of_run
from profiler_gui.toolkit.translations import tr
from profiler_gui.window.messages import show_failure
from profiler_gui.window.simulation.form import ScenarioForm, service_form, training_form

CHECK_AFTER_MS = 150
"""The engine looks at the scenario this long after the last change."""
ROOM_PX = 60
"""For the scroll bar, and for controls that become wider."""
FIRST_SERVICE: Mapping[str, Any] = {
    "format": 1,
    "name": "chat",
    "kind": SERVING,
    "model": {"preset": "qwen2-7b"},
    "device": {"preset": "910b2", "count": 1},
    "serving": {
        "max_batch": 32,
        "slo_ttft_ms": 1000,
        "slo_tpot_ms": 100,
        "requests": {"rate_per_s": 2.0, "count": 200, "prompt_tokens": 2000, "output_tokens": 200},
    },
}
KEPT_SCENARIO = "simulation/scenario"
"""State under which the scenario of the last run is kept."""
FIRST_SCENARIO: Mapping[str, Any] = {
    "format": 1,
    "name": "gpt-oss-20b",
    "model": {"preset": "gpt-oss-20b"},
    "device": {"preset": "910b2", "count": 16},
    "parallel": {"tensor": 4, "pipeline": 2},
    "batch": {"micro": 1, "global": 8, "sequence_length": 4096},
    "memory": {"recompute": "selective"},
    "run": {"steps": 5},
}


class NewSimulation(QDialog):
    """A scenario to fill in, open, save and run; the run opens as a capture. Stays open while it runs.

    Args:
        context: Session, settings and colours of the window.
        parent: The window.
    """

    def __init__(self, context: PaneContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._session = context.session
        self._folder = Path()
        self._runs = False
        self.setWindowTitle(tr("New Simulation"))
        self._forms = {TRAINING: training_form(), SERVING: service_form()}
        self._kind = QComboBox()
        self._kind.setAccessibleName(tr("Kind of job"))
        for kind, title in ((TRAINING, tr("Training")), (SERVING, tr("Serving"))):
            self._kind.addItem(title, kind)
        self._kind.activated.connect(self._change_kind)
        self._check = QTimer(self)
        self._check.setSingleShot(True)
        self._check.setInterval(CHECK_AFTER_MS)
        self._check.timeout.connect(self.check)
        self._make_bars()
        self._lay_out()
        for form in self._forms.values():
            form.changed.connect(self._check.start)
        self._session.progress_changed.connect(self._show_progress)
        self._session.busy_changed.connect(self._on_busy)
        self._session.document_changed.connect(self._on_document)
        self.set_scenario(_kept_scenario(context), Path())

    def _make_bars(self) -> None:
        standard = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(standard.Close)
        self.run_button = QPushButton(tr("&Run"))
        self.run_button.setDefault(True)
        self.run_b_button = QPushButton(tr("Run as Run &B"))
        self.run_b_button.setToolTip(tr("Opens the run beside the one that is open, for comparison"))
        open_button, save_button = QPushButton(tr("Open Scenario…")), QPushButton(tr("Save Scenario…"))
        action, reset = QDialogButtonBox.ButtonRole.ActionRole, QDialogButtonBox.ButtonRole.ResetRole
        for button, role in (
            (self.run_button, action),
            (self.run_b_button, action),
            (open_button, reset),
            (save_button, reset),
        ):
            self.buttons.addButton(button, role)
        self.buttons.rejected.connect(self.reject)
        self.run_button.clicked.connect(lambda: self.start(Run.A))
        self.run_b_button.clicked.connect(lambda: self.start(Run.B))
        open_button.clicked.connect(self.ask_to_open)
        save_button.clicked.connect(self.ask_to_save)
        self._files = (open_button, save_button)
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        self.problem.setAccessibleName(tr("What is wrong with the scenario"))
        self.directory = QLineEdit()
        self.directory.setAccessibleName(tr("Captures go to"))
        self.directory.setPlaceholderText(str(simulations_place()))
        self.bar = QProgressBar(maximum=1000, textVisible=False)
        self.bar.setAccessibleName(tr("How far the run is"))
        self.stage = QLabel()
        self.cancel_button = QPushButton(tr("&Cancel Run"))
        self.cancel_button.clicked.connect(self._session.cancel)

    def _lay_out(self) -> None:
        self._stack = QStackedWidget()
        for form in self._forms.values():
            scroll = QScrollArea(widgetResizable=True)
            scroll.setFrameShape(QFrame.Shape.NoFrame)
            scroll.setWidget(form)
            scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
            scroll.setMinimumWidth(form.sizeHint().width() + ROOM_PX)
            self._stack.addWidget(scroll)
        kind = QHBoxLayout()
        kind_label = QLabel(tr("&Kind"))
        kind_label.setBuddy(self._kind)
        kind.addWidget(kind_label)
        kind.addWidget(self._kind)
        kind.addStretch(1)
        place = QHBoxLayout()
        label = QLabel(tr("Captures go &to"))
        label.setBuddy(self.directory)
        browse = QPushButton(tr("Choose…"))
        browse.clicked.connect(self._ask_directory)
        for widget in (label, self.directory, browse):
            place.addWidget(widget)
        self._progress = QWidget()
        running = QHBoxLayout(self._progress)
        running.setContentsMargins(0, 0, 0, 0)
        running.addWidget(self.bar, 1)
        running.addWidget(self.stage, 2)
        running.addWidget(self.cancel_button)
        self._progress.hide()
        layout = QVBoxLayout(self)
        layout.addLayout(kind)
        layout.addWidget(self._stack, 1)
        layout.addLayout(place)
        layout.addWidget(self.problem)
        layout.addWidget(self._progress)
        layout.addWidget(self.buttons)
        self.resize(self.sizeHint().width(), min(self.form.sizeHint().height() + 170, 740))

    # Scenario

    @property
    def form(self) -> ScenarioForm:
        """The form of the kind of job in view."""
        return self._forms[self._kind.currentData()]

    def _change_kind(self) -> None:
        """Shows the first scenario of the kind that was chosen: the one before it is of the other."""
        self.set_scenario(FIRST_SERVICE if self._kind.currentData() == SERVING else FIRST_SCENARIO, Path())

    def set_scenario(self, document: Mapping[str, Any], folder: Path) -> None:
        """Shows a scenario; paths inside it are relative to ``folder``."""
        self._folder = folder
        self._kind.setCurrentIndex(self._kind.findData(SERVING if document.get("kind") == SERVING else TRAINING))
        self._stack.setCurrentIndex(self._kind.currentIndex())
        self.form.set_document(document)
        self.check()

    def open_scenario(self, path: Path) -> None:
        """Shows the scenario of a file. What is wrong with its values is said beside them."""
        document = read_document(path, self._fail)
        if document is not None:
            self.set_scenario(document, path.parent)

    def save_scenario(self, path: Path) -> None:
        """Writes the scenario as it stands in the form."""
        from engine.workloads.scenario_text import scenario_text

        try:
            path.write_text(scenario_text(self.form.document), encoding="utf-8")
        except OSError as error:
            self._fail(Failure(tr("the file cannot be written"), str(path), error.strerror or str(error)))
        except EngineError as error:
            self._fail(Failure(str(error)))

    def check(self) -> bool:
        """Has the engine look at the scenario, and says what is wrong beside the field; returns whether it can run."""
        from engine.workloads.scenario import WorkloadKind
        from engine.workloads.scenario_file import scenario_from_document
        from engine.workloads.serving.simulate import check_served

        self._check.stop()
        message = ""
        try:
            scenario = scenario_from_document(self.form.document, self._folder)
            if scenario.kind is WorkloadKind.SERVING:
                check_served(scenario)
        except ScenarioError as error:
            message = str(error)
        colour = self._context.theme.colours.error
        is_beside_a_field = self.form.show_problem(message, colour)
        self.problem.setStyleSheet(f"color: {colour};")
        self.problem.setText("" if is_beside_a_field else message)
        self.problem.setVisible(bool(message) and not is_beside_a_field)
        self._update_buttons(can_run=not message)
        return not message

    # Running

    def start(self, run: Run) -> None:
        """Runs the scenario, to be opened as ``run``, unless something is wrong with it."""
        if not self.check():
            return
        from engine.workloads.scenario_text import scenario_text

        document = self.form.document
        chosen = self.directory.text().strip()
        parent = Path(chosen) if chosen else simulations_place()
        directory = directory_of_run(str(document.get("name", "")), parent)
        self._context.settings.save_text_state(KEPT_SCENARIO, scenario_text(document))
        self._runs = True
        self._session.simulate(document, self._folder, directory, run)
        self._update_buttons(can_run=False)

    def _show_progress(self, ratio: float, what: str) -> None:
        self.bar.setValue(round(1000 * ratio))
        self.stage.setText(what)

    def _on_busy(self, is_busy: bool) -> None:
        self._progress.setVisible(is_busy and self._runs)
        for widget in (self._stack, self._kind):
            widget.setEnabled(not (is_busy and self._runs))
        if not is_busy:
            self._runs = False
            self.check()

    def _on_document(self) -> None:
        if self._runs:
            self._runs = False
            if self._kind.currentData() == SERVING:
                self._context.show_pane("serving")
            self.accept()
        else:
            self.check()

    def _update_buttons(self, *, can_run: bool) -> None:
        is_idle = not self._runs
        self.run_button.setEnabled(can_run and is_idle)
        self.run_b_button.setEnabled(can_run and is_idle and self._session.document is not None)
        for button in self._files:
            button.setEnabled(is_idle)

    def reject(self) -> None:
        """Qt: closes, and gives up a run."""
        if self._runs:
            self._session.cancel()
        super().reject()

    # Files

    def ask_to_open(self) -> None:
        """Asks for a scenario file and shows it."""
        name, _ = QFileDialog.getOpenFileName(self, tr("Open Scenario"), str(self._folder), tr("Scenarios (*.toml)"))
        if name:
            self.open_scenario(Path(name))

    def ask_to_save(self) -> None:
        """Asks where to and writes the scenario."""
        name, _ = QFileDialog.getSaveFileName(
            self, tr("Save Scenario"), str(self._folder / "scenario.toml"), tr("Scenarios (*.toml)")
        )
        if name:
            self.save_scenario(Path(name))

    def _ask_directory(self) -> None:
        name = QFileDialog.getExistingDirectory(self, tr("Captures go to"), self.directory.text())
        if name:
            self.directory.setText(name)

    def _fail(self, failure: Failure) -> None:
        show_failure(failure, self)


def _kept_scenario(context: PaneContext) -> Mapping[str, Any]:
    """Returns the scenario of the last run, or one to begin with."""
    try:
        return tomllib.loads(context.settings.text_state(KEPT_SCENARIO)) or FIRST_SCENARIO
    except tomllib.TOMLDecodeError:  # settings edited by hand
        return FIRST_SCENARIO
