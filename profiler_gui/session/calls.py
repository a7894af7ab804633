"""Numpy work in a thread: for derived values that may take longer than a frame."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from profiler_gui.session.failure import failure_of


class LatestCall(QObject):
    """Runs a function in a thread; only the answer to the newest request is heard.

    For numpy work, which lets go of the interpreter's lock. A function that has not begun when a newer one is asked for
    never runs.

    Signals:
        finished: What the function returned.
        failed: A Failure.
    """

    finished = Signal(object)
    failed = Signal(object)
    _done = Signal(int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cannscope-call")
        self._generation = 0
        self._future: Future[Any] | None = None
        self._done.connect(self._receive, Qt.ConnectionType.QueuedConnection)

    @property
    def is_running(self) -> bool:
        """Whether an answer is still to come."""
        return self._future is not None

    def start(self, function: Callable[[], Any]) -> None:
        """Runs ``function`` (it must not touch Qt) and forgets every earlier request."""
        self.cancel()
        generation = self._generation
        self._future = self._executor.submit(function)
        self._future.add_done_callback(lambda future: self._report(generation, future))

    def cancel(self) -> None:
        """Forgets the request; its answer is not heard."""
        self._generation += 1
        if self._future is not None:
            self._future.cancel()
            self._future = None

    def close(self) -> None:
        """Ends the thread. Must be called before the owner goes."""
        self.cancel()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _report(self, generation: int, future: "Future[Any]") -> None:
        if not future.cancelled() and generation == self._generation:
            self._done.emit(generation, future)

    def _receive(self, generation: int, future: "Future[Any]") -> None:
        if generation != self._generation:
            return
        self._future = None
        error = future.exception()
        if error is not None:
            self.failed.emit(failure_of(error))
        else:
            self.finished.emit(future.result())
