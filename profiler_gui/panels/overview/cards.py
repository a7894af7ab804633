"""The pieces of the first screen: titled cards, findings with their buttons, and the checklist."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from profiler_gui.panels.overview.evidence import Evidence
from profiler_gui.panels.overview.findings import Checklist, FindingText
from profiler_gui.toolkit.labels import bold, text_label
from profiler_gui.toolkit.translations import tr


class Card(QFrame):
    """A titled block of the page; ``body`` takes its contents."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setBackgroundRole(self.backgroundRole().Base)
        self.setAutoFillBackground(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(14, 10, 14, 12)
        self.body.setSpacing(8)
        self.heading = QLabel(title)
        self.heading.setFont(bold(self.heading.font()))
        self.body.addWidget(self.heading)


class FindingsCard(Card):
    """What to look at first, each with the way to its evidence.

    Args:
        show: Called with the evidence of a finding whose [Show] is pressed.
        try_out: Called with what is to be switched on when [Try] is pressed.
        advise: Called when what could help is to be tried.
    """

    def __init__(
        self,
        show: Callable[[Evidence], None],
        try_out: Callable[[tuple[str, ...]], None],
        advise: Callable[[], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("What costs the most"), parent)
        self._show = show
        self._try_out = try_out
        self._rows = QWidget()
        self._layout = QVBoxLayout()
        self._layout.setSpacing(0)
        self.body.addLayout(self._layout)
        self._layout.addWidget(self._rows)
        self.advise_button = QPushButton(tr("Try What &Could Help"))
        self.advise_button.setToolTip(tr("Runs the job again with everything that could help, and ranks what does"))
        self.advise_button.clicked.connect(advise)
        self.progress = text_label()
        self.body.addWidget(self.advise_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.body.addWidget(self.progress)

    def show_advising(self, *, can_begin: bool, progress: str) -> None:
        """Offers to try what could help, or says how far that is.

        Args:
            can_begin: Whether it was not done yet and nothing else runs.
            progress: How far it is; "" while it does not run.
        """
        self.advise_button.setVisible(can_begin)
        self.progress.setText(progress)
        self.progress.setVisible(bool(progress))

    @property
    def buttons(self) -> list[QPushButton]:
        """The [Show] buttons, from the top."""
        return [button for button in self._rows.findChildren(QPushButton) if button.objectName() == "show"]

    @property
    def try_buttons(self) -> list[QPushButton]:
        """The [Try] buttons, from the top."""
        return [button for button in self._rows.findChildren(QPushButton) if button.objectName() == "try"]

    def set_findings(self, findings: tuple[FindingText, ...]) -> None:
        """Shows other findings."""
        self._layout.removeWidget(self._rows)
        self._rows.deleteLater()
        self._rows = QWidget()
        self._layout.addWidget(self._rows)
        grid = QGridLayout(self._rows)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(0, 1)
        if not findings:
            grid.addWidget(text_label(tr("Nothing was found that costs time or memory.")), 0, 0)
        for row, finding in enumerate(findings):
            title = text_label(finding.title)
            title.setFont(bold(title.font()))
            lines = f"{finding.detail}\n{finding.gain}" if finding.gain else finding.detail
            texts = QVBoxLayout()
            texts.setSpacing(1)
            texts.addWidget(title)
            texts.addWidget(text_label(lines))
            grid.addLayout(texts, row, 0, Qt.AlignmentFlag.AlignTop)
            button = QPushButton(tr("Show"))
            button.setObjectName("show")
            button.setAccessibleName(tr("Show: {title}", title=finding.title))
            button.setToolTip(tr("Go to where this shows"))
            button.clicked.connect(self._shower(finding.evidence))
            buttons = QVBoxLayout()
            buttons.setSpacing(3)
            buttons.addWidget(button)
            if finding.optimizations:
                buttons.addWidget(self._try_button(finding))
            grid.addLayout(buttons, row, 1, Qt.AlignmentFlag.AlignTop)

    def _try_button(self, finding: FindingText) -> QPushButton:
        button = QPushButton(tr("Try"))
        button.setObjectName("try")
        button.setAccessibleName(tr("Try: {title}", title=finding.title))
        button.setToolTip(tr("Presses its toggle: the job is run again with it"))
        button.clicked.connect(lambda: self._try_out(finding.optimizations))
        return button

    def _shower(self, evidence: Evidence) -> Callable[[], None]:
        return lambda: self._show(evidence)


class ChecklistCard(Card):
    """What was checked and is fine, and what could not be checked."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Checked and fine"), parent)
        self._fine = text_label()
        self._unknown = text_label()
        self._unknown_title = QLabel(tr("Could not be checked"))
        self._unknown_title.setFont(bold(self._unknown_title.font()))
        for label in (self._fine, self._unknown_title, self._unknown):
            self.body.addWidget(label)

    def set_checklist(self, checklist: Checklist) -> None:
        """Shows another checklist."""
        self._fine.setText("\n".join(f"✓ {text}" for text in checklist.fine))
        self._fine.setVisible(bool(checklist.fine))
        self.heading.setVisible(bool(checklist.fine))
        self._unknown.setText("\n".join(f"– {text}" for text in checklist.unknown))
        self._unknown.setVisible(bool(checklist.unknown))
        self._unknown_title.setVisible(bool(checklist.unknown))
