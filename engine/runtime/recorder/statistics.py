"""The summary tables the profiler writes beside a timeline, computed from the recorded trace itself."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.analyses.steps import steps
from engine.core.arrays import Float64Array, Int32Array, Int64Array
from engine.core.units import NS_PER_US
from engine.runtime.recorder.matrix import matrix_table
from engine.trace.strings import ABSENT, StringInterner
from engine.trace.tables import RecordedTable
from engine.trace.trace import Trace
from engine.trace.tracks import TrackKind

_CUBE_CORES = ("AI_CORE", "MIX_AIC")
_LEVELS = {"AscendCL": "acl", "Node": "node", "Runtime": "runtime", "Model": "model", "Communication": "communication"}


def with_statistics(trace: Trace, level: int) -> Trace:
    """Returns the trace with the tables its profiler level brings: step times always, the statistics from level 1."""
    words = StringInterner(trace.strings)
    tables = {"step_trace_time": _step_table(trace)}
    if level > 0:
        tables |= {
            "operator_details": _operator_table(trace, words),
            "op_statistic": _kernel_statistic(trace, words),
            "api_statistic": _call_statistic(trace, words),
            "communication_matrix": matrix_table(trace, words),
        }
    return replace(trace, strings=words.table(), tables={name: table for name, table in tables.items() if len(table)})


def _us(ns: Int64Array) -> Float64Array:
    return np.asarray(ns, dtype=np.float64) / NS_PER_US


def _table(name: str, columns: Mapping[str, Float64Array | Int32Array]) -> RecordedTable:
    """Returns a table: float64 columns are numbers, int32 columns texts; a column of nothing is one of no numbers."""
    numbers: dict[str, Float64Array] = {}
    texts: dict[str, Int32Array] = {}
    for title, column in columns.items():
        if column.dtype == np.float64:
            numbers[title] = column.astype(np.float64)
        elif np.all(column == ABSENT):
            numbers[title] = np.full(len(column), np.nan)
        else:
            texts[title] = column.astype(np.int32)
    return RecordedTable(name, numbers, texts, tuple(columns))


def _device(trace: Trace, count: int) -> Float64Array:
    devices = {track.device for track in trace.tracks if track.kind is TrackKind.DEVICE_STREAM}
    return np.full(count, float(min(devices, default=0)))


def _step_table(trace: Trace) -> RecordedTable:
    """Returns step_trace_time: the step analysis under the profiler's titles, in µs."""
    rows = [step for step in steps(trace) if step.computing_ns is not None]

    def column(name: str) -> Float64Array:
        values = [getattr(step, f"{name}_ns") for step in rows]
        return np.array([np.nan if value is None else value / NS_PER_US for value in values], dtype=np.float64)

    exposed, bubble = column("communication_not_overlapped"), column("bubble")
    number = np.array([np.nan if step.step is None else float(step.step) for step in rows], dtype=np.float64)
    return _table(
        "step_trace_time",
        {
            "Device_id": _device(trace, len(rows)),
            "Step": number,
            "Computing": column("computing"),
            "Communication(Not Overlapped)": exposed,
            "Overlapped": column("overlapped"),
            "Communication": column("communication"),
            "Free": column("free"),
            "Stage": column("stage"),
            "Bubble": bubble,
            "Communication(Not Overlapped and Exclude Receive)": np.maximum(exposed - bubble, 0.0),
            "Preparing": column("preparing"),
        },
    )


