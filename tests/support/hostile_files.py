"""Small files with one fault each, and short ways to read them."""

import gzip
from pathlib import Path

from engine.formats.chrome.reader import ChromeReader
from engine.formats.events.trace_events import read_events
from engine.formats.kineto.reader import KinetoReader
from engine.formats.reader import Capture, ReadContext
from engine.trace.diagnostics import DiagnosticLog
from engine.trace.strings import StringInterner

MAX_BYTES = 1024


def event(name="a", ts="1", dur="2", ph="X", pid="1", tid="1", **more):
    """Returns the JSON text of an event; values are JSON texts, a value of None leaves the key out."""
    members = {"ph": f'"{ph}"', "name": f'"{name}"', "pid": pid, "tid": tid, "ts": ts, "dur": dur, **more}
    return "{" + ",".join(f'"{key}":{value}' for key, value in members.items() if value is not None) + "}"


def array(*events):
    return "[" + ",".join(events) + "]"


def kineto(*events, head='"schemaVersion":1,"deviceProperties":[]'):
    return "{" + head + ',"traceEvents":' + array(*events) + "}"


def write(directory: Path, content: str | bytes, name="fault.json") -> Path:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    assert len(data) < MAX_BYTES
    path = directory / name
    path.write_bytes(data)
    return path


def write_gzip(directory: Path, content: str, name="fault.json.gz") -> Path:
    return write(directory, gzip.compress(content.encode()), name)


class RawFile:
    """The columns of a small file, as Python values."""

    def __init__(self, path: Path) -> None:
        strings, log = StringInterner(), DiagnosticLog()
        self.raw = read_events(path, strings, log, ReadContext())
        self.texts = strings.table()
        self.counts = {item.code: item.count for item in log.diagnostics()}
        self.diagnostics = log.diagnostics()

    @property
    def names(self):
        return self.texts.texts(self.raw.name)


def raw_events(directory: Path, content: str | bytes, name="fault.json") -> RawFile:
    return RawFile(write(directory, content, name))


def read_chrome(path: Path):
    return ChromeReader().read(Capture(path, {"trace": path}), ReadContext())


def read_kineto(path: Path):
    return KinetoReader().read(Capture(path, {"trace": path}), ReadContext())


def slices(trace):
    """Returns ``{name: (start, duration)}`` of a trace whose names are unique."""
    events = trace.events
    return {trace.name(row): (int(events.start_ns[row]), int(events.duration_ns[row])) for row in range(len(events))}


def codes(trace):
    return {item.code: item.count for item in trace.diagnostics}
