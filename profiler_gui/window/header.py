"""The header: run A, run B, rank and step."""

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSizePolicy, QWidget

from engine.core.number_format import format_duration_ns
from profiler_gui.session.document import Document
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr

MAX_BOX_PX = 300
BADGE_STYLE = "border: 1px solid palette(link); border-radius: 3px; padding: 1px 6px; color: palette(link);"


class Header(QWidget):
    """Shows and changes which run, rank and step every pane is about."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 3, 8, 3)
        self.run_a = self._add_box(tr("Run &A"), 200)
        self.run_b = self._add_box(tr("Run &B"), 140)
        self.rank = self._add_box(tr("&Rank"), 120)
        self.step = self._add_box(tr("&Step"), 140)
        self.simulated = QLabel()
        self.simulated.setStyleSheet(BADGE_STYLE)
        self.simulated.setAccessibleName(tr("Origin"))
        self.simulated.setToolTip(tr("The simulated runtime made this run; nothing in it was measured."))
        layout.addWidget(self.simulated)
        layout.addStretch(1)
        self.run_a.activated.connect(lambda index: session.exchange_runs() if index == 1 else None)
        self.rank.activated.connect(lambda _: session.set_rank(self.rank.currentData()))
        self.step.activated.connect(lambda _: session.set_step(self.step.currentData()))
        for signal in (session.document_changed, session.summary_changed, session.rank_changed):
            signal.connect(self._fill)
        session.step_changed.connect(self._show_step)
        self._fill()

    def changeEvent(self, event: QEvent) -> None:
        """Qt: another theme; a style takes its colours from the palette when it is set."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.PaletteChange:
            self.simulated.setStyleSheet(BADGE_STYLE)

    def _add_box(self, title: str, width_px: int) -> QComboBox:
        label, box = QLabel(title), QComboBox()
        label.setBuddy(box)
        box.setAccessibleName(title.replace("&", ""))
        box.setMinimumWidth(width_px)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        box.setMaximumWidth(MAX_BOX_PX)
        box.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        layout = self.layout()
        assert layout is not None  # noqa: S101 - made in the constructor
        layout.addWidget(label)
        layout.addWidget(box)
        return box

    def _fill(self) -> None:
        document, candidate = self._session.document, self._session.candidate
        self._fill_runs(document, candidate)
        self.rank.clear()
        for entry in document.job.ranks if document else ():
            device = entry.trace.metadata.device
            title = tr("Rank {rank}", rank=entry.rank)
            self.rank.addItem(f"{title} · {device}" if device else title, entry.rank)
        self.rank.setCurrentIndex(self.rank.findData(self._session.rank))
        self.rank.setEnabled(self.rank.count() > 1)
        self.step.clear()
        summary = self._session.summary
        if document:
            self.step.addItem(tr("All steps"), None)
        for index, step in enumerate(summary.steps if summary else ()):
            name = tr("Whole capture") if step.step is None else tr("Step {step}", step=step.step)
            self.step.addItem(f"{name} · {format_duration_ns(step.range.duration_ns)}", index)
        self.step.setEnabled(self.step.count() > 1)
        self._show_step()

    def _fill_runs(self, document: Document | None, candidate: Document | None) -> None:
        self.run_a.clear()
        self.run_b.clear()
        simulated = [name for name, item in (("A", document), ("B", candidate)) if item and item.is_simulated]
        whose = tr("Run {names}", names=" + ".join(simulated)) if candidate else ""
        self.simulated.setText(" · ".join(filter(None, (tr("SIMULATED"), whose))))
        self.simulated.setVisible(bool(simulated))
        for item in (document, candidate):
            if item:
                self.run_a.addItem(item.label)
        self.run_b.addItem(candidate.label if candidate else tr("none"))
        self.run_a.setToolTip(document.job.path if document else "")
        self.run_b.setToolTip(candidate.job.path if candidate else tr("Open a second run from the File menu"))
        self.run_a.setEnabled(document is not None)
        self.run_b.setEnabled(candidate is not None)

    def _show_step(self) -> None:
        chosen = self._session.step
        self.step.setCurrentIndex(0 if chosen is None else chosen + 1)