def _operator_table(trace: Trace, words: StringInterner) -> RecordedTable:
    """Returns operator_details: one row per operator call with its own time and that of what it launched, in µs."""
    events, flows = trace.events, trace.flows
    rows = trace.events_of(TrackKind.HOST_THREAD)
    titles = trace.strings.texts(events.name[rows])
    rows = rows[[not title.startswith("ProfilerStep#") for title in titles]] if len(rows) else rows
    arrows = np.flatnonzero(flows.kind == words.intern("async_npu"))
    source, target = flows.source[arrows], flows.target[arrows]
    device_ns, core_ns = (np.zeros(len(events), dtype=np.int64) for _ in range(2))
    np.add.at(device_ns, source, events.duration_ns[target])
    on_core = np.isin(events.category[target], [words.intern(word) for word in _CUBE_CORES])
    np.add.at(core_ns, source[on_core], events.duration_ns[target[on_core]])
    host, device, core = (_us(column[rows]) for column in (events.duration_ns, device_ns, core_ns))
    return _table(
        "operator_details",
        {
            "Name": events.name[rows],
            "Input Shapes": np.full(len(rows), ABSENT, dtype=np.int32),
            "Host Self Duration(us)": host,
            "Host Total Duration(us)": host,
            "Device Self Duration(us)": device,
            "Device Total Duration(us)": device,
            "Device Self Duration With AICore(us)": core,
            "Device Total Duration With AICore(us)": core,
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Grouped:
    """Durations of one group each, µs, shape (groups,); ``first`` is a member of each."""

    first: Int64Array
    count: Float64Array
    total: Float64Array
    least: Float64Array
    most: Float64Array
    variance: Float64Array


def _grouped(keys: Int64Array, duration_ns: Int64Array) -> _Grouped:
    """Returns sums, extremes and variances per distinct key, the largest sum first."""
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    time = _us(duration_ns)
    total = np.bincount(inverse, weights=time, minlength=len(first))
    least, most = np.full(len(first), np.inf), np.zeros(len(first))
    np.minimum.at(least, inverse, time)
    np.maximum.at(most, inverse, time)
    mean = total / np.maximum(counts, 1)
    variance = np.bincount(inverse, weights=(time - mean[inverse]) ** 2, minlength=len(first)) / np.maximum(counts, 1)
    order = np.argsort(-total, kind="stable")
    columns = (first.astype(np.int64), counts.astype(np.float64), total, least, most, variance)
    return _Grouped(*(column[order] for column in columns))  # type: ignore[arg-type]  # one column per field


def _kernel_statistic(trace: Trace, _: StringInterner) -> RecordedTable:
    """Returns op_statistic: kernels by type and core."""
    kernels = trace.kernels
    keys = (kernels.op_type.astype(np.int64) << 32) | (kernels.core_type.astype(np.int64) + 1)
    groups = _grouped(keys, trace.events.duration_ns[kernels.event])
    whole = groups.total.sum()
    return _table(
        "op_statistic",
        {
            "Device_id": _device(trace, len(groups.first)),
            "OP Type": kernels.op_type[groups.first],
            "Core Type": kernels.core_type[groups.first],
            "Count": groups.count,
            "Total Time(us)": groups.total,
            "Min Time(us)": groups.least,
            "Avg Time(us)": groups.total / groups.count,
            "Max Time(us)": groups.most,
            "Ratio(%)": 100 * groups.total / whole if whole else groups.total,
        },
    )


def _call_statistic(trace: Trace, words: StringInterner) -> RecordedTable:
    """Returns api_statistic: calls into CANN by level and name."""
    rows = trace.events_of(TrackKind.CANN_THREAD)
    groups = _grouped(trace.events.name[rows].astype(np.int64), trace.events.duration_ns[rows])
    titles = trace.strings.texts(trace.events.name[rows[groups.first]])
    levels, _, names = zip(*(title.partition("@") for title in titles), strict=True) if titles else ((), (), ())
    return _table(
        "api_statistic",
        {
            "Device_id": _device(trace, len(titles)),
            "Level": words.intern_all([_LEVELS.get(level, level.lower()) for level in levels]),
            "API Name": words.intern_all(names),
            "Time(us)": groups.total,
            "Count": groups.count,
            "Avg(us)": groups.total / groups.count,
            "Min(us)": groups.least,
            "Max(us)": groups.most,
            "Variance": groups.variance,
        },
    )
