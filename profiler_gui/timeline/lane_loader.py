"""Lanes made in a thread when they are first asked for, so that opening and searching never hold the window up."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from profiler_gui.timeline.lanes import LaneMaker, Lanes
from profiler_gui.timeline.warm_up import warm_up


class LaneLoader(QObject):
    """Keeps the lanes of one trace's tracks.

    After a search or a filter the old lanes stay in use until the new ones are there.

    Signals:
        ready: Painting may begin: its kernels are compiled.
        loaded: A track's lanes are there, or others.
    """

    ready = Signal()
    loaded = Signal(int)
    _done = Signal(int, int, object)
    _warmed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cannscope-lanes")
        self._generation = 0
        self._maker: LaneMaker | None = None
        self._lanes: dict[int, tuple[int, Lanes]] = {}
        self._pending: dict[int, Future[Lanes]] = {}
        self._is_ready = False
        self._done.connect(self._receive, Qt.ConnectionType.QueuedConnection)
        self._warmed.connect(self._begin, Qt.ConnectionType.QueuedConnection)
        self._executor.submit(warm_up).add_done_callback(self._warmed.emit)

    @property
    def is_ready(self) -> bool:
        """Whether the kernels are compiled."""
        return self._is_ready

    @property
    def is_busy(self) -> bool:
        """Whether lanes are being made."""
        return bool(self._pending) or not self._is_ready

    def set_maker(self, maker: LaneMaker | None, *, keep: bool) -> None:
        """Makes lanes with another maker from now on.

        Args:
            maker: Of the trace in view, or None.
            keep: Whether the tracks are the same ones, so that their old lanes may be shown meanwhile.
        """
        self._generation += 1
        for future in self._pending.values():
            future.cancel()
        self._pending.clear()
        self._maker = maker
        if not keep:
            self._lanes.clear()

    def lanes(self, track: int) -> Lanes | None:
        """Returns a track's lanes; None while they are made for the first time (``loaded`` says when)."""
        generation, lanes = self._lanes.get(track, (-1, None))
        if generation != self._generation and track not in self._pending and self._maker is not None:
            self._request(track, self._maker)
        return lanes

    def close(self) -> None:
        """Ends the thread. Must be called before the owner goes."""
        self.set_maker(None, keep=False)
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _request(self, track: int, maker: LaneMaker) -> None:
        generation = self._generation
        future = self._executor.submit(maker.make, track)
        self._pending[track] = future
        future.add_done_callback(lambda done: self._report(generation, track, done))

    def _report(self, generation: int, track: int, future: "Future[Lanes]") -> None:
        if not future.cancelled() and generation == self._generation:
            self._done.emit(generation, track, future)

    def _begin(self, future: Any) -> None:
        future.result()
        self._is_ready = True
        self.ready.emit()

    def _receive(self, generation: int, track: int, future: Any) -> None:
        if generation != self._generation:
            return
        self._pending.pop(track, None)
        error = future.exception()
        if error is not None:
            self._lanes[track] = (generation, ())
            # Raised here, in the window's thread, it reaches whoever reports crashes; the track stays empty.
            raise error
        self._lanes[track] = (generation, future.result())
        self.loaded.emit(track)
