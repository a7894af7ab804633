"""Traces as large as one likes, shaped like real ones, the same for the same seed. Written in a stream, never kept.

The mix of events, their keys, their order and the length of their arguments follow the captures: torch_npu's
``trace_view.json`` (level 1, call stacks) and Kineto's export (2024 and later, shapes and memory events).
"""

import random
from collections.abc import Iterator
from pathlib import Path

_BATCH = 20_000
_EPOCH_US = 1736412474714258
_FRAMES = [
    f"/usr/lib/python3.11/site-packages/{place}"
    for place in (
        "torch/nn/modules/module.py(1553): _call_impl",
        "torch/nn/modules/linear.py(116): forward",
        "torch/utils/data/dataloader.py(630): __next__",
        "torch/autograd/__init__.py(251): backward",
        "megatron/core/transformer/transformer_block.py(372): forward",
        "megatron/core/transformer/attention.py(291): forward",
        "megatron/core/optimizer/distrib_optimizer.py(1422): step",
        "torch_npu/optim/npu_fused_adamw.py(245): step",
    )
]
_OPERATORS = ("aten::linear", "aten::matmul", "aten::mm", "aten::add_", "aten::mul", "aten::copy_", "aten::empty")
_KERNELS = ("aclnnMatmul_MatMulCommon_MatMulV2", "aclnnAdd_AddAiCore_Add", "RmsNorm", "FlashAttentionScore")
_TASKS = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC")
_DEVICE_PID, _CANN_PID, _COUNTER_PID = 3254508960, 3254508768, 3254509152

_OPERATOR = (
    '{"ph": "X", "name": "%s", "pid": 2001, "tid": 2001, "ts": "%s", "dur": %.2f, "cat": "cpu_op", "args": '
    '{"Sequence number": %d, "Fwd thread id": 0, "Input Dims": "4096,%d;\\r\\n1024,3072", '
    '"Input type": "c10::BFloat16;\\r\\nc10::BFloat16"%s}}'
)
_CANN = (
    f'{{"name": "%s", "pid": {_CANN_PID}, "tid": 2002, "ts": "%s", "dur": %.3f, "args": {{"Thread Id": 2002, '
    '"Mode": "launch", "level": "%s", "id": "%s", "item_id": "%s", "connection_id": %d}, "ph": "X"}'
)
_TASK = (
    f'{{"name": "%s", "pid": {_DEVICE_PID}, "tid": %d, "ts": "%s", "dur": %s, "args": {{"Model Id": 4294967295, '
    '"Task Type": "%s", "Physic Stream Id": %d, "Task Id": %d, "Batch Id": 0, "Subtask Id": 4294967295, '
    '"connection_id": %d}, "ph": "X"}'
)
_QUEUE = (
    '{"ph": "X", "name": "%s", "pid": 2001, "tid": %d, "ts": "%s", "dur": %.2f, "cat": "%s", '
    '"args": {"correlation_id": %d}}'
)
_FLOW = '{"ph": "%s", "bp": "e", "name": "%s", "id": %d, "pid": %d, "tid": %d, "ts": "%s", "cat": "%s"}'
_TO_DEVICE = (
    '{"name": "HostToDevice%d", "ph": "%s", "cat": "HostToDevice", "id": "%d", "pid": %d, "tid": %d, "ts": "%s"%s}'
)
_COUNTER = f'{{"name": "%s", "pid": {_COUNTER_PID}, "tid": 0, "ts": "%s", "args": {{"%s": %.6f}}, "ph": "C"}}'
_NAMED = '{"name": "process_name", "pid": %d, "tid": 0, "args": {"name": "%s"}, "ph": "M"}'

