"""From any input to the documents of ``info`` and ``analyze``: one clear error, or finite numbers and diagnostics."""

import contextlib
import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.analyses.summary import summarize
from engine.core.errors import EngineError
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.report.analysis_document import analysis_document
from engine.report.info import info_document
from tests.support.ascend_capture import EPOCH_US, KERNEL_TITLES, kernel_row, layer, slice_event, us, write_files
from tests.support.hostile_files import event, kineto

WORDS = [
    *("NaN", "-Infinity", "1e400", "1e308", "-1", "0", "9" * 30, "9223372036854775807", "-9223372036854775808", "null"),
    *('""', '"x"', "{}", "[]", "[" * 300, '{"a":' * 300, "}", "]", '"', "\\", "\\ud800", "\x00", "\r\n", "N/A"),
    "1" * 400,
]  # fmt: skip
STEP = event("ProfilerStep#3", "0", "90", cat='"user_annotation"', pid="9", tid="9")
LAUNCH = event("cudaLaunchKernel", "5", "2", cat='"cuda_runtime"', pid="9", tid="9", args='{"correlation":3}')
ARGS = '{"stream":7,"device":0,"correlation":3}'
MEMORY_ARGS = '{"Device Type":1,"Device Id":0,"Addr":64,"Bytes":512,"Total Allocated":512,"Total Reserved":2048}'
KINETO = kineto(
    STEP,
    LAUNCH,
    event("gemm", "10", "20", cat='"kernel"', pid="0", args=ARGS),
    event("ncclDevKernel_AllReduce", "40", "30", cat='"kernel"', pid="0", tid="8", args=ARGS),
    event("[memory]", "6", None, "i", cat='"cpu_instant_event"', pid="9", tid="9", args=MEMORY_ARGS),
    event("power", "7", None, "C", args='{"W":5}'),
    head='"schemaVersion":1,"deviceProperties":[{"id":0}],"distributedInfo":{"rank":1,"world_size":2}',
)
TIMES = {"Start Timestamp(us)": EPOCH_US + 30.5, "Elapse Time(ms)": 0.01, "Wait Time(ms)": 0.005}
LINKS = {"HCCS": {"Transit Size(MB)": 1.5, "Transit Time(ms)": 0.01, "Large Packet Ratio": 1.0}}
COLLECTIVE = {"Communication Time Info": TIMES, "Communication Bandwidth Info": LINKS}
GROUPS = {"7": {"group_name": "dp", "global_ranks": [0, 1]}}
FILES = {
    "trace_view.json": json.dumps(
        [
            *layer("Ascend Hardware", 2, {3: "Stream 3"}),
            slice_event("MatMul", 2, 3, 10, 4, args={"Task Type": "AI_CORE"}),
        ]
    ),
    "kernel_details.csv": f"{KERNEL_TITLES}\n{kernel_row('MatMul', us(10), stream='3')}\n{kernel_row('Add', us(20))}\n",
    "step_trace_time.csv": "Device_id,Step,Computing,Communication,Free,Preparing\n0,13,10.5,4,2,1\n",
    "memory_record.csv": f"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB)\nPTA,{us(1)}\t,1.5,2\n",
    "operator_memory.csv": f"Name,Size(KB),Allocation Time(us),Release Time(us)\naten::mm,0.5,{us(1)}\t,\n",
    "communication.json": json.dumps({"step13": {"collective": {"hcom_allReduce__7_0_1@7": COLLECTIVE}}}),
    "communication_matrix.json": json.dumps({"step13": {"p2p": {"op@7": {"0-1": {"Transport Type": "HCCS"}}}}}),
    "profiler_info_0.json": json.dumps({"config": {}, "rank_id": 0}),
    "profiler_metadata.json": json.dumps({"distributed_args": {"world_size": 2}, "parallel_group_info": GROUPS}),
}


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """Returns the text cut, with a stretch of it doubled, or with stretches replaced by what readers stumble over."""
    content = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 1, 2, 5, 20, 10_000])))
        noise = draw(st.sampled_from([b"", content[start:end] * 2]) | st.binary(max_size=8) | st.sampled_from(WORDS))
        content = content[:start] + (noise.encode() if isinstance(noise, str) else noise) + content[end:]
    return content


def opens_or_says_why(path: Path) -> None:
    """Any error that is not for the user, and any number that is not finite, fails the test."""
    with contextlib.suppress(EngineError):
        job = open_job([path], built_in_readers())
        json.dumps([info_document(job), analysis_document(job, summarize(job))], allow_nan=False)


@settings(max_examples=150)
@given(content=damaged(KINETO) | damaged(KINETO[KINETO.index("[") :]), packed=st.booleans())
def test_whatever_happens_to_a_trace_only_errors_and_finite_numbers_come_out(content: bytes, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trace.json"
        path.write_bytes(gzip.compress(content) if packed else content)
        opens_or_says_why(path)


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_happens_to_a_file_of_a_capture_the_rest_is_analysed(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        files: dict[str, str | bytes | object] = {**FILES, name: data.draw(damaged(FILES[name]))}
        opens_or_says_why(write_files(Path(directory), files))


@settings(max_examples=60)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_trace_or_one_clear_line(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        for content in (data, gzip.compress(data), b"\x1f\x8b" + data, b"[" + data, b'{"traceEvents":[' + data):
            path = Path(name) / "anything.json"
            path.write_bytes(content)
            opens_or_says_why(path)


def test_the_undamaged_inputs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(KINETO)
    (trace,) = (entry.trace for entry in open_job([path], built_in_readers()).ranks)
    assert (len(trace.events), len(trace.counters), trace.diagnostics) == (4, 1, ())
    (trace,) = (entry.trace for entry in open_job([write_files(tmp_path / "rank", FILES)], built_in_readers()).ranks)
    assert len(trace.kernels) == 2
    assert len(trace.collectives) == 1
