import pytest

from engine.analyses.modules import OUTSIDE_LAYERS, OUTSIDE_MODULES, ModuleTime, module_times
from engine.analyses.operators import operator_statistics
from engine.trace import Trace
from tests.support.kernel_runs import Kernel, kernel_trace
from tests.support.opened import opened_job, opened_trace
from tests.support.trace_rows import Row, trace_from_rows

MS = 1_000_000
REAL = [
    "ascend/910b-cnn-ddp2-text/level0/rank0_ascend_pt",
    "ascend/910b-cnn-ddp2-text/level2/rank1_ascend_pt",
    "pytorch/df_index_resolver.json.gz",
    "pytorch/h100-qwen1.5-0.5b.json.gz",
    "pytorch/resnet50-schema2021.json.gz",
    "pytorch/nccl_data.json.gz",
]


def totals(trace: Trace) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns (path, phase) → (count, ns) over all source lines."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in module_times(trace):
        count, total = sums.get((row.path, row.phase), (0, 0))
        sums[row.path, row.phase] = (count + row.count, total + row.total_ns)
    return sums


def training_step() -> Trace:
    """One linear layer forward, its gradient on another thread, an update; each launches one kernel."""
    rows = [
        Row("host 1", 0, 40, "train.py(12): step", "python_function"),
        Row("host 1", 1, 30, "nn.Module: Model_0", "python_function"),
        Row("host 1", 2, 29, "/opt/lib/site-packages/torch/nn/modules/linear.py(1): forward", "python_function"),
        Row("host 1", 3, 28, "nn.Module: Linear_0", "python_function"),
        Row("host 1", 4, 20, "aten::addmm", "cpu_op"),
        Row("host 1", 5, 6, "cudaLaunchKernel", "cuda_runtime", 1),
        Row("host 2", 41, 60, "autograd::engine::evaluate_function: AddmmBackward0", "cpu_op"),
        Row("host 2", 42, 59, "AddmmBackward0", "cpu_op"),
        Row("host 2", 43, 50, "aten::mm", "cpu_op"),
        Row("host 2", 44, 45, "cudaLaunchKernel", "cuda_runtime", 2),
        Row("host 1", 61, 90, "Optimizer.step#SGD.step", "user_annotation"),
        Row("host 1", 62, 80, "aten::add_", "cpu_op"),
        Row("host 1", 63, 64, "cudaLaunchKernel", "cuda_runtime", 3),
        Row("host 2", 65, 75, "torch.distributed.ddp.reducer::copy_bucket_to_grad", "cpu_op"),
        Row("host 2", 66, 67, "cudaLaunchKernel", "cuda_runtime", 5),
        Row("host 1", 91, 99, "aten::item", "cpu_op"),
        Row("gpu 7", 10, 20, "gemm", "kernel", 1),
        Row("gpu 7", 50, 63, "gemm", "kernel", 2),
        Row("gpu 7", 70, 74, "add", "kernel", 3),
        Row("gpu 7", 80, 81, "unknown", "kernel", 4),
        Row("gpu 7", 90, 97, "copy", "kernel", 5),
        Row("gpu 7", 98, 99, "ncclDevKernel_AllReduce", "kernel", 6),
    ]
    return trace_from_rows(rows, [(4, 7, "fwdbwd")], format_id="kineto")


def test_device_time_goes_to_the_module_that_launched_it_and_backward_to_the_forward_module():
    assert totals(training_step()) == {
        ("Model_0/Linear_0", "forward"): (1, 10_000),
        ("Model_0/Linear_0", "backward"): (1, 13_000),
        (OUTSIDE_MODULES, "optimizer"): (1, 4_000),
        (OUTSIDE_MODULES, "communication"): (1, 7_000),
        (OUTSIDE_MODULES, ""): (1, 1_000),
    }


def test_the_source_line_is_the_innermost_of_the_users_own_code():
    sources = {(row.path, row.phase): row.source for row in module_times(training_step())}
    assert sources["Model_0/Linear_0", "forward"] == "train.py(12): step"
    assert sources["Model_0/Linear_0", "backward"] == "train.py(12): step"
    assert sources[OUTSIDE_MODULES, ""] == ""


FORWARD = ["RmsNorm", "MatMulV3", "FlashAttentionScore", "Add", "SwiGlu", "MatMulV3"]
BACKWARD = ["MatMulV3", "SwiGluGrad", "MatMulV3", "FlashAttentionScoreGrad", "RmsNormGrad", "Add", "Cast"]


