"""The command palette and the track finder: everything that has a name, found by typing parts of it."""

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from engine.core.number_format import format_count
from profiler_gui.commands.command import Command, CommandRegistry, KeyPreset
from profiler_gui.session.session import Session
from profiler_gui.toolkit.translations import tr
from profiler_gui.window.chooser import Choosable, Chooser


class CommandPalette(Chooser):
    """Lists what can be done now; the key of an item is the id of its command."""

    def __init__(
        self, commands: CommandRegistry, session: Session, preset: KeyPreset, parent: QWidget | None = None
    ) -> None:
        items = [_command_item(item, preset) for item in commands if item.in_palette and item.is_enabled(session)]
        super().__init__(tr("Commands"), tr("What do you want to do?"), items, parent)


class TrackFinder(Chooser):
    """Lists the tracks of the rank in view that hold events; the key of an item is the index of its track."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(tr("Tracks"), tr("Which track do you look for?"), _track_items(session), parent)


def _command_item(command: Command, preset: KeyPreset) -> Choosable:
    title = " · ".join(tr(part).replace("&", "") for part in (*command.menu, command.title))
    keys = command.keys_of(preset)
    shown = QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText) if keys else ""
    return Choosable(title, command.id, shown)


def _track_items(session: Session) -> list[Choosable]:
    from profiler_gui.timeline.nodes import group_labels  # numba is imported after the first paint

    trace, summary = session.trace, session.job_summary
    if trace is None:
        return []
    labels = group_labels(trace, summary.communication.collectives.get(session.rank, ()) if summary else ())
    items = []
    for index, (track, part) in enumerate(zip(trace.tracks, trace.track_slices, strict=True)):
        count = part.stop - part.start
        if count:
            parent = (trace.tracks[track.parent].name,) if track.parent >= 0 else ()
            title = " · ".join((*parent, labels.get(index, track.name)))
            detail = tr("1 event") if count == 1 else tr("{count} events", count=format_count(count))
            items.append(Choosable(title, index, detail))
    return items
