"""How fast and how small traces are read, as ratios to ``json.load`` on the same file in the same run."""

import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from engine.formats.chrome.reader import ChromeReader
from engine.formats.events.trace_events import read_events
from engine.formats.kineto.reader import KinetoReader
from engine.formats.reader import Capture, ReadContext
from engine.trace.diagnostics import DiagnosticLog
from engine.trace.strings import StringInterner
from tests.benchmarks.generator import write_ascend_trace, write_kineto_trace

pytestmark = pytest.mark.benchmark
MIB = 1 << 20
COLUMNS_RATIO, TRACE_RATIO, MEMORY_RATIO, KINETO_RATIO = 6.0, 3.0, 2.0, 5.0
REPEATS = 3


def load_json(path):
    with path.open(encoding="utf-8") as file:
        json.load(file)


def load_columns(path):
    read_events(path, StringInterner(), DiagnosticLog(), ReadContext())


def load_chrome(path):
    ChromeReader().read(Capture(path, {"trace": path}), ReadContext())


def load_kineto(path):
    KinetoReader().read(Capture(path, {"trace": path}), ReadContext())


def _timed(load, path, warm_up):
    """Runs in a process of its own: its peak is that of this one call."""
    load(warm_up)
    started = time.perf_counter()
    load(path)
    elapsed_s = time.perf_counter() - started
    # getrusage would state the peak of the parent too, which this process was forked from before it ran a program.
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return elapsed_s, int(status.partition("VmHWM:")[2].split()[0]) * 1024


def measure(load, path, warm_up, repeats=REPEATS):
    """Returns the least seconds and the largest peak of a few runs, each in a fresh process."""
    runs = []
    for _ in range(repeats):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            runs.append(pool.submit(_timed, load, path, warm_up).result())
    return min(seconds for seconds, _ in runs), max(peak for _, peak in runs)


def table(title, path, rows):
    print(f"\n{title}: {path.stat().st_size / MIB:.0f} MiB")  # noqa: T201 - the figures are what a benchmark is for
    for name, (seconds, peak_bytes) in rows.items():
        ratio = rows["json.load"][0] / seconds
        print(f"  {name:<28}{seconds:8.2f} s {ratio:6.1f}x json.load {peak_bytes / MIB:8.0f} MiB peak")  # noqa: T201


def make(directory: Path, write, event_count):
    path, small = directory / "trace.json", directory / "small.json"
    write(path, event_count)
    write(small, 2_000)
    return path, small


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_million_ascend_events_read_six_times_faster_than_json_load(tmp_path):
    path, small = make(tmp_path, write_ascend_trace, 1_000_000)
    rows = {
        "json.load": measure(load_json, path, small, 2),
        "columns": measure(load_columns, path, small),
        "whole trace": measure(load_chrome, path, small),
    }
    table("trace_view.json, 1 M events", path, rows)
    assert rows["json.load"][0] / rows["columns"][0] >= COLUMNS_RATIO
    assert rows["json.load"][0] / rows["whole trace"][0] >= TRACE_RATIO
    assert rows["columns"][1] <= MEMORY_RATIO * path.stat().st_size
    assert rows["whole trace"][1] <= MEMORY_RATIO * path.stat().st_size


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_million_kineto_events_read_five_times_faster_than_json_load(tmp_path):
    path, small = make(tmp_path, write_kineto_trace, 1_000_000)
    rows = {
        "json.load": measure(load_json, path, small, 2),
        "columns": measure(load_columns, path, small),
        "whole trace": measure(load_kineto, path, small),
    }
    table("Kineto trace, 1 M events", path, rows)
    assert rows["json.load"][0] / rows["columns"][0] >= KINETO_RATIO
    assert rows["json.load"][0] / rows["whole trace"][0] >= TRACE_RATIO
    assert rows["whole trace"][1] <= MEMORY_RATIO * path.stat().st_size


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("event_count", [100_000, 5_000_000])
def test_reading_scales_with_the_file(tmp_path, event_count):
    path, small = make(tmp_path, write_ascend_trace, event_count)
    rows = {
        "json.load": measure(load_json, path, small, 1),
        "columns": measure(load_columns, path, small, 1),
        "whole trace": measure(load_chrome, path, small, 1),
    }
    table(f"trace_view.json, {event_count:,} events", path, rows)
    assert rows["json.load"][0] / rows["columns"][0] >= COLUMNS_RATIO / 2
