"""What stands around a framework operator on the host: its module, its phase, the user's line of code."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.arrays import BoolArray, Int32Array, Int64Array
from engine.trace.strings import ABSENT
from engine.trace.trace import Trace

FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION = "forward", "backward", "optimizer", "communication"
MODULE_PREFIX = "nn.Module: "
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|^torch::autograd::AccumulateGrad$|^\w+Backward\d*$")
"""Captures of 2021 have no ``evaluate_function`` around the node (``CudnnBatchNormBackward``)."""
_OPTIMIZER = re.compile(r"^Optimizer\.(?:step|zero_grad)#|^## optimizer ##$|^\[\w*\|?optimizer")
_COMMUNICATION = re.compile(r"^c10d::|^record_param_comms$|^torch[.:]+distributed|^nccl:|^Hccl[A-Z]")
_FRAME = re.compile(r"^[^<].*\.py\(\d+\): ")
_LIBRARY = re.compile(
    r"(?:^|/)(?:torch|torch_npu|megatron/core/tensor_parallel|contextlib|threading|multiprocessing|runpy|functools)"
    r"(?:/|\.py\()|^<"
)
_MAX_STACKS = 2_000
"""Call stacks are decoded from the source one by one; the operators with the most device time get theirs."""


@dataclass(frozen=True, slots=True, eq=False)
class HostContext:
    """The surroundings of device tasks. Columns of shape (tasks,).

    Attributes:
        module: int32 event row of the innermost module, or −1; of the forward operator for backward tasks.
        phase: int8 index into ``PHASES``; 0 where unknown.
        origin: int32 event row of the operator that wrote the task in the user's program (the forward operator of a
            backward one), or −1.
    """

    module: Int32Array
    phase: Int64Array
    origin: Int32Array


PHASES = ("", FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION)


def host_context(trace: Trace, operator: Int32Array) -> HostContext:
    """Returns the surroundings of the operators (int32 event rows, −1 where unknown)."""
    backward_from = _innermost(trace, _flow_targets(trace))[operator]
    origin = operator.copy()
    linked = (operator >= 0) & (backward_from >= 0)
    origin[linked] = _flow_sources(trace)[backward_from[linked]]
    module = np.where(origin >= 0, _innermost(trace, _named(trace, _is_module))[origin], np.int32(ABSENT))
    phase = np.zeros(len(operator), dtype=np.int64)
    known = operator >= 0

    def inside(test: Callable[[str], object]) -> BoolArray:
        answer: BoolArray = known & (_innermost(trace, _named(trace, test))[operator] >= 0)
        return answer

    backward = linked | inside(_BACKWARD.match)
    phase[known & (module >= 0)] = PHASES.index(FORWARD)
    phase[known & _is_flow_source(trace)[operator]] = PHASES.index(FORWARD)
    optimizer, exchange = inside(_OPTIMIZER.match), inside(_COMMUNICATION.match)
    if np.any(backward) and np.any(_named(trace, _OPTIMIZER.match)):
        # The capture marks both, so what a framework operator does outside them is the forward pass and the loss.
        phase[known] = PHASES.index(FORWARD)
    phase[backward] = PHASES.index(BACKWARD)
    phase[optimizer] = PHASES.index(OPTIMIZER)
    phase[exchange] = PHASES.index(COMMUNICATION)
    return HostContext(module, phase, origin)


def module_paths(trace: Trace, module: Int32Array) -> list[str]:
    """Returns the path of each module event (``"Model_0/Layer_3/Linear_7"``), "" for −1; each event is named once."""
    enclosing = _innermost(trace, _named(trace, _is_module))
    paths: dict[int, str] = {ABSENT: ""}

    def path_of(event: int) -> str:
        chain = []
        while event not in paths:
            chain.append(event)
            parent = int(trace.events.parent[event])
            event = int(enclosing[parent]) if parent >= 0 else ABSENT
        path = paths[event]
        for inner in reversed(chain):
            name = trace.name(inner).removeprefix(MODULE_PREFIX)
            path = f"{path}/{name}" if path else name
            paths[inner] = path
        return path

    distinct, inverse = np.unique(module, return_inverse=True)
    named = [path_of(event) for event in distinct.tolist()]
    return [named[index] for index in inverse.tolist()]


def source_lines(trace: Trace, origin: Int32Array, duration_ns: Int64Array) -> list[str]:
    """Returns the innermost line of the user's own code around each operator, "" where the capture has none.

    Python frames on the timeline decide; else the call stack in the operator's arguments, read for the 2,000 operators
    with the most device time.
    """
    distinct, inverse = np.unique(origin, return_inverse=True)
    frame = _innermost(trace, _named(trace, _is_user_frame))
    lines = [_shortened(trace.name(row)) if row >= 0 else "" for row in frame[distinct].tolist()]
    if not any(lines) and trace.argument_decoder is not None:
        time_ns = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(time_ns, inverse, duration_ns)
        for index in np.argsort(-time_ns, kind="stable")[:_MAX_STACKS].tolist():
            if distinct[index] >= 0:
                lines[index] = _line_of_stack(trace.arguments(int(distinct[index])).get("Call stack"))
    return [lines[index] for index in inverse.tolist()]


def _line_of_stack(stack: object) -> str:
    frames = re.split(r";\s*", stack) if isinstance(stack, str) else []
    return next((_shortened(frame) for frame in frames if _is_user_frame(frame)), "")


def _is_user_frame(name: str) -> bool:
    return _FRAME.match(name) is not None and _LIBRARY.search(_shortened(name)) is None


def _shortened(frame: str) -> str:
    """Returns a frame without the place where packages are installed."""
    return frame.rpartition("site-packages/")[2]


def _is_module(name: str) -> bool:
    return name.startswith(MODULE_PREFIX)


def _named(trace: Trace, test: Callable[[str], object]) -> BoolArray:
    """Returns whether each event's name passes the test, bool, shape (events,); asked once per distinct name."""
    names = trace.events.name
    distinct = np.unique(names)
    verdicts = np.zeros(len(trace.strings) + 1, dtype=np.bool_)
    verdicts[distinct] = [bool(test(trace.strings.text(text))) for text in distinct.tolist()]
    answer: BoolArray = verdicts[names]
    return answer


