from typing import Any

import numpy as np
import pytest

from engine.analyses.fusion.call_shapes import call_sizes
from engine.analyses.fusion.kernel_sequence import kernel_sequence
from engine.trace import Trace
from tests.support.kernel_runs import Kernel, kernel_trace
from tests.support.opened import opened_trace

STREAMING = frozenset(("mul", "add", "copy", "sum"))


def with_arguments(columns: dict[str, Any]) -> Trace:
    return kernel_trace([Kernel("Mul")], columns=columns)


def sizes(word: str, shapes: list[Any], types: list[str]) -> list[int]:
    trace = with_arguments({"Input Dims": shapes, "Input type": types})
    (row,) = call_sizes(trace, np.array([0], np.int32), [word], np.array([10]), STREAMING).tolist()
    return row


def test_an_element_wise_call_reads_its_inputs_and_writes_the_largest() -> None:
    assert sizes("mul", [[4, 8], [8]], ["c10::BFloat16", "float"]) == [32, 64 + 32, 64, 64]


def test_a_copy_writes_its_first_tensor_and_a_reduction_writes_next_to_nothing() -> None:
    assert sizes("copy", [[16], [16], []], ["float", "c10::Half", "Scalar"]) == [16, 32, 32, 64]
    assert sizes("sum", [[4, 8], []], ["float", "Scalar"]) == [32, 128, 128, 0]


@pytest.mark.parametrize(
    ("shapes", "types"),
    [([[[4], [4]]], ["TensorList"]), ([[4]], ["Unheard"]), ([[4], [4]], ["float"]), ([], []), ([[]], ["Scalar"])],
)
def test_what_is_not_clear_stays_unknown(shapes: list[Any], types: list[str]) -> None:
    assert sizes("mul", shapes, types) == [-1] * 4


def test_only_streaming_kernels_with_a_call_are_read() -> None:
    trace = with_arguments({"Input Dims": [[4]], "Input type": ["float"]})
    operator = np.array([0, -1], np.int32)
    found = call_sizes(trace, operator, ["matmul", "mul"], np.array([10, 10]), STREAMING)
    assert np.all(found == -1)


def test_a_gpu_capture_with_shapes_knows_what_its_kernels_move(captures: Any) -> None:
    sequence = kernel_sequence(opened_trace(captures / "pytorch" / "h100-qwen1.5-0.5b.json.gz"))
    muls = sequence.word == sequence.words.index("mul")
    known = sequence.traffic_bytes[muls] > 0
    assert known.mean() > 0.6  # of the others no call was recorded
    rate = sequence.traffic_bytes[muls][known] / sequence.duration_ns[muls][known]
    # Bytes per ns: no kernel beats the caches of an H100 by far, and the long ones stream.
    assert 500 < np.percentile(rate, 90) < 12_000