_KINETO_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "GPU", "totalGlobalMem": 85899345920}
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "traceEvents": [
"""
_KINETO_TAIL = """
  ],
  "traceName": "trace.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1736408916000000000
}
"""
_KINETO_NAMED = """  {
    "name": "%s", "ph": "M", "ts": 3558714258.990, "pid": %d, "tid": 0,
    "args": {
      "%s": "%s"
    }
  }"""
_KINETO_OPERATOR = """  {
    "ph": "X", "cat": "cpu_op", "name": "%s", "pid": 2001, "tid": 2001,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d,"Record function id": 0, "Concrete Inputs": ["", "", "1"], \
"Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"], "Input Dims": [[4096, %d], [1024, 3072], []], "Ev Idx": %d
    }
  }"""
_KINETO_MEMORY = """  {
    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
    "pid": 2001, "tid": 2001,
    "ts": %s,
    "args": {
      "Total Reserved": 4294967296, "Total Allocated": %d, "Bytes": %d, "Addr": %d, "Device Id": 0, "Device Type": 1
    }
  }"""
_KINETO_LAUNCH = """  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 2001, "tid": 2001,
    "ts": %s, "dur": 4.250,
    "args": {
      "External id": %d, "cbid": 211, "correlation": %d
    }
  }"""
_KINETO_KERNEL = """  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<%d, AddFunctor<float> >", \
"pid": 0, "tid": %d,
    "ts": %s, "dur": %s,
    "args": {
      "External id": %d, "queued": 0, "device": 0, "context": 1,
      "stream": %d, "correlation": %d,
      "registers per thread": 16, "shared memory": 0, "blocks per SM": 135.515152, "warps per SM": 542.060608,
      "grid": [17888, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %%": 100
    }
  }"""
_KINETO_FLOW = """  {
    "ph": "%s", "id": %d, "pid": %d, "tid": %d, "ts": %s,
    "cat": "ac2g", "name": "ac2g"%s
  }"""


def write_ascend_trace(path: Path, event_count: int, seed: int = 0) -> None:
    """Writes a ``trace_view.json`` of ``event_count`` events: 62 % slices, 35 % flow ends, 3 % counters."""
    _write(path, "[", ", ", "]", _ascend_events(_random(seed)), event_count)


def write_kineto_trace(path: Path, event_count: int, seed: int = 0) -> None:
    """Writes a Kineto trace of ``event_count`` events: operators, launches, kernels, flows, memory instants."""
    _write(path, _KINETO_HEAD, ",\n", _KINETO_TAIL, _kineto_events(_random(seed)), event_count)


def _random(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - has to be repeatable, not secret


def _write(path: Path, head: str, separator: str, tail: str, events: Iterator[str], event_count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(head)
        for first in range(0, event_count, _BATCH):
            batch = separator.join(next(events) for _ in range(min(_BATCH, event_count - first)))
            file.write(separator + batch if first else batch)
        file.write(tail)


def _us(ns: int) -> str:
    return f"{_EPOCH_US + ns // 1000}.{ns % 1000:03d}"


def _ascend_events(rng: random.Random) -> Iterator[str]:
    """Yields units of about a hundred events: fourteen launches with everything around them."""
    for pid, name in ((2001, "Python"), (_CANN_PID, "CANN"), (_DEVICE_PID, "Ascend Hardware"), (_COUNTER_PID, "HBM")):
        yield _NAMED % (pid, name)
    now_ns, device_ns, connection = 0, 3_000_000, 1000
    while True:
        for launch in range(14):
            connection += 1
            host_ns, now_ns = now_ns, now_ns + rng.randrange(20_000, 60_000)
            length_ns = rng.randrange(2_000, 90_000)
            yield from _operators(rng, host_ns, now_ns, 2 if launch < 10 else 1)
            yield from _launch(rng, host_ns, now_ns, connection, launch)
            yield from _device_task(rng, device_ns, length_ns, connection, launch, host_ns)
            device_ns += length_ns + rng.randrange(500, 4_000)
        for name, key in (("HBM 0/Read", "Read(MB/s)"), ("HBM 0/Write", "Write(MB/s)"), ("AI Core Freq", "MHz")):
            yield _COUNTER % (name, _us(now_ns), key, rng.random() * 9000)


def _operators(rng: random.Random, start_ns: int, end_ns: int, count: int) -> Iterator[str]:
    for depth in range(count):
        with_stack = depth == 0 and rng.random() < 0.5
        stack = ', "Call stack": "' + ";\\r\\n".join(rng.sample(_FRAMES, 3)) + '"' if with_stack else ""
        begin, length_us = _us(start_ns + depth * 700), (end_ns - start_ns) / 1000 - depth * 1.5
        sizes = (start_ns % 9973, rng.randrange(1, 9) * 512)
        yield _OPERATOR % (rng.choice(_OPERATORS), begin, length_us, *sizes, stack)


def _launch(rng: random.Random, start_ns: int, end_ns: int, connection: int, launch: int) -> Iterator[str]:
    dequeue_ns = start_ns + 9_000
    launched = _us(dequeue_ns + rng.randrange(1_000, 3_000))
    flow, length_us = connection << 32, (end_ns - start_ns) / 1000
    yield _CANN % ("Node@launch", launched, rng.random() * 9, "node", "launch", rng.choice(_KERNELS), connection)
    yield _TO_DEVICE % (flow, "s", flow, _CANN_PID, 2002, launched, "")
    if launch < 2:
        api = "aclopExecuteV2"
        yield _CANN % (f"AscendCL@{api}", _us(dequeue_ns), length_us / 4, "acl", api, "0", connection)
    if launch < 4:
        yield _QUEUE % ("Enqueue", 2001, _us(start_ns + 2_000), 3.5, "enqueue", connection)
        yield _QUEUE % ("Dequeue", 2002, _us(dequeue_ns), length_us / 3, "dequeue", connection)
    if launch == 0:
        kind = ("enqueue_to_dequeue", connection, 2001)
        yield _FLOW % ("s", *kind, 2001, _us(start_ns + 2_000), "async_task_queue")
        yield _FLOW % ("f", *kind, 2002, _us(dequeue_ns), "async_task_queue")


def _device_task(
    rng: random.Random, start_ns: int, length_ns: int, connection: int, launch: int, host_ns: int
) -> Iterator[str]:
    stream, start, flow = 2 if launch % 7 else 14, _us(start_ns), connection << 32
    length_us = length_ns / 1000 + 0.03125
    task = (rng.choice(_TASKS), stream, connection % 65536, connection)
    yield _TASK % (rng.choice(_KERNELS), stream, start, length_us, *task)
    yield _TO_DEVICE % (flow, "f", flow, _DEVICE_PID, stream, start, ', "bp": "e"')
    if launch < 2 or (launch == 2 and connection % 2):
        key = _EPOCH_US * 1000 + start_ns
        yield _FLOW % ("s", "torch_to_npu", key, 2001, 2001, _us(host_ns), "async_npu")
        yield _FLOW % ("f", "torch_to_npu", key, _DEVICE_PID, stream, start, "async_npu")


def _plain_us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _kineto_events(rng: random.Random) -> Iterator[str]:
    yield _KINETO_NAMED % ("process_name", 2001, "name", "python3")
    yield _KINETO_NAMED % ("process_labels", 0, "labels", "GPU 0")
    now_ns, device_ns, correlation, allocated = 3_558_714_258_990, 3_558_714_900_000, 1000, 1 << 30
    address, held = 0x7F0000000000, 0
    while True:
        correlation += 1
        start_ns, now_ns = now_ns, now_ns + rng.randrange(20_000, 60_000)
        device_ns = max(device_ns, start_ns + 8_000)
        length_ns = rng.randrange(2_000, 90_000)
        stream, external = 7 if correlation % 9 else 20, correlation * 3
        for depth in range(3):
            begin, length = _plain_us(start_ns + depth * 700), _plain_us(now_ns - start_ns - depth * 1_500)
            number = external + depth
            sizes = (number, rng.randrange(1, 9) * 512, number)
            yield _KINETO_OPERATOR % (rng.choice(_OPERATORS), begin, length, *sizes)
        change = -held or rng.randrange(1, 4096) * 512
        held, allocated = (0 if held else change), allocated + change
        yield _KINETO_MEMORY % (_plain_us(start_ns + 2_000), allocated, change, address)
        address += 0 if held else 1 << 21
        launched, begun = _plain_us(start_ns + 5_000), _plain_us(device_ns)
        yield _KINETO_LAUNCH % (launched, external + 2, correlation)
        yield _KINETO_FLOW % ("s", correlation, 2001, 2001, launched, "")
        place = (external + 2, stream, correlation)
        yield _KINETO_KERNEL % (correlation % 3000, stream, begun, _plain_us(length_ns), *place)
        yield _KINETO_FLOW % ("f", correlation, 0, stream, begun, ', "bp": "e"')
        device_ns += length_ns + rng.randrange(500, 4_000)