def _innermost(trace: Trace, wanted: BoolArray) -> Int32Array:
    """Returns the innermost wanted slice around each event (itself included) or −1; int32, shape (events + 1,).

    The extra last entry makes −1 answer −1. Every turn doubles the levels looked through.
    """
    count = len(trace.events)
    nearest = np.full(count + 1, count, dtype=np.int32)
    parent = trace.events.parent
    nearest[:count] = np.where(wanted, np.arange(count, dtype=np.int32), np.where(parent >= 0, parent, count))
    while True:
        further = nearest[nearest]
        if np.array_equal(further, nearest):
            break
        nearest = further
    found = np.zeros(count + 1, dtype=np.bool_)
    found[:count] = wanted
    answer: Int32Array = np.where(found[nearest], nearest, np.int32(ABSENT))
    return answer


def _forward_flows(trace: Trace) -> tuple[Int32Array, Int32Array]:
    """Returns source and target of the arrows from forward operators to their backward ones."""
    kind = trace.strings.id_of("fwdbwd")
    chosen = (trace.flows.kind == kind) & (trace.flows.source >= 0) & (trace.flows.target >= 0) if kind >= 0 else None
    if chosen is None:
        empty = np.empty(0, dtype=np.int32)
        return empty, empty
    return trace.flows.source[chosen], trace.flows.target[chosen]


def _flow_targets(trace: Trace) -> BoolArray:
    marks = np.zeros(len(trace.events), dtype=np.bool_)
    marks[_forward_flows(trace)[1]] = True
    return marks


def _is_flow_source(trace: Trace) -> BoolArray:
    """Returns whether each event lies in an operator that has a backward one, bool, shape (events + 1,)."""
    marks = np.zeros(len(trace.events), dtype=np.bool_)
    marks[_forward_flows(trace)[0]] = True
    answer: BoolArray = _innermost(trace, marks) >= 0
    return answer


def _flow_sources(trace: Trace) -> Int32Array:
    sources = np.full(len(trace.events), ABSENT, dtype=np.int32)
    source, target = _forward_flows(trace)
    sources[target] = source
    return sources
