"""Operators that run on the wrong cores, in the wrong precision, or on shapes the cores do not like."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.advisor.examination import Examination
from engine.advisor.findings import WORTH_RATIO, Action, Category, Evidence, Finding, Severity, Toggle, Unit
from engine.advisor.rules.rule import Rule, danger, loss
from engine.analyses.device import device_work
from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.core.errors import MissingDataError
from engine.core.number_format import format_count, format_duration_ns, format_ratio
from engine.devices.spec import DType
from engine.optimizations.interface import Switch
from engine.trace.intervals import covered_ns
from engine.trace.tables import CounterSeries
from engine.trace.trace import TimeRange, Trace

_LISTED_EVENTS = 12
_AI_CPU_RATIO = 0.002
"""AI CPU tasks are few and slow: a five-hundredth of the step is worth a look; a choice."""
ALIGNMENT_BYTES = 512
"""Rows of matrices should be multiples of it: what msprof-analyze's advisor checks for cube operators (256 elements of
two bytes) and for communication."""
_MATMULS = ("MatMul", "BatchMatMul", "Mm", "Gemm", "GroupedMatmul")
_BYTES = {"FLOAT": 4, "DT_FLOAT": 4, "FLOAT16": 2, "DT_FLOAT16": 2, "DT_BF16": 2, "BF16": 2, "BFLOAT16": 2}
_SINGLE = frozenset({"FLOAT", "DT_FLOAT", "FLOAT32"})
_UNALIGNED_RATIO = 0.05
"""Of the step: only a part of these products' time is lost, so less is not worth a sentence; a choice."""
_VOCABULARY = 30_000
"""Rows of so many elements that are not aligned are a vocabulary: widths of layers that large are rounded; a choice."""
_FREQUENCY_RATIO = 0.05
"""A loss of AI Core frequency that msprof-analyze's advisor warns at."""


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Chosen kernels of a rank: rows of its kernel table, and their time per step."""

    rank: int
    rows: Int64Array
    total_ns: float


def ai_cpu(examination: Examination) -> Sequence[Finding]:
    """Returns operators that run on AI CPUs."""
    tasks = _most(examination, lambda trace: _texts_in(trace.kernels.core_type, trace, lambda text: "AI_CPU" in text))
    if tasks is None or examination.share(tasks.total_ns) < _AI_CPU_RATIO:
        return ()
    trace = examination.trace(tasks.rank)
    names = _names(trace, tasks.rows)
    action = Action(
        id="computing.no_ai_cpu",
        title=f"Move {names} from AI CPUs to AI cores",
        how_to_apply=(
            Switch(
                "torch_npu",
                "",
                "cast double to float and int64 to int32 before these operators, or use an operator AI cores have",
                "msprof-analyze advisor, AICPU (types per CANN version)",
            ),
        ),
        estimate=None,
        risk="narrower types: check ranges and accuracy",
        undo="remove the casts",
        verify="device time of AI_CPU tasks, after 2 warm steps",
    )
    return [
        loss(
            examination,
            "computing.ai_cpu",
            Category.COMPUTE,
            f"{names} run on AI CPUs of rank {tasks.rank}: {format_duration_ns(tasks.total_ns)} per step",
            "AI cores have no kernel for these operators with these types",
            tasks.total_ns,
            (_evidence(examination, tasks, "device time on AI CPUs"),),
            (action,),
        )
    ]


def single_precision(examination: Examination) -> Sequence[Finding]:
    """Returns matrix products in single precision."""
    scenario = examination.scenario
    if scenario is not None:
        # Simulated kernels have no types of their own: they are the model's, unless mixed precision is on.
        if scenario.model.dtype is not DType.FP32 or scenario.enabled("precision.mixed"):
            return ()
        tasks = _most(examination, _is_matmul)
    else:
        tasks = _most(examination, lambda trace: _is_matmul(trace) & _has_type(trace, _SINGLE), typed=True)
    if tasks is None or examination.share(tasks.total_ns) < WORTH_RATIO:
        return ()
    return [
        loss(
            examination,
            "computing.single_precision",
            Category.COMPUTE,
            f"Matrix products run in FP32 on rank {tasks.rank}: {format_duration_ns(tasks.total_ns)} per step",
            "cube cores multiply 16-bit numbers several times faster",
            tasks.total_ns,
            (_evidence(examination, tasks, "device time of FP32 matrix products"),),
            (Toggle("precision.mixed"),),
        )
    ]


def unaligned_shapes(examination: Examination) -> Sequence[Finding]:
    """Returns matrix products whose rows are no multiple of 512 bytes."""
    tasks = _most(examination, _is_unaligned, typed=True)
    if tasks is None or examination.share(tasks.total_ns) < _UNALIGNED_RATIO:
        return ()
    trace = examination.trace(tasks.rank)
    widths = sorted({width for row in tasks.rows.tolist() for width in _unaligned_widths(trace, row)}, reverse=True)
    listed = ", ".join(map(str, widths[:4]))
    vocabulary = any(width >= _VOCABULARY for width in widths)
    action = Action(
        id="computing.aligned_shapes",
        title="Pad the vocabulary" if vocabulary else "Pad the inner dimensions of these matrices",
        how_to_apply=(
            Switch(
                "Megatron-LM / MindSpeed-LLM" if vocabulary else "any",
                "",
                "--make-vocab-size-divisible-by 256" if vocabulary else "choose hidden sizes that are multiples of 256",
                "Megatron-LM arguments" if vocabulary else "msprof-analyze advisor, AI Core performance",
                "checkpoints hold the padded size" if vocabulary else "",
            ),
        ),
        estimate=None,
        risk="a little more memory; checkpoints change shape",
        undo="restore the former sizes",
        verify="device time of these matrix products, after 2 warm steps",
    )
    return [
        danger(
            "computing.unaligned_shapes",
            Category.COMPUTE,
            f"Matrix products of rank {tasks.rank} with rows of {listed} elements take "
            f"{format_duration_ns(tasks.total_ns)} per step; these are no multiples of {ALIGNMENT_BYTES} bytes",
            "cube cores fetch aligned rows faster; how much is lost depends on the kernel",
            (_evidence(examination, tasks, "device time of unaligned matrix products"),),
            (action,),
            severity=Severity.LOW,
        )
    ]


def frequency(examination: Examination) -> Sequence[Finding]:
    """Returns a rank whose AI cores ran below their highest frequency while they worked."""
    found: dict[int, tuple[float, float, float]] = {}
    for entry in examination.with_kernels():
        trace = examination.trace(entry.rank)
        for series in trace.counters:
            if "freq" in series.name.lower() and len(series) >= 1:
                found[entry.rank] = _mean_while_busy(trace, series)
    if not found:
        raise MissingDataError("samples of the AI Core frequency", "record at level 1 or more with hardware sampling")
    highest = max(maximum for _, maximum, _ in found.values())
    rank = min(found, key=lambda each: found[each][0])
    mean, _, busy_ns = found[rank]
    lost_ratio = 1 - mean / highest if highest else 0.0
    if lost_ratio <= _FREQUENCY_RATIO:
        return ()
    cost_ns = busy_ns / examination.windows[rank].step_count * lost_ratio
    action = Action(
        id="computing.frequency",
        title=f"Check power limit and cooling of rank {rank}'s device",
        how_to_apply=(Switch("driver", "", "npu-smi info (temperature, power)", "npu-smi reference"),),
        estimate=None,
        risk="none",
        undo="nothing to undo",
        verify="the frequency counter over a minute of training",
    )
    return [
        loss(
            examination,
            "computing.frequency",
            Category.COMPUTE,
            f"AI cores of rank {rank} run at {mean:,.0f} MHz on average, "
            f"{format_ratio(lost_ratio)} below {highest:,.0f} MHz",
            "temperature or the power limit throttles the device",
            cost_ns,
            (
                Evidence(
                    "loss of frequency", lost_ratio, Unit.RATIO, _FREQUENCY_RATIO, rank, how="mean while computing"
                ),
                Evidence("time it costs", cost_ns, Unit.NS, rank=rank, how="computing per step × loss"),
            ),
            (action,),
        )
    ]


def _mean_while_busy(trace: Trace, series: CounterSeries) -> tuple[float, float, float]:
    """Returns mean frequency over computing, the highest one, and computing time; a sample holds until the next."""
    until_ns = np.append(series.time_ns[1:], max(int(trace.time_range.end_ns), int(series.time_ns[-1])))
    computing = device_work(trace).computing
    weight = covered_ns(computing, series.time_ns, until_ns).astype(np.float64)
    mean = float(np.average(series.value, weights=weight)) if weight.sum() > 0 else float(series.value.max())
    return mean, float(series.value.max()), float(computing.total_ns)


def _most(examination: Examination, choose: Callable[[Trace], BoolArray], *, typed: bool = False) -> _Tasks | None:
    """Returns the chosen kernels of the rank with most of their time.

    Raises:
        MissingDataError: No rank describes its kernels; where ``typed``, none says their types and shapes.
    """
    best, described = None, False
    for entry in examination.with_kernels():
        trace = examination.trace(entry.rank)
        if len(trace.kernels) == 0 or not bool(np.any(trace.kernels.core_type >= 0)):
            continue
        if typed and not bool(np.any(trace.kernels.input_types >= 0)):
            continue
        described = True
        rows = np.flatnonzero(choose(trace) & (trace.kernels.event >= 0))
        events = trace.kernels.event[rows]
        total_ns = examination.per_step(entry.rank, trace.events.start_ns[events], trace.events.duration_ns[events])
        if best is None or total_ns > best.total_ns:
            best = _Tasks(entry.rank, rows, total_ns)
    if not described:
        raise MissingDataError("types and cores of kernels", "record at level 1 or more")
    return best


def _texts_in(column: Int32Array, trace: Trace, wanted: Callable[[str], bool]) -> BoolArray:
    """Returns whether each row's text is wanted, bool; decided per distinct text."""
    distinct, inverse = np.unique(column, return_inverse=True)
    verdicts = [wanted(trace.strings.text(index)) if index >= 0 else False for index in distinct.tolist()]
    answer: BoolArray = np.array(verdicts, dtype=np.bool_)[inverse]
    return answer


