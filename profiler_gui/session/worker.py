"""A process that runs engine calls one after another. The window's end of it, and the process's own end.

Parsing holds the interpreter's lock for seconds, so it cannot live in a thread of the window. The process is kept
between calls: starting one and importing the engine takes most of a second.
"""

import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from profiler_gui.session.failure import Failure, failure_of

REPORT_INTERVAL_S = 0.03


@dataclass(frozen=True, slots=True)
class Progressed:
    """How much of a call is done."""

    ratio: float
    what: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A value that is of use before the call ends."""

    value: Any


@dataclass(frozen=True, slots=True)
class Returned:
    """What the call returned."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """Why the call ended without a value; None where it was cancelled."""

    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended without being asked to."""

    failure: Failure


Message: TypeAlias = Progressed | Delivered | Returned | Failed | Died


class JobContext:
    """What a call inside the worker may use to talk to the window.

    Args:
        send: Sends a message to the window.
        is_cancelled: Whether the window wants the call to end.
        kept: What calls keep for later ones of the same process; None for a place of its own.

    Attributes:
        cancel: Looked at by long calls.
        kept: By name: values that took long to make, such as a capture that is asked about again and again.
    """

    def __init__(
        self,
        send: Callable[[Message], None],
        is_cancelled: Callable[[], bool],
        kept: dict[str, Any] | None = None,
    ) -> None:
        self._send = send
        self.kept: dict[str, Any] = {} if kept is None else kept
        self._reported_at_s = 0.0
        self.cancel = CancelToken(is_cancelled)

    def progress(self, done_ratio: float, what: str) -> None:
        """Reports progress; more often than the eye can follow is left out."""
        now_s = time.monotonic()
        if now_s - self._reported_at_s >= REPORT_INTERVAL_S:
            self._reported_at_s = now_s
            self._send(Progressed(done_ratio, what))

    def deliver(self, value: Any) -> None:
        """Hands over a (small, picklable) value before the call ends."""
        self._send(Delivered(value))


Call: TypeAlias = Callable[..., Any]
"""A function at module level: ``call(context, *arguments)``; arguments and result are pickled."""


class WorkerProcess:
    """The window's end. Messages come on a thread of this object, as ``on_message(generation, message)``.

    Args:
        on_message: Called for every message; the last one may be ``Died``.
    """

    def __init__(self, on_message: Callable[[int, Message], None]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._newest = spawn.RawValue("q", 0)
        self._pipe, theirs = spawn.Pipe()
        self._on_message = on_message
        self._generation = 0
        self._ends_as_asked = False
        # Daemonic: a program that ends by an error must not wait for its worker. (Readers use threads, not processes.)
        self._process = spawn.Process(target=_serve, args=(theirs, self._newest), name="cannscope-worker", daemon=True)
        self._process.start()
        theirs.close()
        self._listener = threading.Thread(target=self._listen, name="cannscope-listener", daemon=True)
        self._listener.start()

    @property
    def process_id(self) -> int | None:
        """The operating system's number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def submit(self, generation: int, call: Call, arguments: tuple[Any, ...]) -> None:
        """Queues a call; whatever runs under another generation is asked to stop. OSError where the process died."""
        self._newest.value = generation
        self._generation = generation
        self._pipe.send((generation, call, arguments))

    def cancel(self) -> None:
        """Asks the running call to stop."""
        self._newest.value = 0

    def close(self, patience_s: float) -> None:
        """Ends the process, by force where it does not end by itself; no message comes afterwards."""
        self._ends_as_asked = True
        self.cancel()
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(patience_s)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._listener.join()
        self._pipe.close()
        self._process.close()

    def _listen(self) -> None:
        while True:
            try:
                generation, message = self._pipe.recv()
            except (EOFError, OSError):
                break
            if not self._ends_as_asked:
                self._on_message(generation, message)
        if not self._ends_as_asked:
            self._process.join()
            self._on_message(self._generation, Died(_death(self._process.exitcode)))


def _death(exit_code: int | None) -> Failure:
    how = f"signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"exit code {exit_code}"
    return Failure(
        f"the process that reads and analyses captures ended unexpectedly ({how})",
        advice="it may have run out of memory: close other programs or open fewer ranks, then try again",
    )


def _serve(pipe: Connection, newest: Any) -> None:
    """Runs the calls that come through ``pipe`` until it closes: the main function of the process."""
    kept: dict[str, Any] = {}
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while (request := pipe.recv()) is not None:
            generation, call, arguments = request
            pipe.send((generation, _run(pipe, newest, kept, generation, call, arguments)))


def _run(
    pipe: Connection, newest: Any, kept: dict[str, Any], generation: int, call: Call, arguments: tuple[Any, ...]
) -> Message:
    context = JobContext(
        send=lambda message: pipe.send((generation, message)),
        is_cancelled=lambda: newest.value != generation,
        kept=kept,
    )
    try:
        context.cancel.check()
        return Returned(call(context, *arguments))
    except OperationCancelled:
        return Failed(None)
    except BrokenPipeError:  # the window is gone: end the process
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the user sees it
        return Failed(failure_of(error))
