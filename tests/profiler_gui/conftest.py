"""Guards of every test of the window: nothing may stay behind."""

import gc
import multiprocessing
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject, QThread, QTimer


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fails a test that leaves a worker process, a thread of ours, a QThread or a QTimer running."""
    yield
    left = [f"process {process.name}" for process in multiprocessing.active_children()]
    left += [f"thread {thread.name}" for thread in threading.enumerate() if thread.name.startswith("cannscope")]
    left += [
        f"{type(item).__name__} {item.objectName()!r} of {item.parent()!r}"
        for item in gc.get_objects()
        if isinstance(item, QObject) and _is_running(item)
    ]
    assert not left, f"left running: {left}"


def _is_running(item: QObject) -> bool:
    try:
        if isinstance(item, QTimer):
            return item.isActive()
        return isinstance(item, QThread) and item.isRunning() and item is not QThread.currentThread()
    except RuntimeError:  # its C++ half is gone
        return False
