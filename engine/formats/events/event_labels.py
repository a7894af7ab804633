"""What the metadata events (phase M) of a Chrome trace call its processes and threads, and in which order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.core.errors import SourcePosition
from engine.formats.events.trace_events import RawEvents
from engine.trace.diagnostics import DiagnosticLog, Severity
from engine.trace.strings import StringTable


@dataclass(frozen=True, slots=True)
class EventLabels:
    """Keys are the string ids of ``RawEvents.process`` and ``RawEvents.thread``; the last word of a file wins.

    Attributes:
        process_name: By process.
        process_label: By process: ``"CPU"``, ``"GPU 0"``, ``"NPU 0"``.
        process_order: By process, ``sort_index``.
        thread_name: By (process, thread).
        thread_order: By (process, thread), ``sort_index``.
    """

    process_name: dict[int, str] = field(default_factory=dict)
    process_label: dict[int, str] = field(default_factory=dict)
    process_order: dict[int, int] = field(default_factory=dict)
    thread_name: dict[tuple[int, int], str] = field(default_factory=dict)
    thread_order: dict[tuple[int, int], int] = field(default_factory=dict)


def read_labels(
    raw: RawEvents, texts: StringTable, diagnostics: DiagnosticLog, position: SourcePosition
) -> EventLabels:
    """Returns the labels of ``raw``; metadata events that say something else are counted."""
    labels = EventLabels()
    # A Python loop over metadata events: a handful per process, at most a few hundred thousand (MTIA).
    for item in raw.metadata_events:
        process, thread = int(raw.process[item.row]), int(raw.thread[item.row])
        if not _note(labels, texts.text(int(raw.name[item.row])), process, thread, item.args):
            message = "metadata events other than names, labels and sort orders are not shown"
            diagnostics.add("unused-metadata-event", Severity.NOTICE, message, position=position)
    return labels


def _note(labels: EventLabels, what: str, process: int, thread: int, args: Mapping[str, Any]) -> bool:
    match what:
        case "process_name" if "name" in args:
            labels.process_name[process] = str(args["name"])
        case "process_labels" if "labels" in args:
            labels.process_label[process] = str(args["labels"])
        case "process_sort_index" if isinstance(args.get("sort_index"), int):
            labels.process_order[process] = args["sort_index"]
        case "thread_name" if "name" in args:
            labels.thread_name[process, thread] = str(args["name"])
        case "thread_sort_index" if isinstance(args.get("sort_index"), int):
            labels.thread_order[process, thread] = args["sort_index"]
        case _:
            return False
    return True
