"""Host calls that keep the device waiting, recognised by name."""

import re
from enum import StrEnum

import numpy as np

from engine.analyses.name_search import names_holding
from engine.core.arrays import BoolArray, Int32Array
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind


class HostCall(StrEnum):
    """What a host call is doing while the device may run dry."""

    COMPILE = "compile"
    ALLOCATE = "allocate"
    LOAD_DATA = "load_data"
    COLLECT_GARBAGE = "collect_garbage"
    SYNCHRONIZE = "synchronize"


_LAYER = r"(?:AscendCL|Runtime|Model|Node)@"
_PATTERNS = {
    HostCall.COMPILE: (
        rf"(?:{_LAYER})?(?:aclop|op|acl)Compile\w*|nvrtcCompileProgram|(?:cu|hip)(?:Module|Library)LoadData\w*"
        r"|torch/_dynamo/convert_frame\.py\(.*|torch/_inductor/(?:compile_fx|codecache)\.py\(.*"
    ),
    HostCall.ALLOCATE: (
        rf"(?:{_LAYER})?(?:aclrt(?:Malloc|Free)\w*|aclMallocMemInner|aclrt(?:Map|Unmap)Mem|aclrtReserveMemAddress"
        r"|Dev(?:Malloc|Free)\w*)"
        r"|(?:cuda|hip)(?:Malloc(?!Async)\w*|Free(?!Async)\w*|HostAlloc|ExtMallocWithFlags)"
        r"|(?:cu|hip)Mem(?:Alloc(?!Async)\w*|Create|Map|Unmap|Release|AddressReserve)(?:_v\d)?"
    ),
    HostCall.LOAD_DATA: r".*dataloader.*",
    HostCall.COLLECT_GARBAGE: r"(?:python )?gc(?:\b.*)?|.*\bgc\.collect\b.*",
    HostCall.SYNCHRONIZE: (
        rf"(?:{_LAYER})?(?:aclrtSynchronize\w*|aclrtMemcpy(?:2d)?|(?:Stream|Device|Event)Synchronize\w*|MemCopySync\w*)"
        r"|(?:cuda|hip)(?:Device|Stream|Event|Ctx)Synchronize\w*|cu(?:Ctx|Stream|Event)Synchronize\w*"
        r"|(?:cuda|hip)Memcpy(?:2D|3D|WithStream|(?:To|From)Symbol)?|cuMemcpy(?:DtoH|HtoD)(?:_v2)?"
        r"|(?:Stream|Event|Context|Device) Sync"
    ),
}
_CALLS = re.compile("|".join(f"(?P<{call}>{pattern})" for call, pattern in _PATTERNS.items()), re.IGNORECASE)
_NEEDLES = (
    *("compile", "loaddata", "convert_frame", "codecache", "dataloader", "gc", "sync", "memcpy"),
    *("malloc", "free", "hostalloc", "memalloc", "mapmem", "reservemem", "addressreserve"),
    *("memcreate", "memmap", "memunmap", "memrelease"),
)
"""Every name the patterns match holds one of these (lower case)."""
_COMPILE_AND_EXECUTE = re.compile(r"(?:AscendCL@)?aclopCompileAndExecute\w*", re.IGNORECASE)


def host_call_rows(trace: Trace) -> dict[HostCall, Int32Array]:
    """Returns the host event rows of each kind of call, int32, by start.

    ``aclopCompileAndExecute`` also runs the operator; where the trace shows the ``opCompile`` inside, that one counts.
    """
    rows = trace.events_of(TrackKind.HOST_THREAD, TrackKind.CANN_THREAD)
    found: dict[HostCall, list[int]] = {call: [] for call in HostCall}
    compile_and_execute: list[int] = []
    # One match per distinct name that may matter, not per event.
    for name in names_holding(trace.strings, _NEEDLES).tolist():
        text = trace.strings.text(name)
        match = _CALLS.fullmatch(text)
        if match is not None and match.lastgroup is not None:
            found[HostCall(match.lastgroup)].append(name)
            if _COMPILE_AND_EXECUTE.fullmatch(text):
                compile_and_execute.append(name)
    by_start = rows[np.argsort(trace.events.start_ns[rows], kind="stable")]
    names = trace.events.name[by_start]
    calls = {call: by_start[np.isin(names, np.array(ids, dtype=np.int32))] for call, ids in found.items()}
    outer = _is_named(trace, calls[HostCall.COMPILE], compile_and_execute)
    inside = trace.events.parent[calls[HostCall.COMPILE][~outer]]
    replaced = outer & np.isin(calls[HostCall.COMPILE], inside)
    calls[HostCall.COMPILE] = calls[HostCall.COMPILE][~replaced]
    return calls


def _is_named(trace: Trace, rows: Int32Array, names: list[int]) -> BoolArray:
    named: BoolArray = np.isin(trace.events.name[rows], np.array(names, dtype=np.int32))
    return named
