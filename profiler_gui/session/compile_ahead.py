"""Compiles the kernels of reading and analysing while nobody waits: in the idle worker, after the first paint.

The first opening after an installation would otherwise compile for seconds. Two captures of a few events go through the
real readers and the real analyses, so that nothing needs to be kept in step with them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from profiler_gui.session.worker import JobContext

_EPOCH_US = 1_700_000_000_000_000
_KERNEL_TITLES = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID,aicore_time(us),aiv_time(us)"
)
_OPERATOR_MEMORY_TITLES = (
    "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),"
    "Allocation Total Allocated(MB),Allocation Total Reserved(MB),Allocation Total Active(MB),"
    "Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),Stream Ptr,Device Type"
)
_MEMORY_TITLES = (
    "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"
)
_STEP_TITLES = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def compile_in_worker(context: JobContext, directory: Path, also: Callable[[], None]) -> None:
    """Runs the readers and the analyses on next to nothing; stops between captures where the window wants something.

    Args:
        context: Of the worker.
        directory: Where the captures lie meanwhile: the cache's, which removes what a killed worker leaves behind.
        also: Runs other kernels, first; a function at module level.
    """
    from engine.analyses.summary import summarize
    from engine.core.errors import EngineError
    from engine.formats import open_job
    from engine.formats.readers import built_in_readers
    from engine.trace.storage import UNFINISHED_PREFIX

    also()
    scratch = Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=directory))
    try:
        for capture in write_captures(scratch):
            context.cancel.check()
            try:
                summarize(open_job([capture], built_in_readers(), cancel=context.cancel), cancel=context.cancel)
            except EngineError:  # a cache of kernels less; a user's capture will say what is wrong with it
                continue
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_captures(directory: Path) -> Iterator[Path]:
    """Writes a Kineto trace and an Ascend profiler directory and yields the path of each."""
    trace = directory / "trace.json"
    document = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}}
    trace.write_text(json.dumps(document | {"traceEvents": [*_kineto_events()]}), encoding="utf-8")
    yield trace
    output = directory / "rank_0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (output / "trace_view.json").write_text(json.dumps([*_ascend_events()]), encoding="utf-8")
    for name, (titles, rows) in _ascend_tables().items():
        (output / f"{name}.csv").write_text("\n".join((titles, *rows, "")), encoding="utf-8")
    yield output.parent


def _kineto_events() -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0.0, "args": {"name": "python"}}
    yield _slice("ProfilerStep#1", "user_annotation", 1, 1, 0, 400)
    for index in range(8):
        at_us = 40 * index + 10
        yield _slice("nn.Module: Linear_0", "python_function", 1, 1, at_us, 20, {"Python id": index + 1})
        yield _slice("aten::mm", "cpu_op", 1, 1, at_us + 1, 15, {"External id": index, "Input Dims": [[8, 8], [8, 8]]})
        yield _slice("cudaLaunchKernel", "cuda_runtime", 1, 1, at_us + 3, 2, {"correlation": index, "cbid": 211})
        kernel = "ncclDevKernel_AllReduce" if index == 5 else "ampere_sgemm"
        yield _slice(kernel, "kernel", 0, 7, at_us + 12, 9, {"correlation": index, "stream": 7, "device": 0})
        flow = {"cat": "ac2g", "name": "ac2g", "id": index}
        yield flow | {"ph": "s", "pid": 1, "tid": 1, "ts": _EPOCH_US + at_us + 3}
        yield flow | {"ph": "f", "bp": "e", "pid": 0, "tid": 7, "ts": _EPOCH_US + at_us + 12}
        sign = -1 if index % 2 else 1
        held = {"Total Reserved": 4096, "Total Allocated": 512 * (1 - index % 2), "Bytes": 512 * sign, "Addr": 4096}
        held |= {"Device Id": 0, "Device Type": 1, "Ev Idx": index}
        yield {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": _EPOCH_US + at_us + 2, "args": held}


def _slice(
    name: str, category: str, pid: int, tid: int, at_us: int, duration_us: int, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
    return event | {"ts": _EPOCH_US + at_us + 0.125, "dur": duration_us + 0.5, "args": arguments or {}}


def _ascend_events() -> Iterator[dict[str, Any]]:
    for pid, name in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"), (4, "Communication")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    yield _task("ProfilerStep#1", 1, 1, 0, 400)
    for index in range(8):
        at_us = 40 * index + 10
        yield _task("aten::mm", 1, 1, at_us, 15, {"Sequence number": index, "Input Dims": "8,8;\r\n8,8"})
        yield _task("AscendCL@aclnnMm", 2, 1, at_us + 2, 5, {"connection_id": index, "level": "acl"})
        yield _task("MatMulV2", 3, 2, at_us + 12, 9, {"Task Type": "AI_CORE", "Task Id": index, "connection_id": index})
        flow = {"cat": "HostToDevice", "name": f"HostToDevice{index}", "id": str(index)}
        yield flow | {"ph": "s", "pid": 2, "tid": 1, "ts": f"{_EPOCH_US + at_us + 2}.125"}
        yield flow | {"ph": "f", "bp": "e", "pid": 3, "tid": 2, "ts": f"{_EPOCH_US + at_us + 12}.125"}
    yield _task("hcom_allReduce__1_0_1", 4, 3, 200, 30, {"connection_id": 9})


def _task(
    name: str, pid: int, tid: int, at_us: int, duration_us: int, arguments: dict[str, Any] | None = None
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": tid}
    return event | {"ts": f"{_EPOCH_US + at_us}.125", "dur": duration_us + 0.5, "args": arguments or {}}


def _ascend_tables() -> dict[str, tuple[str, list[str]]]:
    """Returns name → (titles, rows) of the tables."""
    kernels, blocks, memory = [], [], []
    for index in range(8):
        at_us = _EPOCH_US + 40 * index + 10
        shapes = '"""8,8;8,8""",FLOAT;FLOAT,ND;ND,"""8,8""",FLOAT,ND,N/A'
        kernels.append(f"1,0,4294967295,{index},2,MatMulV2,MatMulV2,dynamic,AI_CORE,{at_us + 12}.125\t,9.5,0,8,0,NO,")
        kernels[-1] += f"{shapes},9.1,0.0"
        freed, totals = f"{at_us + 9}.125\t", "1.5,4.0,1.5"
        blocks.append(f"aten::mm,0.5,{at_us}.125\t,{freed},{freed},9.0,9.0,{totals},{totals},2,NPU:0")
        memory.append(f"PTA,{at_us}.125\t,1.5,4.0,1.5,2,NPU:0")
    step = "0,1,76.0,30.5,0.0,30.5,294.0,400.5,0,30.5,10.0"
    return {
        "kernel_details": (_KERNEL_TITLES, kernels),
        "operator_memory": (_OPERATOR_MEMORY_TITLES, blocks),
        "memory_record": (_MEMORY_TITLES, memory),
        "step_trace_time": (_STEP_TITLES, [step]),
    }
