"""A served run as a trace: requests as rows, the engine's iterations, the device, and what fills up over time.

One device is recorded; the others of its tensor group do the same. Operators are kept for the iterations that
``run.profile_steps`` numbers; every other iteration is one task on the device, as long as all its operators together.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from engine.analyses.serving.recorded import served_tables
from engine.analyses.serving.tables import PhaseKind, RequestStatus
from engine.core.arrays import Int32Array, Int64Array
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.runtime.recorder.settings import EPOCH_NS, SOFTWARE
from engine.trace.builder import TraceBuilder
from engine.trace.job import Job, align
from engine.trace.tables import INSTANT, CounterSeries
from engine.trace.trace import Origin, Source, TraceMetadata
from engine.trace.tracks import Track, TrackKind
from engine.workloads.serving.iteration_detail import EngineLane, add_device
from engine.workloads.serving.simulate import ServingResult

_ENGINE_PID, _REQUESTS_PID, _SERVICE_PID = "100000", "200000", "300000"
_PHASE_WORDS = {
    PhaseKind.QUEUED: "queued",
    PhaseKind.PREFILL: "prefill",
    PhaseKind.DECODE: "decode",
    PhaseKind.PREEMPTED: "preempted",
}
_END_WORDS = {
    RequestStatus.REJECTED: "refused: the queue was full",
    RequestStatus.TOO_LONG: "refused: its keys and values can never fit",
    RequestStatus.TIMED_OUT: "timed out",
}
_COUNTERS = {
    "Sequences in the batch": "running",
    "Requests waiting": "waiting",
    "KV blocks held": "kv_blocks",
    "KV blocks of the prefix cache": "cached_blocks",
}


def record_service(
    result: ServingResult, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> Job:
    """Returns the trace of one device of a service, with the run as tables.

    Args:
        result: The run.
        progress: Told what is written.
        cancel: Looked at between parts.

    Raises:
        OperationCancelled: Cancelled.
    """
    builder = TraceBuilder()
    epoch_ns = EPOCH_NS + result.scenario.seed * 10**9
    engine = add_engine(builder, result, epoch_ns)
    progress(0.2, "the device")
    cancel.check()
    add_device(builder, result, epoch_ns, profiled_iterations(result), engine)
    progress(0.5, "the requests")
    cancel.check()
    add_requests(builder, result, epoch_ns)
    _add_counters(builder, result, epoch_ns)
    settings = result.settings
    builder.tables.update(served_tables(result.run, settings.slo_ttft_ns, settings.slo_tpot_ns))
    trace = builder.build(
        origin=Origin.SIMULATED,
        source=Source("simulated", "", ()),
        metadata=_metadata(result),
        clock_is_unix=True,
    )
    progress(1.0, "recorded")
    return align("", [trace])


def _metadata(result: ServingResult) -> TraceMetadata:
    scenario = result.scenario
    device = scenario.device
    parallel = scenario.parallel
    return TraceMetadata(
        rank=0,
        world_size=parallel.tensor,
        device="NPU 0",
        device_count=1,
        device_memory_bytes=device.hbm_usable_bytes,
        host="simulated",
        profiler_level="Level1",
        software={"torch_npu_version": SOFTWARE, "cann_version": SOFTWARE},
        parallel_sizes={"tensor_model_parallel_size": parallel.tensor, "expert_model_parallel_size": parallel.expert},
        extra={
            "cannscope": {
                "origin": "simulated",
                "seed": scenario.seed,
                "device": device.soc_names[0] if device.soc_names else device.title,
                "scenario": scenario.name,
                "model": scenario.model.id,
            },
            "config": {"experimental_config": {"_profiler_level": "Level1", "_export_type": ["text"]}},
        },
    )


def add_engine(builder: TraceBuilder, result: ServingResult, epoch_ns: int) -> EngineLane:
    """Adds the engine's thread: one slice per iteration, and a profiler step around each that keeps its operators.

    Args:
        builder: Receives it.
        result: The run.
        epoch_ns: Absolute time of the start of the service.
    """
    steps = result.run.iterations
    header = builder.add_track(Track(TrackKind.PROCESS, "Python", process_id=_ENGINE_PID))
    lane = builder.add_track(
        Track(TrackKind.HOST_THREAD, "Engine", parent=header, process_id=_ENGINE_PID, thread_id=_ENGINE_PID)
    )
    kinds = np.where(steps.prefill_tokens > 0, np.where(steps.decode_sequences > 0, 2, 0), 1)
    words = builder.strings.intern_all(["iteration: prompts", "iteration: answers", "iteration: prompts and answers"])
    category = builder.strings.intern("cpu_op")
    profiled = profiled_iterations(result)
    builder.add_events(
        start_ns=steps.start_ns[profiled] + epoch_ns,
        duration_ns=(steps.end_ns - steps.start_ns)[profiled],
        track=lane,
        name=builder.strings.intern_all([f"ProfilerStep#{number}" for number in profiled.tolist()]),
        category=category,
    )
    first = builder.add_events(
        start_ns=steps.start_ns + epoch_ns,
        duration_ns=steps.end_ns - steps.start_ns,
        track=lane,
        name=words[kinds],
        category=category,
    )
    return EngineLane(lane, first)


def profiled_iterations(result: ServingResult) -> Int64Array:
    """Returns the iterations whose operators are kept, ascending, int64: those of ``run.profile_steps`` there are."""
    asked = np.unique(np.array(result.scenario.run.profile_steps, dtype=np.int64))
    return asked[(asked >= 0) & (asked < len(result.run.iterations))]


@dataclass(frozen=True, slots=True, eq=False)
class _Lanes:
    """Requests packed into rows.

    Attributes:
        lane: int32, shape (requests,).
        count: How many rows.
    """

    lane: Int32Array
    count: int


def _packed(begin_ns: Int64Array, end_ns: Int64Array) -> _Lanes:
    """Returns the lowest free row for each request, in order of arrival. A loop over requests, once per recording."""
    lane = np.zeros(len(begin_ns), dtype=np.int32)
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for request in np.argsort(begin_ns, kind="stable").tolist():
        now = int(begin_ns[request])
        while busy and busy[0][0] <= now:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            place = heapq.heappop(free)
        else:
            place, count = count, count + 1
        lane[request] = place
        heapq.heappush(busy, (max(int(end_ns[request]), now + 1), place))
    return _Lanes(lane, count)


def add_requests(builder: TraceBuilder, result: ServingResult, epoch_ns: int) -> None:
    """Adds requests as slices on packed rows, with what each was doing inside; those refused are a moment."""
    requests, phases = result.run.requests, result.run.phases
    begin_ns = requests.arrival_ns
    end_ns = np.maximum(requests.last_token_ns, begin_ns)
    np.maximum.at(end_ns, phases.request, phases.end_ns)
    rows = _packed(begin_ns, end_ns)
    header = builder.add_track(Track(TrackKind.PROCESS, "Requests", sort_key=1, process_id=_REQUESTS_PID))
    tracks = np.array(
        [
            builder.add_track(
                Track(
                    TrackKind.OTHER,
                    f"Requests {row}",
                    parent=header,
                    sort_key=row,
                    process_id=_REQUESTS_PID,
                    thread_id=str(row),
                )
            )
            for row in range(rows.count)
        ],
        dtype=np.int32,
    )
    lane = tracks[rows.lane]
    # One name per request: who it is and how long its prompt and answer are.
    names = [
        f"request {number}: {prompt:,} + {answer:,} tokens"
        for number, (prompt, answer) in enumerate(
            zip(requests.prompt_tokens.tolist(), requests.output_tokens.tolist(), strict=True)
        )
    ]
    served = end_ns > begin_ns
    builder.add_events(
        start_ns=begin_ns[served] + epoch_ns,
        duration_ns=(end_ns - begin_ns)[served],
        track=lane[served],
        name=builder.strings.intern_all(names)[served],
        category=builder.strings.intern("request"),
    )
    words = builder.strings.intern_all([_PHASE_WORDS[kind] for kind in PhaseKind])
    builder.add_events(
        start_ns=phases.start_ns + epoch_ns,
        duration_ns=phases.end_ns - phases.start_ns,
        track=lane[phases.request],
        name=words[phases.kind],
        category=builder.strings.intern("phase"),
    )
    for status, word in _END_WORDS.items():  # three ways to end unanswered
        lost = np.flatnonzero(requests.status == status)
        builder.add_events(
            start_ns=end_ns[lost] + epoch_ns,
            duration_ns=np.zeros(len(lost), dtype=np.int64),
            track=lane[lost],
            name=builder.strings.intern(word),
            category=builder.strings.intern("request"),
            flags=int(INSTANT),
        )


def _add_counters(builder: TraceBuilder, result: ServingResult, epoch_ns: int) -> None:
    steps = result.run.iterations
    header = builder.add_track(Track(TrackKind.PROCESS, "Service", sort_key=2, process_id=_SERVICE_PID))
    for place, (title, column) in enumerate(_COUNTERS.items()):
        track = builder.add_track(
            Track(TrackKind.COUNTER, title, parent=header, sort_key=place, process_id=_SERVICE_PID)
        )
        values = getattr(steps, column).astype(np.float64)
        builder.counters.append(CounterSeries(track, title, "", steps.start_ns + epoch_ns, values))
