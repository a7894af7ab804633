"""How a long synchronous call reports progress and hears that it should stop."""

from collections.abc import Callable
from typing import Protocol

from engine.core.errors import OperationCancelled


class Progress(Protocol):
    """Receives how much of a call is done; called at least every 50 ms of work."""

    def __call__(self, done_ratio: float, what: str) -> None:
        """Reports ``done_ratio`` (0…1) and a short phrase naming the work in hand."""


def no_progress(done_ratio: float, what: str) -> None:
    """The progress sink for callers that do not watch."""


class CancelToken:
    """Asks a long call to stop. ``is_cancelled`` may read a flag of another thread or process."""

    def __init__(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        self._is_cancelled = is_cancelled

    def check(self) -> None:
        """Raises OperationCancelled once cancellation was requested."""
        if self._is_cancelled():
            raise OperationCancelled


NEVER_CANCELLED = CancelToken()


def part_of(progress: Progress, start_ratio: float, end_ratio: float) -> Progress:
    """Returns a sink that maps 0…1 of one stage onto ``start_ratio``…``end_ratio`` of the whole."""

    def report(done_ratio: float, what: str) -> None:
        progress(start_ratio + (end_ratio - start_ratio) * done_ratio, what)

    return report
