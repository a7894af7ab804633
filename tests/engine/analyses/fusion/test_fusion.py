from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.fusion import FusionCandidate, fusion_candidates
from engine.core.errors import OperationCancelled
from engine.core.progress import CancelToken
from engine.trace import Trace, TraceMetadata
from tests.support.kernel_runs import Kernel, elementwise, kernel_trace
from tests.support.opened import opened_job, opened_trace
from tests.support.trace_rows import Row, trace_from_rows

MS = 1_000_000
LOGITS = "4096,1,151936"
FUSED_IN_QWEN3 = {"attention", "rms_norm", "swiglu", "rope", "layer_norm", "softmax_dropout", "scaled_masked_softmax"}


def found(trace: Trace) -> dict[str, FusionCandidate]:
    return {candidate.pattern: candidate for candidate in fusion_candidates(trace)}


def plain(*types: str, gap_us: float = 0.0, duration_us: float = 10.0) -> list[Kernel]:
    return [Kernel(kind, duration_us, gap_us) for kind in types]


@pytest.mark.parametrize(
    ("types", "pattern", "replacement"),
    [
        ("BatchMatMulV2 Muls MaskedFill SoftmaxV2 BatchMatMulV2", "attention", "torch_npu.npu_fusion_attention"),
        ("BatchMatMul DropOutDoMask SoftmaxGrad Muls BatchMatMul", "attention", "torch_npu.npu_fusion_attention"),
        ("Cast Pow ReduceMean Adds Rsqrt Mul Cast Mul", "rms_norm", "torch_npu.npu_rms_norm"),
        ("Square ReduceMean Add Sqrt RealDiv Mul Mul", "rms_norm", "torch_npu.npu_rms_norm"),
        ("ReduceMean Sub Square ReduceMean Adds Rsqrt Mul Mul Add", "layer_norm", "torch.nn.functional.layer_norm"),
        ("Swish Mul", "swiglu", "torch_npu.npu_swiglu"),
        ("Slice Slice Silu Mul", "swiglu", "torch_npu.npu_swiglu"),
        ("GroupNorm Swish", "group_norm_silu", "torch_npu.npu_group_norm_silu"),
        ("Gelu Mul", "geglu", "torch_npu.npu_geglu"),
        ("Pow Muls Add Muls Tanh Adds Mul Muls", "gelu", "torch.nn.functional.gelu"),
        ("Mul Slice Neg Slice ConcatD Mul Add", "rope", "torch_npu.npu_rotary_mul"),
        ("Muls MaskedFill SoftmaxV2", "scaled_masked_softmax", "torch_npu.npu_scaled_masked_softmax"),
        ("SoftmaxV2 DropOutDoMask", "softmax_dropout", "torch_npu.npu_fusion_attention"),
        ("LogSoftmaxV2 OnesLike NLLLoss", "cross_entropy", "torch_npu.npu_cross_entropy_loss"),
        ("NLLLossGrad LogSoftmaxGrad", "cross_entropy", "torch_npu.npu_cross_entropy_loss"),
        ("ReduceMax Sub Exp ReduceSum RealDiv", "softmax", "torch.softmax"),
        ("Addcmul Sqrt Add Addcdiv " * 6, "adagrad", "torch.optim.Adagrad"),
        ("Mul Lerp Mul Addcmul Sqrt RealDiv Add Addcdiv " * 6, "optimizer", "torch_npu.optim.NpuFusedAdamW"),
        ("Add RmsNorm", "add_norm", "torch_npu.npu_add_rms_norm"),
        ("MatMulV3 Add", "matmul_add", "torch.addmm"),
    ],
)
def test_a_chain_of_small_kernels_names_the_real_operator_that_replaces_it(types, pattern, replacement):
    (candidate,) = [item for item in fusion_candidates(kernel_trace(plain(*types.split()))) if item.replacement]
    assert (candidate.pattern, len(candidate.occurrences)) == (pattern, 1)
    assert candidate.replacement.startswith(replacement)


@pytest.mark.parametrize(
    "types",
    [
        "MatMulV3 FlashAttentionScore MatMulV3",
        "MatMulV3 RmsNorm MatMulV3 SwiGlu MatMulV3",
        "RotaryPositionEmbedding RotaryPositionEmbedding",
        "ForeachAddList ForeachMulScalar ForeachAddList",
        "FlashAttentionScoreGrad RmsNormGrad SwiGluGrad",
    ],
)
def test_what_is_already_fused_is_never_proposed(types):
    assert fusion_candidates(kernel_trace(plain(*types.split()))) == ()


