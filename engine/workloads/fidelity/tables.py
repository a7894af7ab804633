"""What ``cannscope fidelity`` evaluates: one entry per published table, each in a module of its own."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

from engine.core.errors import EngineError
from engine.core.progress import Progress
from engine.workloads.fidelity.scores import Scores

VARIABLE = "CANNSCOPE_VALIDATION"
"""Environment variable that names the directory of the tables."""


class ValidationDataError(EngineError):
    """The tables are not there, or one that was asked for does not exist."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a table must reach.

    Attributes:
        metric: A field of ``Scores``.
        limit: The largest value allowed.
    """

    metric: str
    limit: float

    def holds(self, scores: Scores) -> bool:
        """Whether the scores keep the limit."""
        return float(getattr(scores, self.metric)) <= self.limit


class RowVerdict(StrEnum):
    """How one published row came out."""

    WITHIN = "within"
    """The predicted range meets the published one, or its gain is between two thirds and one and a half of it."""
    RIGHT_SIGN = "right sign"
    WRONG_SIGN = "wrong sign"
    NOT_EXPRESSIBLE = "not run"


@dataclass(frozen=True, slots=True)
class FidelityRow:
    """One published row, for tables whose rows are read one by one.

    Attributes:
        name: Feature and configuration.
        quantity: What is compared, with its unit.
        predicted: Lowest and highest; None where the row cannot be run.
        published: Lowest and highest; None where the table gives no number of this kind.
        verdict: In a word.
        note: Configuration, explanation, or why it cannot be run.
    """

    name: str
    quantity: str
    predicted: tuple[float, float] | None
    published: tuple[float, float] | None
    verdict: RowVerdict
    note: str


@dataclass(frozen=True, slots=True)
class FidelityResult:
    """One table evaluated.

    Attributes:
        table: Its id.
        title: For people.
        scores: Errors of the runtime.
        baselines: Errors of naive predictions of the same rows (or of those a baseline is defined for), by name.
        parts: Errors by kind of row.
        target: What it must reach, None for tables that only inform.
        notes: What a reader must know to judge the numbers.
        rows: Single rows, where they are read one by one.
    """

    table: str
    title: str
    scores: Scores
    baselines: Mapping[str, Scores] = field(default_factory=dict)
    parts: Mapping[str, Scores] = field(default_factory=dict)
    target: Target | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[FidelityRow, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the target is reached (True where there is none) and no single row has the wrong sign."""
        reached = self.target is None or self.target.holds(self.scores)
        return reached and all(row.verdict is not RowVerdict.WRONG_SIGN for row in self.rows)


@dataclass(frozen=True, slots=True)
class FidelityTable:
    """A table that can be evaluated.

    Attributes:
        id: What a user types.
        title: For people.
        files: Names inside the directory of tables that it needs.
        evaluate: Reads them and compares; slow ones report progress.
    """

    id: str
    title: str
    files: tuple[str, ...]
    evaluate: Callable[[Path, Progress], FidelityResult]


def validation_directory(named: Path | None = None) -> Path:
    """Returns the directory of the tables: ``named``, else ``$CANNSCOPE_VALIDATION``, else beside the captures.

    Beside the captures is ``reference/validation`` next to ``$CANNSCOPE_CAPTURES``, or next to ``../shared/captures``.
    Raises ValidationDataError where none of them exists; the tables are never part of this repository.
    """
    captures = Path(os.environ.get("CANNSCOPE_CAPTURES") or Path("..") / "shared" / "captures")
    chosen = named or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    candidates = [chosen] if chosen else [captures.parent / "reference" / "validation"]
    found = next((path for path in candidates if path.is_dir()), None)
    if found is None:
        message = f"no validation tables at {candidates[0]}; they are not part of this repository: set {VARIABLE}"
        raise ValidationDataError(message)
    return found


def chosen_tables(tables: tuple[FidelityTable, ...], wanted: str | None) -> tuple[FidelityTable, ...]:
    """Returns the table of that id, a family by the first word of its ids (``serving``), all for None.

    Raises:
        ValidationDataError: There is none; it names the nearest ids.
    """
    if wanted is None:
        return tables
    ids = [table.id for table in tables]
    family = tuple(table for table in tables if table.id.startswith(f"{wanted}-"))
    if wanted not in ids and family:
        return family
    if wanted not in ids:
        near = get_close_matches(wanted, ids) or ids
        message = f"no fidelity table {wanted!r}; nearest: {', '.join(near)}"
        raise ValidationDataError(message)
    return tuple(table for table in tables if table.id == wanted)
