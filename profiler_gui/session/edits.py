"""What undo takes back: marks, pins and toggles, in one history."""

from __future__ import annotations

from dataclasses import dataclass, field

from profiler_gui.session.annotations import Annotations
from profiler_gui.session.toggles import Toggles


@dataclass(frozen=True, slots=True)
class Edits:
    """What the user has changed of an open capture.

    Attributes:
        annotations: Marks and pinned tracks.
        toggles: What is switched on for a rerun.
    """

    annotations: Annotations = field(default_factory=Annotations)
    toggles: Toggles = field(default_factory=Toggles)