def test_a_kernel_belongs_to_one_occurrence_of_a_known_pattern_only():
    kernels = plain("BatchMatMul", "Muls", "MaskedFill", "SoftmaxV2", "DropOutDoMask", "BatchMatMul", "Add", "RmsNorm")
    candidates = fusion_candidates(kernel_trace(kernels))
    assert {item.pattern for item in candidates} == {"attention", "add_norm"}
    events = [event for item in candidates for place in item.occurrences for event in place.events]
    assert len(events) == len(set(events)) == 8


def test_most_time_in_matrix_products_is_bound_by_the_cube():
    kernels = [Kernel("BatchMatMul", 100.0), Kernel("SoftmaxV2"), Kernel("BatchMatMul", 100.0)]
    candidate = found(kernel_trace(kernels))["attention"]
    assert candidate.bound == "cube"
    assert candidate.saving_ns.high == 10_000


def test_without_sizes_a_loose_chain_must_take_most_of_the_time():
    loss = ["ArgMaxWithValue", "Sub", "Index", "Exp", "ReduceSum", "RealDiv"]
    other = [Kernel("Fill", 500.0) for _ in range(4)]
    kernels = plain(*loss)
    assert "cross_entropy" in found(kernel_trace(kernels))
    assert "cross_entropy" not in found(kernel_trace([*kernels[:2], *other, *kernels[2:]]))


def test_a_long_search_can_be_cancelled():
    with pytest.raises(OperationCancelled):
        fusion_candidates(kernel_trace(plain("Swish", "Mul")), CancelToken(lambda: True))


def test_an_operator_without_a_derivative_is_no_replacement_in_training():
    inference, training = plain("Add", "RmsNorm"), plain("Add", "RmsNorm", "RmsNormGrad")
    assert found(kernel_trace(inference))["add_norm"].replacement == "torch_npu.npu_add_rms_norm"
    candidate = found(kernel_trace(training))["add_norm"]
    assert candidate.replacement == ""
    assert "no derivative" in candidate.reason


def test_format_changes_of_a_call_do_not_hide_a_chain():
    change = Kernel("TransData", name="aclnnSoftmax_TransData_TransData")
    kernels = [Kernel("BatchMatMul"), change, Kernel("SoftmaxV2"), change, Kernel("BatchMatMul")]
    assert found(kernel_trace(kernels))["attention"].occurrences[0].events == (0, 1, 2, 3, 4)


def test_members_of_different_sizes_are_no_chain():
    same = [elementwise("Swish", "4096,3072", "BF16", "BF16"), elementwise("Mul", "4096,3072", "BF16;BF16", "BF16")]
    other = [elementwise("Swish", "4096,3072", "BF16", "BF16"), elementwise("Mul", "7,5", "BF16;BF16", "BF16")]
    assert "swiglu" in found(kernel_trace(same))
    assert "swiglu" not in found(kernel_trace(other))


def test_the_second_projection_between_activation_and_product_is_left_out():
    candidate = found(kernel_trace([Kernel("Swish"), Kernel("MatMulV3", 500.0), Kernel("Mul")]))["swiglu"]
    assert candidate.occurrences[0].events == (0, 2)
    assert (candidate.total_ns, candidate.launches) == (20_000, 2)


def vocabulary_loss(vocabulary: str = LOGITS, cost_us: float = 1_000.0) -> list[Kernel]:
    rows = ",".join([*vocabulary.split(",")[:-1], "1"])
    return [
        elementwise("Cast", vocabulary, "DT_BF16", "FLOAT", duration_us=cost_us * 0.75),
        Kernel("ArgMaxWithValue", cost_us / 2, 0, vocabulary, "FLOAT", f"{rows};{rows}", "INT32;FLOAT"),
        Kernel("Sub", cost_us, 0, f"{vocabulary};{rows}", "FLOAT;FLOAT", vocabulary, "FLOAT"),
        Kernel("Less", 2, 0, f"{rows};", "INT64;INT64", rows, "BOOL"),
        Kernel("Index", 50, 0, f"{vocabulary};2;1", "FLOAT;INT64;INT64", rows, "FLOAT"),
        elementwise("Exp", vocabulary, "FLOAT", "FLOAT", duration_us=cost_us),
        Kernel("ReduceSum", cost_us / 2, 0, f"{vocabulary};1", "FLOAT;INT64", rows, "FLOAT"),
        Kernel("Log", 2, 0, rows, "FLOAT", rows, "FLOAT"),
        Kernel("RealDiv", cost_us, 0, f"{vocabulary};{rows}", "FLOAT;FLOAT", vocabulary, "FLOAT"),
    ]


