"""How long a person looks at nothing: from starting the program to the first painted window."""

import os
import statistics
import subprocess
import sys
import time

import pytest

LIMIT_MS = 600
ROUNDS = 5
PROGRAM = """
import sys, time
from pathlib import Path
from PySide6.QtCore import QEvent, QObject
from profiler_gui.app import build_app, create_application

class Painted(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            print(time.time_ns(), flush=True)
            watched.removeEventFilter(self)
            application.quit()
        return False

application = create_application(["cannscope"])
window = build_app(application, Path(sys.argv[1]) / "settings.ini", Path(sys.argv[1]) / "cache")
painted = Painted()
window.centralWidget().installEventFilter(painted)
window.show()
application.exec()
window.close()
"""


@pytest.mark.benchmark
def test_the_window_is_painted_in_time(tmp_path):
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    times_ms = []
    for _ in range(ROUNDS + 1):  # the first one warms the disk
        started_ns = time.time_ns()
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
        times_ms.append((int(result.stdout) - started_ns) / 1e6)
    warm_ms = statistics.median(times_ms[1:])
    sys.stdout.write(
        f"\nfirst paint, warm: {warm_ms:.0f} ms (limit {LIMIT_MS} ms; all {[round(t) for t in times_ms]})\n"
    )
    assert warm_ms <= LIMIT_MS
