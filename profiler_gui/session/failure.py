"""What went wrong, in a form that crosses processes and fits a message box."""

import traceback
from dataclasses import dataclass

from engine.core.errors import EngineError, TraceReadError


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure.

    Attributes:
        what: What is wrong.
        where: File, byte, line or row; "" where it does not apply.
        advice: What the user can do about it.
        traceback: For a programming error: the report to send. "" for what a user can act on.
    """

    what: str
    where: str = ""
    advice: str = ""
    traceback: str = ""

    @property
    def is_crash(self) -> bool:
        """Whether this is our fault and needs a report instead of a message."""
        return bool(self.traceback)


def failure_of(error: BaseException) -> Failure:
    """Returns the failure an exception stands for: EngineErrors are messages, everything else is a crash."""
    if isinstance(error, TraceReadError):
        return Failure(error.what, str(error.position), error.advice)
    if isinstance(error, EngineError):
        return Failure(str(error))
    report = "".join(traceback.format_exception(error))
    return Failure(f"{type(error).__name__}: {error}", traceback=report)