def test_a_written_out_vocabulary_loss_is_one_cross_entropy():
    candidate = found(kernel_trace(vocabulary_loss()))["cross_entropy"]
    assert candidate.occurrences[0].events == tuple(range(9))
    assert candidate.bound == "memory"
    assert candidate.matched_by == "framework"
    assert "do not fit in any known L2" in candidate.reason


def test_intermediates_that_fit_in_l2_save_little_in_the_worst_case():
    small, large = "512,1,8192", LOGITS
    in_cache = found(kernel_trace(vocabulary_loss(small)))["cross_entropy"]
    beyond = found(kernel_trace(vocabulary_loss(large)))["cross_entropy"]
    assert in_cache.saving_ns.low < 0.1 * in_cache.total_ns
    assert beyond.saving_ns.low > 0.4 * beyond.total_ns
    assert in_cache.saving_ns.expected == pytest.approx(beyond.saving_ns.expected, rel=0.05)


def test_a_known_device_decides_what_fits_in_l2():
    between = "4096,1,8192"  # 128 MiB in FP32: more than the 96 MiB of a 910B4, less than the 192 MiB of a 910B2
    savings = {
        name: found(kernel_trace(vocabulary_loss(between), metadata=TraceMetadata(device=name)))["cross_entropy"]
        for name in ("Ascend910B4", "Ascend910B2")
    }
    assert savings["Ascend910B4"].saving_ns.low > 10 * savings["Ascend910B2"].saving_ns.low
    assert "fit in L2 (192.0 MiB, spec)" in savings["Ascend910B2"].reason


def test_a_fused_kernel_still_executes_the_vector_instructions():
    columns = {"aiv_vec_ratio": "0.9", "aiv_mte2_ratio": "0.5", "aic_mac_ratio": "N/A"}
    free = found(kernel_trace(vocabulary_loss()))["cross_entropy"]
    busy = found(kernel_trace(vocabulary_loss(), columns=columns))["cross_entropy"]
    assert busy.bound == "vector"
    assert busy.saving_ns.high <= 0.1 * busy.total_ns < free.saving_ns.low


def test_where_the_device_waits_for_the_host_the_waits_are_what_is_won():
    quick = [Kernel("Swish", 5.0, 100.0), Kernel("Mul", 5.0, 100.0)]
    candidate = found(kernel_trace(quick * 6))["swiglu"]
    assert candidate.bound == "host"
    assert candidate.gap_ns == 600_000
    assert candidate.total_ns == 60_000
    # Two launches of 105 µs become one: nothing below one launch interval can be reached.
    assert candidate.saving_ns.high <= candidate.total_ns + candidate.gap_ns - 6 * 5_000


def test_a_wait_much_longer_than_a_launch_does_not_vanish():
    usual = [Kernel("Swish", 5.0, 100.0), Kernel("Mul", 5.0, 100.0)] * 8
    compiled = [Kernel("Swish", 5.0, 100.0), Kernel("Mul", 5.0, 900_000.0)]
    without, with_one = found(kernel_trace(usual))["swiglu"], found(kernel_trace([*usual, *compiled]))["swiglu"]
    assert with_one.gap_ns == without.gap_ns + 900_000_000
    assert with_one.saving_ns.high - without.saving_ns.high <= 110_000


def test_other_work_of_the_device_is_no_wait():
    rows = [
        Row("npu 2", 0, 10, "Swish", "AI_VECTOR_CORE"),
        Row("npu 2", 110, 120, "Mul", "AI_VECTOR_CORE"),
        Row("npu 3", 5, 115, "MatMulV3", "AI_CORE"),
    ]
    candidate = found(trace_from_rows(rows))["swiglu"]
    assert candidate.gap_ns == 0
    assert candidate.bound != "host"


def test_separate_optimizer_calls_are_counted_one_by_one_and_move_every_byte_still():
    update = [Kernel("ApplyAdamWV2", 100.0), Kernel("Sub", 2.0)]
    candidate = found(kernel_trace(update * 57))["optimizer"]
    assert candidate.count == 57
    assert candidate.replacement == "torch_npu.optim.NpuFusedAdamW"
    assert candidate.saving_ns.low == 0
    assert candidate.saving_ns.high < 0.05 * candidate.total_ns


def test_single_norms_outside_the_run_are_counted_and_win_nothing():
    run = plain("LpNormV2", "Pows", "Add") * 10
    candidate = found(kernel_trace([Kernel("LpNormV2", 900.0), Kernel("MatMulV3"), *run]))["gradient_norm"]
    assert candidate.count == 11
    assert candidate.saving_ns.high < candidate.total_ns - 900_000


