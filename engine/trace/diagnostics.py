"""What a reader could not use, counted: nothing disappears silently."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.core.errors import SourcePosition


class Severity(StrEnum):
    """How much a diagnostic matters."""

    NOTICE = "notice"
    """Worth knowing; no data is missing."""
    DATA_LOSS = "data_loss"
    """Rows or events were left out."""
    ERROR = "error"
    """A whole file or table could not be used."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One kind of problem in one input.

    Attributes:
        code: Stable kebab-case name, e.g. ``"truncated-array"``.
        severity: How much it matters.
        count: How many rows, events or files it concerns.
        message: What it means, for people.
        position: Where it was first seen.
    """

    code: str
    severity: Severity
    count: int
    message: str
    position: SourcePosition = field(default_factory=SourcePosition)


class DiagnosticLog:
    """Counts problems while a file is read; the first position of each code is kept."""

    def __init__(self) -> None:
        self._by_code: dict[str, Diagnostic] = {}

    def add(
        self,
        code: str,
        severity: Severity,
        message: str,
        *,
        count: int = 1,
        position: SourcePosition | None = None,
    ) -> None:
        """Counts ``count`` more cases of ``code``; message and position of the first call win."""
        if count <= 0:
            return
        known = self._by_code.get(code)
        if known is None:
            self._by_code[code] = Diagnostic(code, severity, count, message, position or SourcePosition())
        else:
            self._by_code[code] = replace(known, count=known.count + count)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Merges diagnostics of another log."""
        for item in diagnostics:
            self.add(item.code, item.severity, item.message, count=item.count, position=item.position)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Returns everything counted so far, the most severe first."""
        order = {Severity.ERROR: 0, Severity.DATA_LOSS: 1, Severity.NOTICE: 2}
        return tuple(sorted(self._by_code.values(), key=lambda item: order[item.severity]))
