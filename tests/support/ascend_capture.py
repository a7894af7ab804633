"""Small Ascend captures written to a directory, and read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.formats.ascend.reader import AscendTextReader
from engine.formats.reader import ReadContext
from engine.trace import Diagnostic, Trace

EPOCH_US = 1_736_412_474_000_000
KERNEL_TITLES = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID"
)


def kernel_row(name: str, start: str, duration: str = "5.0", stream: str = "2", core: str = "AI_CORE") -> str:
    """Returns a row for KERNEL_TITLES, its start with the TAB the profiler writes."""
    shapes = '"""8,16;16,4""",DT_BF16;DT_BF16,ND;ND,"""8,4""",DT_BF16,ND,N/A'
    return f"13,0,4294967295,7,{stream},{name},MatMulV3,dynamic,{core},{start}\t,{duration},0,24,0,NO,{shapes}"


def write_files(directory: Path, files: Mapping[str, str | bytes | object]) -> Path:
    """Writes files by relative name (objects as JSON) and returns the directory."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())
    return directory


def read_capture(path: Path) -> Trace:
    """Reads the only capture at ``path``."""
    reader = AscendTextReader()
    (capture,) = reader.find(path)
    return reader.read(capture, ReadContext())


def read_files(directory: Path, files: Mapping[str, str | bytes | object]) -> Trace:
    """Writes output files of one profiler directory and reads it."""
    output = {f"ASCEND_PROFILER_OUTPUT/{name}": content for name, content in files.items()}
    return read_capture(write_files(directory, output))


def found(trace: Trace, code: str) -> Diagnostic | None:
    """Returns the diagnostic with the code, None where nothing was counted."""
    return next((item for item in trace.diagnostics if item.code == code), None)


def layer(name: str, pid: int, threads: Mapping[int, str], label: str = "NPU", sort_index: int = 0) -> list[Any]:
    """Returns the metadata events of one layer of a trace."""
    events = [
        {"name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}, "ph": "M"},
        {"name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}, "ph": "M"},
        {"name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": sort_index}, "ph": "M"},
    ]
    for tid, title in threads.items():
        events.append({"name": "thread_name", "pid": pid, "tid": tid, "args": {"name": title}, "ph": "M"})
    return events


def us(offset: float) -> str:
    """Returns a timestamp as trace_view.json writes it: epoch µs as text with three decimals."""
    return f"{EPOCH_US + int(offset)}.{round(offset % 1 * 1000):03d}"


def slice_event(name: str, pid: int, tid: int, start: float, duration: float, **more: Any) -> dict[str, Any]:
    """Returns an X event; ``more`` goes beside its times (``args=…``, ``cat=…``)."""
    return {"name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": duration, "ph": "X", **more}