def _is_matmul(trace: Trace) -> BoolArray:
    return _texts_in(trace.kernels.op_type, trace, lambda text: text.startswith(_MATMULS))


def _has_type(trace: Trace, types: frozenset[str]) -> BoolArray:
    return _texts_in(
        trace.kernels.input_types, trace, lambda text: text.replace('"', "").split(";")[0].strip() in types
    )


def _is_unaligned(trace: Trace) -> BoolArray:
    """Returns which matrix products read a matrix whose rows are not aligned, bool, shape (kernels,)."""
    kernels = trace.kernels
    columns = (kernels.input_shapes, kernels.input_types, kernels.output_shapes, kernels.output_types)
    _, first, inverse = np.unique(np.stack(columns), axis=1, return_index=True, return_inverse=True)
    verdicts = np.array([bool(_unaligned_widths(trace, row)) for row in first.tolist()], dtype=np.bool_)
    answer: BoolArray = verdicts[inverse.reshape(-1)] & _is_matmul(trace)
    return answer


def _unaligned_widths(trace: Trace, row: int) -> tuple[int, ...]:
    """Returns the widths of a kernel's first two inputs and its output that are no multiple of 512 bytes."""
    kernels = trace.kernels
    inputs = _parts(trace, kernels.input_shapes[row], kernels.input_types[row])[:2]
    widths = []
    for matrix, name in (*inputs, *_parts(trace, kernels.output_shapes[row], kernels.output_types[row])[:1]):
        sizes = [part for part in matrix.split(",") if part.strip().isdecimal()]
        size_bytes = _BYTES.get(name)
        if len(sizes) < 2 or size_bytes is None:
            continue
        width = int(sizes[-1])
        if width * size_bytes % ALIGNMENT_BYTES and width * size_bytes > ALIGNMENT_BYTES:
            widths.append(width)
    return tuple(widths)


