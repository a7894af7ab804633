"""Background work of the window: the newest request wins, stale results are dropped, answers come on its thread."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from profiler_gui.session.failure import failure_of
from profiler_gui.session.worker import Call, Delivered, Died, Failed, Message, Progressed, Returned, WorkerProcess

GRACE_MS = 2_000
"""How long a given-up call may take to notice; then its process is replaced."""
PATIENCE_S = 0.5
"""How long the end of the program waits for a call to notice that it is over."""


_PREPARATION = -1
"""Generation of what a process does before it is needed."""


def _as_it_is(value: Any) -> Any:
    return value


class LatestJob(QObject):
    """Runs an engine call in a process.

    Signals:
        progressed: Ratio 0…1 and a phrase.
        delivered: A value that is of use before the call ends.
        finished: What the call returned.
        failed: A Failure.
        running_changed: Whether a call runs.
    """

    progressed = Signal(float, str)
    delivered = Signal(object)
    finished = Signal(object)
    failed = Signal(object)
    running_changed = Signal(bool)
    _arrived = Signal(int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker: WorkerProcess | None = None
        self._generation = 0
        self._request: tuple[Call, tuple[Any, ...]] | None = None
        self._adopt: Callable[[Any], Any] = _as_it_is
        self._unanswered: set[int] = set()
        self._grace = QTimer(self)
        self._grace.setSingleShot(True)
        self._grace.setInterval(GRACE_MS)
        self._grace.timeout.connect(self._replace_stuck_worker)
        self._arrived.connect(self._receive, Qt.ConnectionType.QueuedConnection)

    @property
    def is_running(self) -> bool:
        """Whether a call runs whose result is still wanted."""
        return self._request is not None

    def prepare(self, call: Call | None = None, *arguments: Any) -> None:
        """Starts the process before it is needed.

        Args:
            call: What a new process does meanwhile, as ``call(context, *arguments)``; nothing is heard of it. A request
                asks it to stop and is then patient: what it does is of use to the request.
            arguments: Picklable.
        """
        if self._worker is None:
            self._worker = WorkerProcess(self._hear)
            if call is not None:
                self._worker.submit(_PREPARATION, call, arguments)

    def start(self, call: Call, *arguments: Any, adopt: Callable[[Any], Any] = _as_it_is) -> None:
        """Runs ``call(context, *arguments)`` in the process; a call that is running is given up.

        Args:
            call: A function at module level.
            arguments: Picklable.
            adopt: Applied to every delivered or returned value, on a thread of this process; must not touch Qt.
        """
        was_running = self.is_running
        self._generation += 1
        self._adopt = adopt
        self._request = (call, arguments)
        self._submit()
        if not was_running:
            self.running_changed.emit(True)

    def cancel(self) -> None:
        """Gives up the running call; nothing more is heard of it."""
        self._generation += 1
        if self._worker is not None and self._unanswered:
            self._worker.cancel()
            self._grace.start()
        self._end()

    def close(self) -> None:
        """Ends the process. Must be called before the program ends."""
        self._generation += 1
        self._drop_worker()
        self._end()

    def _submit(self) -> None:
        if self._request is None:
            return
        self.prepare()
        assert self._worker is not None  # noqa: S101 - prepared above
        if self._unanswered:
            self._grace.start()
        try:
            self._worker.submit(self._generation, *self._request)
        except OSError:  # it died while it had nothing to do
            self._drop_worker()
            self._worker = WorkerProcess(self._hear)
            self._worker.submit(self._generation, *self._request)
        self._unanswered.add(self._generation)

    def _hear(self, generation: int, message: Message) -> None:
        """Runs on the listening thread: makes the value ready there and passes it to the window's thread."""
        if generation == self._generation and isinstance(message, Delivered | Returned):
            try:
                message = type(message)(self._adopt(message.value))
            except Exception as error:  # noqa: BLE001 - whatever it is, the user sees it
                message = Failed(failure_of(error))
        self._arrived.emit(generation, message)

    def _receive(self, generation: int, message: Message) -> None:
        if isinstance(message, Returned | Failed):
            self._unanswered.discard(generation)
            if not any(number < self._generation for number in self._unanswered):
                self._grace.stop()
        if isinstance(message, Died) and self._worker is not None and not self._worker.is_alive:
            self._drop_worker()
        if generation != self._generation or self._request is None:
            return
        match message:
            case Progressed(ratio, what):
                self.progressed.emit(ratio, what)
            case Delivered(value):
                self.delivered.emit(value)
            case Returned(value):
                self._end()
                self.finished.emit(value)
            case Failed(failure) | Died(failure):
                self._end()
                if failure is not None:
                    self.failed.emit(failure)

    def _end(self) -> None:
        if self._request is not None:
            self._request = None
            self.running_changed.emit(False)

    def _replace_stuck_worker(self) -> None:
        self._drop_worker()
        self._submit()

    def _drop_worker(self) -> None:
        self._grace.stop()
        # A worker that writes to the cache may end in its own time; one with nothing to do has nothing to lose.
        patience_s = PATIENCE_S if self._unanswered else 0.0
        self._unanswered.clear()
        if self._worker is not None:
            worker, self._worker = self._worker, None
            worker.close(patience_s)
