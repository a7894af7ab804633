"""Mixed precision and quantised training on kernels whose table tells shapes and types, and on jobs."""

from dataclasses import replace

import numpy as np
import pytest

from engine.devices.catalogue import load_device
from engine.devices.spec import DType
from engine.graph.task_graph import TaskKind
from engine.optimizations.interface import Bound, CapturePlan, Verdict
from engine.replay.job_graph import capture_graph
from engine.trace.job import align
from tests.support.closed_loop import recorded
from tests.support.kernel_runs import Kernel, elementwise, kernel_trace
from tests.support.toggled_jobs import closed_loop, job, step_ns, toggle

SIZE = "4096,4096"


def plan_of(element_type: str, device: str | None = "910b2", copies: int = 4) -> CapturePlan:
    """Returns products, activations and softmaxes in turn, all of one element type."""
    product = Kernel("MatMulV3", 900.0, inputs=f"{SIZE};{SIZE}", input_types=f"{element_type};{element_type}")
    others = [elementwise(kind, SIZE, element_type, element_type, duration_us=60.0) for kind in ("Gelu", "SoftmaxV2")]
    capture = capture_graph(align("", [kernel_trace([product, *others] * copies)]))
    graph = capture.graph
    names = np.array(graph.strings.texts(graph.name))
    kind = np.where(np.char.endswith(names, "MatMulV3"), TaskKind.CUBE, graph.kind).astype(np.uint8)
    return CapturePlan(capture, replace(graph, kind=kind), None if device is None else load_device(device))


def durations(plan: CapturePlan, word: str) -> list[int]:
    graph = plan.graph
    return [
        int(duration)
        for name, duration in zip(graph.strings.texts(graph.name), graph.duration_ns, strict=True)
        if name.endswith(word)
    ]


def test_products_of_fp32_take_as_much_less_as_the_device_multiplies_faster():
    item, plan = toggle("precision.mixed"), plan_of("FLOAT")
    assert item.check_capture(plan, item.defaults).verdict is Verdict.APPLIES
    expected = item.on_capture(plan, item.defaults, Bound.EXPECTED)
    device = load_device("910b2")
    faster = device.cube_flop_per_s(DType.BF16) / device.cube_flop_per_s(DType.FP32)
    assert durations(plan, "MatMulV3")[0] / durations(expected, "MatMulV3")[0] == pytest.approx(faster, rel=0.3)
    assert durations(expected, "Gelu")[0] == durations(plan, "Gelu")[0] / 2
    assert durations(expected, "SoftmaxV2") == durations(plan, "SoftmaxV2")


def test_the_bounds_of_mixed_precision_are_in_order():
    item, plan = toggle("precision.mixed"), plan_of("FLOAT")
    low, expected, high = (step_ns(item.on_capture(plan, item.defaults, bound)) for bound in Bound)
    assert high < expected < low < step_ns(plan)


def test_half_precision_is_already_on_and_unknown_types_stay_unknown():
    item = toggle("precision.mixed")
    assert item.check_capture(plan_of("DT_BF16"), item.defaults).verdict is Verdict.ALREADY_ON
    assert item.check_capture(plan_of("N/A"), item.defaults).verdict is Verdict.UNKNOWN
    assert item.check_capture(plan_of("FLOAT", None), item.defaults).verdict is Verdict.UNKNOWN


def test_quantised_products_pay_for_quantising_their_operands():
    item, plan = toggle("precision.quantized_training"), plan_of("DT_BF16")
    told = item.check_capture(plan, item.defaults)
    assert told.verdict is Verdict.APPLIES
    assert "not quantifiable without weights" in told.reason
    narrow = item.on_capture(plan, item.defaults, Bound.EXPECTED)
    assert durations(narrow, "MatMulV3")[0] < durations(plan, "MatMulV3")[0]
    assert len(durations(narrow, "DynamicQuant")) == len(durations(plan, "MatMulV3"))
    assert all(duration > 0 for duration in durations(narrow, "DynamicQuant"))


def test_fp32_products_are_not_quantised():
    item = toggle("precision.quantized_training")
    assert item.check_capture(plan_of("FLOAT"), item.defaults).verdict is Verdict.NO_EFFECT


def test_quantised_training_of_a_recording_takes_what_the_job_takes_with_it():
    loop = closed_loop("precision.quantized_training", "alone")
    assert loop.answer.verdict is Verdict.APPLIES
    assert abs(loop.error_ratio) < 0.02


def test_mixed_precision_of_a_recorded_fp32_job_holds_what_the_job_takes_with_it():
    item, wide = toggle("precision.mixed"), replace(job("alone"), model=replace(job("alone").model, dtype=DType.FP32))
    capture = capture_graph(recorded(wide).job)
    plan = CapturePlan(capture, capture.graph, wide.device)
    assert item.check_capture(plan, item.defaults).verdict is Verdict.APPLIES
    low, expected, high = (step_ns(item.on_capture(plan, item.defaults, bound)) for bound in Bound)
    truth = recorded(item.on_scenario(wide, item.defaults)).step_ns
    assert high < truth < low
    assert expected == pytest.approx(truth, rel=0.05)


def test_a_recording_in_bf16_multiplies_no_fp32():
    assert closed_loop("precision.mixed", "alone").answer.verdict is Verdict.ALREADY_ON


def test_a_job_that_computes_in_bf16_says_so():
    item = toggle("precision.mixed")
    assert item.check_scenario(job("alone"), {"dtype": "bf16"}).verdict is Verdict.ALREADY_ON
    wide = replace(job("alone"), model=replace(job("alone").model, dtype=DType.FP32))
    told = item.check_scenario(wide, {"dtype": "bf16"})
    assert told.verdict is Verdict.APPLIES
    assert "times as fast as fp32" in told.reason