def test_gradient_additions_become_the_tail_of_their_matrix_product_only():
    add = elementwise("Add", "1024,3072", "FLOAT;DT_BF16", "FLOAT", duration_us=40.0)
    after_product = found(kernel_trace([Kernel("MatMulV3"), add] * 3))["gradient_accumulation"]
    elsewhere = found(kernel_trace([Kernel("EmbeddingDenseGrad"), add] * 3))["gradient_accumulation"]
    assert (after_product.count, after_product.launches) == (3, 3)
    # Of 10 bytes per element the 2 of the narrow operand are surely not read again.
    assert after_product.saving_ns.low == pytest.approx(0.2 * after_product.total_ns)
    assert after_product.saving_ns.high == after_product.total_ns
    assert elsewhere.saving_ns.high == 0


def test_cosines_repeated_layer_after_layer_are_computed_once():
    angles = [elementwise(kind, "4096,1,1,128", "FLOAT", "FLOAT") for kind in ("Cos", "Cast", "Sin", "Cast")]
    layers = [*angles, Kernel("RotaryPositionEmbedding")] * 4
    candidate = found(kernel_trace(layers))["repeated_cos_sin"]
    assert candidate.count == 4
    assert candidate.saving_ns.low == 0
    assert candidate.saving_ns.high == 3 * 40_000
    assert "repeated_cos_sin" not in found(kernel_trace(layers[:5]))
    two_steps = [replace(kernel, step=number) for number in (1, 2) for kernel in layers]
    assert found(kernel_trace(two_steps))["repeated_cos_sin"].saving_ns.high == 6 * 40_000


def test_a_collective_everything_waits_for_joins_its_matrix_product():
    rows = [
        Row("npu 2", 0, 100, "MatMulV3", "AI_CORE"),
        Row("comm 1", 101, 181, "hcom_allReduce__1_1_1"),
        Row("npu 2", 182, 190, "Add", "AI_VECTOR_CORE"),
    ]
    candidate = found(trace_from_rows(rows))["matmul_collective"]
    assert candidate.replacement == "torch_npu.npu_mm_all_reduce_base"
    assert (candidate.saving_ns.low, candidate.saving_ns.high) == (0, 80_000)
    hidden = [*rows[:2], Row("npu 2", 120, 190, "Add", "AI_VECTOR_CORE")]
    assert "matmul_collective" not in found(trace_from_rows(hidden))


def test_framework_calls_name_gpu_kernels():
    rows = [Row("host 1", 0, 100, "outer", "cpu_op")]
    for index, call in enumerate(("aten::silu", "aten::mul")):
        rows += [
            Row("host 1", 10 + 20 * index, 25 + 20 * index, call, "cpu_op"),
            Row("host 1", 12 + 20 * index, 15 + 20 * index, "cudaLaunchKernel", "cuda_runtime", index + 1),
            Row("gpu 7", 40 + 20 * index, 60 + 20 * index, "some_kernel<float>", "kernel", index + 1),
        ]
    (candidate,) = fusion_candidates(trace_from_rows(rows, format_id="kineto"))
    assert (candidate.pattern, candidate.matched_by, candidate.replacement) == ("swiglu", "framework", "torch.compile")


def test_gpu_kernels_without_a_launch_are_known_by_their_names():
    names = [
        "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(at::TensorIteratorBase&)::{lambda}>",
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, at::native::MulFunctor>>",
    ]
    rows = [Row("gpu 7", 10 * index, 10 * index + 8, name, "kernel") for index, name in enumerate(names)]
    (candidate,) = fusion_candidates(trace_from_rows(rows, format_id="kineto"))
    assert (candidate.pattern, candidate.matched_by) == ("swiglu", "kernels")


def test_a_frequent_sequence_nobody_fuses_is_reported_without_a_replacement():
    kernels = [*plain("Sign", "Floor", "Ceil"), Kernel("MatMulV3", 100.0)] * 8
    (candidate,) = fusion_candidates(kernel_trace(kernels))
    assert (candidate.pattern, candidate.replacement, candidate.count) == ("sequence:Sign+Floor+Ceil", "", 8)


def test_a_trace_without_device_work_has_no_candidates():
    assert fusion_candidates(trace_from_rows([Row("host 1", 0, 10, "aten::add", "cpu_op")])) == ()


TYPES = "Cast Mul Add Pow ReduceMean Rsqrt Swish MatMulV3 SoftmaxV2 BatchMatMul Cos Sin LpNormV2 ApplyAdamW RmsNorm"