def _parts(trace: Trace, shapes: np.int32, types: np.int32) -> list[tuple[str, str]]:
    """Returns shape and type of each tensor of one side of a kernel, [] where they are not recorded."""
    if shapes < 0 or types < 0:
        return []
    listed = trace.strings.text(int(shapes)).replace('"', "").split(";")
    names = [name.strip().upper() for name in trace.strings.text(int(types)).replace('"', "").split(";")]
    return list(zip(listed, names, strict=False))


def _names(trace: Trace, rows: Int64Array) -> str:
    ids, how_many = np.unique(trace.kernels.op_type[rows], return_counts=True)
    counts = {
        trace.strings.text(int(index)): int(count) for index, count in zip(ids, how_many, strict=True) if index >= 0
    }
    ordered = sorted(counts, key=lambda name: -counts[name])
    return ", ".join(f"{name} ({format_count(counts[name])})" for name in ordered[:3]) or "unnamed operators"


def _evidence(examination: Examination, tasks: _Tasks, what: str) -> Evidence:
    trace = examination.trace(tasks.rank)
    events = trace.kernels.event[tasks.rows]
    order = np.argsort(-trace.events.duration_ns[events], kind="stable")[:_LISTED_EVENTS]
    longest = events[order]
    first = int(longest[0])
    start_ns = int(trace.events.start_ns[first])
    where = TimeRange(start_ns, start_ns + int(trace.events.duration_ns[first]))
    return Evidence(
        what,
        tasks.total_ns,
        Unit.NS,
        rank=tasks.rank,
        range=where,
        events=tuple(longest.tolist()),
        how=f"{format_count(len(tasks.rows))} kernels of the capture, time per step; the range is the longest one",
    )


RULES = (
    Rule("computing.ai_cpu", "Operators on AI CPUs", ai_cpu, ascend_only=True),
    Rule("computing.single_precision", "Matrix products in single precision", single_precision, ascend_only=True),
    Rule("computing.unaligned_shapes", "Matrices whose rows are not aligned", unaligned_shapes, ascend_only=True),
    Rule("computing.frequency", "AI Core frequency", frequency, ascend_only=True),
)