def stage(layers: int, micro_batches: int) -> list[str]:
    forward = ["GatherV2", *FORWARD * layers]
    backward = ["IndexPutV2", *BACKWARD * layers]
    return [*(forward + backward) * micro_batches, "LpNormV2", "ApplyAdamW", "Mul", "ApplyAdamW"]


def test_without_modules_layers_come_from_the_periodic_sequence_of_kernels():
    rows = totals(kernel_trace([Kernel(kind) for kind in stage(4, 2)]))
    for layer in range(4):
        assert rows[f"layer {layer}", "forward"] == (2 * len(FORWARD), 2 * len(FORWARD) * 10_000)
        assert rows[f"layer {layer}", "backward"] == (2 * len(BACKWARD), 2 * len(BACKWARD) * 10_000)
    assert rows[OUTSIDE_LAYERS, "optimizer"] == (4, 40_000)
    assert rows[OUTSIDE_LAYERS, "forward"] == (2, 20_000)
    assert rows[OUTSIDE_LAYERS, "backward"] == (2, 20_000)


def test_backward_passes_run_from_the_last_layer_to_the_first():
    kernels = [Kernel(kind) for kind in stage(4, 1)]
    first_gradient = 1 + 4 * len(FORWARD) + 1
    kernels[first_gradient] = Kernel("MatMulV3", 500.0)
    rows = totals(kernel_trace(kernels))
    assert rows["layer 3", "backward"][1] - rows["layer 2", "backward"][1] == 490_000


def test_many_steps_are_not_taken_for_layers():
    rows = totals(kernel_trace([Kernel(kind) for kind in stage(2, 1) * 5]))
    assert all(not path.startswith("layer") for path, _ in rows)


def test_an_inference_without_any_gradient_is_all_forward():
    rows = totals(kernel_trace([Kernel(kind) for kind in FORWARD * 5]))
    assert {phase for _, phase in rows} == {"forward"}
    assert len(rows) == 5


def test_only_layers_found_by_their_period_are_marked_as_inferred():
    rows = module_times(kernel_trace([Kernel(kind) for kind in stage(4, 1)]))
    assert all(row.inferred == row.path.startswith("layer") for row in rows)
    assert not any(row.inferred for row in module_times(training_step()))


def test_a_trace_without_device_work_has_no_rows():
    assert module_times(trace_from_rows([Row("host 1", 0, 10, "aten::add", "cpu_op")])) == ()


@pytest.mark.parametrize("name", REAL)
def test_every_computing_task_of_a_real_capture_stands_in_exactly_one_row(captures, name):
    trace = opened_trace(captures / name)
    rows: tuple[ModuleTime, ...] = module_times(trace)
    operators = operator_statistics(trace)
    assert sum(row.total_ns for row in rows) == sum(item.total_ns for item in operators)
    assert sum(row.count for row in rows) == sum(item.count for item in operators)
    assert len({(row.path, row.phase, row.source) for row in rows}) == len(rows)


def test_the_cnn_knows_its_layers_by_name_in_both_directions(captures):
    rows = totals(opened_trace(captures / "ascend/910b-cnn-ddp2-text/level2/rank0_ascend_pt"))
    for index in range(5):
        path = f"DistributedDataParallel_0/AlexNet_0/Sequential_0/Conv2d_{index}"
        assert rows[path, "backward"][1] > 0
        assert rows[path, "forward"][1] > 0


@pytest.mark.parametrize("rank", [0, 2])
def test_each_stage_of_qwen3_has_fourteen_layers_found_by_their_period(captures, rank):
    trace = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2").rank_trace(rank).trace
    rows = totals(trace)
    # Two micro-batches of 31 kernels forward and 36 backward.
    for layer in range(14):
        assert rows[f"layer {layer}", "forward"][0] == 62
        assert rows[f"layer {layer}", "backward"][0] == 72
    assert "layer 14" not in {path for path, _ in rows}
    assert sum(total for _, total in rows.values()) == sum(item.total_ns for item in operator_statistics(trace))
    if rank == 2:
        # The vocabulary's kernels take 167 ms.
        outside = sum(rows[OUTSIDE_LAYERS, phase][1] for phase in ("forward", "backward"))
        assert 167 * MS < outside < 185 * MS