@given(
    st.lists(
        st.builds(
            elementwise,
            st.sampled_from(TYPES.split(" ")),
            st.sampled_from(["1024,1024", "8,8", "65536,4096"]),
            st.sampled_from(["FLOAT", "FLOAT;DT_BF16", "DT_BF16;DT_BF16"]),
            st.sampled_from(["FLOAT", "DT_BF16"]),
            duration_us=st.sampled_from([0.0, 1.0, 50.0, 900.0]),
            gap_us=st.sampled_from([0.0, 0.5, 80.0]),
        ),
        max_size=60,
    )
)
def test_savings_are_ordered_never_negative_and_never_more_than_the_time_there_is(kernels):
    candidates = fusion_candidates(kernel_trace(kernels))
    known = [event for item in candidates if item.replacement for place in item.occurrences for event in place.events]
    assert len(known) == len(set(known))
    for item in candidates:
        low, expected, high = item.saving_ns.low, item.saving_ns.expected, item.saving_ns.high
        assert 0 <= low <= expected <= high <= item.total_ns + item.gap_ns
        assert item.total_ns == sum(place.busy_ns for place in item.occurrences)
        assert item.bound in {"host", "vector", "cube", "memory"}


def test_patterns_are_found_among_a_hundred_thousand_kernels():
    layer = ("Cast", "Pow", "ReduceMean", "Adds", "Rsqrt", "Mul", "Cast", "Mul", "MatMulV3", "Swish", "Mul", "Floor")
    trace = kernel_trace(plain(*layer, gap_us=1.0) * (100_000 // len(layer)))
    candidates = fusion_candidates(trace)
    assert {"rms_norm", "swiglu"} <= {item.pattern for item in candidates}


def test_the_second_stage_of_qwen3_spends_a_hundred_ms_in_an_unfused_cross_entropy(captures):
    trace = opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2").rank_trace(2).trace
    candidates = found(trace)
    loss = candidates["cross_entropy"]
    assert next(iter(candidates)) == "cross_entropy"
    assert (loss.count, loss.replacement, loss.bound) == (4, "torch_npu.npu_cross_entropy_loss", "memory")
    assert loss.total_ns == pytest.approx(100 * MS, rel=0.01)
    assert 50 * MS < loss.saving_ns.low < loss.saving_ns.expected < loss.saving_ns.high < 90 * MS
    assert not FUSED_IN_QWEN3 & candidates.keys()


def test_the_first_stage_of_qwen3_keeps_what_is_left_to_fuse(captures):
    candidates = found(opened_job(captures / "ascend/910b-qwen3-0.6b-pp2dp2").rank_trace(0).trace)
    assert candidates["optimizer"].count == 57
    assert candidates["gradient_norm"].count == 59
    assert candidates["gradient_accumulation"].total_ns == pytest.approx(10 * MS, rel=0.05)
    assert candidates["repeated_cos_sin"].count == 56
    assert candidates["repeated_cos_sin"].bound == "host"
    assert not (FUSED_IN_QWEN3 | {"cross_entropy"}) & candidates.keys()


@pytest.mark.parametrize("name", ["h100-qwen1.5-0.5b.json.gz", "mi300-qwen1.5-0.5b.json.gz"])
def test_qwen1_5_on_gpus_writes_out_its_norms_rotations_and_gates(captures, name):
    candidates = found(opened_trace(captures / "pytorch" / name))
    # 35 layers ran, with two norms each and one at the end; query and key are rotated.
    assert 70 <= candidates["rms_norm"].count <= 71
    assert candidates["rope"].count == 68
    assert candidates["swiglu"].count == 35
    assert "attention" not in candidates


def test_parameters_updated_one_by_one_are_found_on_a_gpu(captures):
    candidates = found(opened_trace(captures / "pytorch/df_index_resolver.json.gz"))
    assert candidates["foreach_zero"].count == 2020  # one per parameter and step: the file holds 2,020 aten::zero_ more
    assert candidates["layer_norm"].count == 155  # as many as aten::var
    assert candidates["foreach_add"].bound == "host"


def test_no_real_capture_wins_more_than_it_spends(captures):
    for name in ("ascend/910b-cnn-ddp2-text/level2/rank0_ascend_pt", "pytorch/resnet50-schema2021.json.gz"):
        for item in fusion_candidates(opened_trace(captures / name)):
            assert 0 <= item.saving_ns.low <= item.saving_ns.expected <= item.saving_ns.high
            assert item.saving_ns.high <= item.total_ns + item.gap_ns
            assert np.all(np.diff([place.start_ns for place in item.occurrences]) >= 0)
