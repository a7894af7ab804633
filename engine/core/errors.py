"""The one exception tree.

    EngineError
    ├─ TraceReadError(position)                 a file that cannot be used
    │  ├─ UnknownTraceFormatError               nothing recognises the content
    │  ├─ TraceSyntaxError                      recognised, but broken beyond partial use
    │  ├─ UnsupportedTraceVersionError          recognised, but not read by this release
    │  └─ EmptyTraceError                       recognised, but without a single event
    ├─ MissingDataError                         an analysis needs what the trace lacks
    ├─ ExportError                              a file could not be written
    ├─ ScenarioError                            what was asked to be run makes no sense
    │  └─ CyclicTaskGraphError                  its tasks wait for each other
    └─ PluginError                              an entry point failed to load
    OperationCancelled                          not an EngineError: the user asked for it

A message names what is wrong, where, and what to do.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Where in the input something was found.

    Attributes:
        path: The file, or None where the input is not a file.
        byte: Offset from the start of the (decompressed) file, or None.
        line: 1-based line, or None.
        row: 0-based data row of a table, or None.
    """

    path: Path | None = None
    byte: int | None = None
    line: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        parts = [str(self.path)] if self.path is not None else []
        parts += [
            f"{word} {value}"
            for word, value in (("byte", self.byte), ("line", self.line), ("row", self.row))
            if value is not None
        ]
        return ", ".join(parts)


class EngineError(Exception):
    """Something the user can understand and act on; everything else is a programming error."""


class TraceReadError(EngineError):
    """A file that cannot be used.

    Args:
        what: What is wrong, in a phrase.
        position: Where it was found.
        advice: What the user can do about it.
    """

    def __init__(self, what: str, position: SourcePosition | None = None, advice: str = "") -> None:
        self.what = what
        self.position = position or SourcePosition()
        self.advice = advice
        where = str(self.position)
        super().__init__(": ".join(part for part in (where, what) if part) + (f"; {advice}" if advice else ""))


class UnknownTraceFormatError(TraceReadError):
    """No reader recognises the content."""


class TraceSyntaxError(TraceReadError):
    """The format was recognised, but not one complete event could be read."""


class UnsupportedTraceVersionError(TraceReadError):
    """The format was recognised, but this release does not read it."""


class EmptyTraceError(TraceReadError):
    """The file is readable and holds no event."""


class MissingDataError(EngineError):
    """An analysis needs a capability that the trace lacks."""

    def __init__(self, required: str, advice: str = "", where: str = "") -> None:
        self.required = required
        self.advice = advice
        place = f"{where}: " if where else ""
        super().__init__(f"{place}the trace has no {required}" + (f"; {advice}" if advice else ""))


class ExportError(EngineError):
    """A file could not be written."""


class ScenarioError(EngineError):
    """What was asked to be run makes no sense: a configuration, a job, a sequence of changes."""


class CyclicTaskGraphError(ScenarioError):
    """Tasks wait for each other, so that no order of them exists.

    Args:
        operators: Names along one cycle, each waiting for the one before it.
    """

    def __init__(self, operators: tuple[str, ...]) -> None:
        self.operators = operators
        super().__init__(f"tasks wait for each other in a circle: {' → '.join(operators)}; remove one of these waits")


class PluginError(EngineError):
    """An entry point could not be loaded or registered."""


class OperationCancelled(Exception):  # noqa: N818 - a request of the user, not an error
    """Raised inside a long call after its cancel token was set."""
