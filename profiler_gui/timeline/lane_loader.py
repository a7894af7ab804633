"""Lanes made in a thread when they are first asked for, so that opening and searching never hold the window up."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from profiler_gui.timeline.lanes import LaneMaker, Lanes
from profiler_gui.timeline.warm_up import warm_up

_Key = tuple[int, bool]
"""(track, whether it is folded into a strip)."""


class LaneLoader(QObject):
    """Keeps the lanes of one trace's tracks.

    After a search or a filter the old lanes stay in use until the new ones are there.

    Signals:
        ready: Painting may begin: its kernels are compiled.
        loaded: A track's lanes are there, or others.
    """

    ready = Signal()
    loaded = Signal(int)
    _done = Signal(int, object, object)
    _warmed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cannscope-lanes")
        self._generation = 0
        self._maker: LaneMaker | None = None
        self._lanes: dict[_Key, tuple[int, Lanes]] = {}
        self._pending: dict[_Key, Future[Lanes]] = {}
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

    def lanes(self, track: int, *, is_strip: bool = False) -> Lanes | None:
        """Returns a track's lanes, or the one lane it is folded into.

        None while they are made for the first time (``loaded`` says when).
        """
        key = (track, is_strip)
        generation, lanes = self._lanes.get(key, (-1, None))
        if generation != self._generation and key not in self._pending and self._maker is not None:
            self._request(key, self._maker)
        return lanes

    def close(self) -> None:
        """Ends the thread. Must be called before the owner goes."""
        self.set_maker(None, keep=False)
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _request(self, key: _Key, maker: LaneMaker) -> None:
        generation = self._generation
        future = self._executor.submit(maker.make, key[0], is_strip=key[1])
        self._pending[key] = future
        future.add_done_callback(lambda done: self._report(generation, key, done))

    def _report(self, generation: int, key: _Key, future: "Future[Lanes]") -> None:
        if not future.cancelled() and generation == self._generation:
            self._done.emit(generation, key, future)

    def _begin(self, future: Any) -> None:
        future.result()
        self._is_ready = True
        self.ready.emit()

    def _receive(self, generation: int, key: _Key, future: Any) -> None:
        if generation != self._generation:
            return
        self._pending.pop(key, None)
        error = future.exception()
        if error is not None:
            self._lanes[key] = (generation, ())
            # Raised here, in the window's thread, it reaches whoever reports crashes; the track stays empty.
            raise error
        self._lanes[key] = (generation, future.result())
        self.loaded.emit(key[0])
