"""Marks and pins of a capture, found again at its next opening."""

from PySide6.QtCore import QObject

from profiler_gui.session.annotations import annotations_of, annotations_text
from profiler_gui.session.session import Session
from profiler_gui.toolkit.settings import SettingsStore

KEPT_NAME = "annotations"


class KeptAnnotations(QObject):
    """Keeps marks and pins in the settings whenever they change, and restores them when their capture is opened."""

    def __init__(self, session: Session, settings: SettingsStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._settings = settings
        session.document_changed.connect(self._restore)
        session.annotations_changed.connect(self._keep)

    def _restore(self) -> None:
        document = self._session.document
        text = self._settings.capture_state(document.key, KEPT_NAME) if document else ""
        if document is not None and text:
            track_counts = {entry.rank: len(entry.trace.tracks) for entry in document.job.ranks}
            self._session.restore_annotations(annotations_of(text).within(track_counts))

    def _keep(self) -> None:
        document = self._session.document
        if document is not None:
            text = annotations_text(self._session.annotations)
            if text != self._settings.capture_state(document.key, KEPT_NAME):
                self._settings.save_capture_state(document.key, KEPT_NAME, text)
