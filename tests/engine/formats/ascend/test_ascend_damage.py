"""Whatever happens to a file, the capture opens with what is left of it, or says what is wrong."""

import contextlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.errors import TraceReadError
from engine.formats.ascend.reader import AscendTextReader
from engine.formats.reader import ReadContext
from tests.support.ascend_capture import (
    EPOCH_US,
    KERNEL_TITLES,
    kernel_row,
    layer,
    slice_event,
    us,
    write_files,
)

KERNEL = slice_event("MatMul", 2, 3, 10, 4, args={"Task Type": "AI_CORE", "connection_id": 7})
START = {"name": "h", "ph": "s", "cat": "HostToDevice", "id": "7", "pid": 1, "tid": 5, "ts": us(0)}
END = {"name": "h", "ph": "f", "bp": "e", "cat": "HostToDevice", "id": "7", "pid": 2, "tid": 3, "ts": us(10)}
COUNTER = {"name": "HBM 0/Read", "ts": us(5), "pid": 2, "tid": 0, "args": {"Read(MB/s)": 2.5}, "ph": "C"}
TRACE = [
    *layer("CANN", 1, {5: "Thread 5"}, "CPU"),
    *layer("Ascend Hardware", 2, {3: "Stream 3"}),
    slice_event("Node@launch", 1, 5, 0, 2, args={"connection_id": 7}),
    KERNEL,
    START,
    END,
    COUNTER,
]
TIMES = {"Start Timestamp(us)": EPOCH_US + 0.5, "Elapse Time(ms)": 1.0, "Transit Time(ms)": 0.5}
FILES = {
    "trace_view.json": json.dumps(TRACE),
    "kernel_details.csv": f"{KERNEL_TITLES}\n{kernel_row('MatMul', us(10), stream='3')}\n{kernel_row('b', us(20))}\n",
    "memory_record.csv": f"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\nPTA,{us(1)}\t,1.5,2\n",
    "operator_memory.csv": f"Name,Size(KB),Allocation Time(us),Release Time(us)\naten::mm,0.5,{us(1)}\t,\n",
    "communication.json": json.dumps({"step1": {"collective": {"op@7": {"Communication Time Info": TIMES}}}}),
    "communication_matrix.json": json.dumps({"step1": {"p2p": {"op-top1@7": {"0-1": {"Transport Type": "HCCS"}}}}}),
    "op_statistic.csv": 'OP Type,Count\n"Mat""Mul\n2",3\n',
}


def opens_or_says_why(files: dict[str, bytes]) -> None:
    """Any error that is not for the user fails the test."""
    with tempfile.TemporaryDirectory() as name:
        root = write_files(Path(name), {f"ASCEND_PROFILER_OUTPUT/{key}": content for key, content in files.items()})
        for capture in AscendTextReader().find(root):
            with contextlib.suppress(TraceReadError):
                trace = AscendTextReader().read(capture, ReadContext())
                for event in range(len(trace.events)):
                    trace.arguments(event)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_file_may_be_cut_anywhere(name: str, data: st.DataObject) -> None:
    content = FILES[name].encode()
    kept = data.draw(st.integers(0, len(content)))
    opens_or_says_why({key: text.encode() for key, text in FILES.items()} | {name: content[:kept]})


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=40)
@given(data=st.data())
def test_a_stretch_of_a_file_may_be_anything(name: str, data: st.DataObject) -> None:
    content = FILES[name].encode()
    start = data.draw(st.integers(0, len(content)))
    length = data.draw(st.integers(0, 12))
    noise = data.draw(st.binary(max_size=12) | st.sampled_from([b'"', b",", b"\n", b"-1", b"1e400", b"null", b"[]"]))
    opens_or_says_why({name: content[:start] + noise + content[start + length :]})


@pytest.mark.parametrize("kept", [[name] for name in FILES])
def test_every_file_is_enough_alone(kept: list[str]) -> None:
    opens_or_says_why({name: FILES[name].encode() for name in kept})
