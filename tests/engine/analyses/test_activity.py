import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.analyses.activity import Activity, activities
from engine.analyses.communication_names import communication_names, is_communication_name
from engine.analyses.device import device_totals
from engine.analyses.idle import idle_gaps
from engine.analyses.steps import steps
from engine.trace import StringTable, TrackKind
from tests.support.opened import opened_trace
from tests.support.trace_rows import Row, trace_from_rows
from tests.support.trace_text import trace_from_text


def activity_of(row: Row, *others: Row) -> Activity:
    """The verdict on the row that starts first."""
    trace = trace_from_rows([row, *others])
    first = int(np.argmin(trace.events.start_ns))
    return Activity(int(activities(trace)[first]))


COMMUNICATION_NAMES = [
    "hcom_allReduce__271_0_1",
    "HcclAllreduce",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymDevKernel_AllGather_ST(ncclSymDevArgs)",
    "rcclGenericKernel<1, false>",
    "allreduceAicpuKernel",
    "hcom_reduceScatter_AivKernel",
    "aclnnMatmulAllReduce_MatmulAllReduce_MatmulAllReduce",
    "AllGatherMatmul",
    "MatmulReduceScatter",
    "AlltoAllAllGatherBatchMatMul",
    "BatchMatMulReduceScatterAlltoAll",
    "GroupedMatMulAllReduce",
    "AlltoAllvGroupedMatMul",
    "aclnnMoeDistributeDispatchV2_MoeDistributeDispatchV2_MoeDistributeDispatchV2",
    "MoeDistributeCombine",
    "void dpsk::ep::internode::dispatch<false, 4, false>(int4*, float*)",
    "deep_ep::intranode::combine",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)",
]


@pytest.mark.parametrize("name", COMMUNICATION_NAMES)
def test_names_of_every_library_are_communication(name):
    assert is_communication_name(name)


OTHER_NAMES = [
    "MatMulV3",
    "aclnnReduceSum_ReduceSumOpAiCore_ReduceSum",
    "void at::native::reduce_kernel<512, 1>",
    "triton_poi_fused_all_gather_matmul_0",
    "aclnnGatherV2_GatherV2",
    "aclnnScatterElements",
    "MemSet",
]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_that_only_look_alike_are_not_communication(name):
    assert not is_communication_name(name)


@given(st.permutations([*COMMUNICATION_NAMES, *OTHER_NAMES, "", "µ", "hc", "om_x"]))
def test_a_table_of_names_is_judged_like_each_name(names):
    """``hc`` before ``om_x`` spells a needle across two strings."""
    table = StringTable.from_strings(names)
    assert communication_names(table).tolist() == [is_communication_name(name) for name in names]


@pytest.mark.parametrize(
    ("category", "name", "expected"),
    [
        ("AI_CORE", "Conv2D1", Activity.COMPUTING),
        ("MIX_AIV", "ReduceSum7", Activity.COMPUTING),
        ("AI_VECTOR_CORE", "MemSet", Activity.COMPUTING),
        ("DSA_SQE", "DSAGenBitMask", Activity.COMPUTING),
        ("FFTS_PLUS", "FFTS_PLUS", Activity.NONE),
        ("AI_CPU", "aclnnTopk", Activity.COMPUTING),
        ("AI_CPU", "allreduceAicpuKernel", Activity.COMMUNICATION),
        ("MIX_AIC", "MatmulAllReduce", Activity.COMMUNICATION),
        ("HCCL", "anything", Activity.COMMUNICATION),
        ("PCIE_DMA_SQE", "MEMCPY_ASYNC", Activity.MEMORY),
        ("SDMA_SQE", "MEMCPY_ASYNC", Activity.MEMORY),
        ("EVENT_WAIT_SQE", "EVENT_WAIT", Activity.SYNCHRONIZATION),
        ("PLACE_HOLDER_SQE", "EVENT_RECORD", Activity.SYNCHRONIZATION),
        ("Notify Wait", "Notify Wait", Activity.SYNCHRONIZATION),
        ("Write Value", "Write Value", Activity.SYNCHRONIZATION),
        ("PLACE_HOLDER_SQE", "PROFILING_ENABLE", Activity.NONE),
        ("NEW_SQE", "nobody knows", Activity.NONE),
        ("", "a kernel of a Level0 table", Activity.COMPUTING),
        ("Other", "aclnnAdd_AddAiCore_Add", Activity.COMPUTING),
        ("Other", "MEMCPY_ASYNC", Activity.MEMORY),
        ("Other", "EVENT_WAIT", Activity.SYNCHRONIZATION),
        ("kernel", "void at::native::vectorized_elementwise_kernel", Activity.COMPUTING),
        ("Kernel", "volta_sgemm_128x64_nn", Activity.COMPUTING),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", Activity.COMMUNICATION),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", Activity.MEMORY),
        ("Memset", "Memset (Device)", Activity.MEMORY),
        ("cuda_sync", "Stream Sync", Activity.SYNCHRONIZATION),
        ("gpu_user_annotation", "nccl:all_reduce", Activity.NONE),
    ],
)
def test_category_and_name_decide_what_a_device_task_is(category, name, expected):
    assert activity_of(Row("npu 2", 0, 10, name, category)) is expected


def test_a_task_of_an_unknown_category_computes_where_the_kernel_table_lists_it():
    assert activity_of(Row("npu 2", 0, 10, "new", "NEW_SQE", operator_type="New")) is Activity.COMPUTING


def test_a_task_of_an_unknown_category_computes_where_the_profiler_took_it_for_computing():
    task = Row("npu 2", 2, 10, "new", "NEW_SQE")
    assert activity_of(task, Row("overlap 0", 2, 10, "Computing")) is Activity.COMPUTING
    assert activity_of(task, Row("overlap 3", 2, 10, "Free")) is Activity.NONE


def test_the_cann_7_capture_computes_and_rests_as_its_own_lanes_show(captures):
    trace = opened_trace(captures / "ascend" / "old-cann7-timeline")
    rows = trace.events_of(TrackKind.OVERLAP)
    (step,) = steps(trace)
    for lane, recomputed_ns in (("Computing", step.computing_ns), ("Free", step.free_ns)):
        sections = rows[trace.events.name[rows] == trace.strings.id_of(lane)]
        assert len(sections) > 200
        # The lanes' ends are rounded, by less than 1 ns each.
        assert recomputed_ns == pytest.approx(int(trace.events.duration_ns[sections].sum()), abs=len(sections))


def test_hccl_transfers_belong_to_the_collective_that_runs():
    inside = Row("npu 4", 2, 5, "SDMA", "SDMA")
    assert activity_of(inside, Row("comm 0", 2, 9, "hcom_allReduce__1_0_1")) is Activity.NONE
    assert activity_of(inside) is Activity.MEMORY


def test_synchronisation_rows_are_never_computing():
    """B3.1: HTA took waits for computing and overlap came out far too high."""
    trace = trace_from_text("npu 2 | AAWWWW |", names={"W": "EVENT_WAIT"}, categories={"W": "EVENT_WAIT_SQE"})
    assert activities(trace).tolist() == [Activity.COMPUTING, Activity.SYNCHRONIZATION]


def test_planes_hosts_and_overlap_lanes_are_not_device_work():
    trace = trace_from_rows(
        [
            Row("plane 0", 0, 5, "Memcpy"),
            Row("host 1", 0, 5, "aten::mm", "cpu_op"),
            Row("cann 1", 0, 5, "Node@launch"),
            Row("overlap 0", 0, 5, "Computing"),
            Row("annotation 7", 0, 5, "ProfilerStep#1", "gpu_user_annotation"),
        ]
    )
    assert not activities(trace).any()


def test_a_stray_time_years_away_is_no_device_work():
    """B5.6: one event with ts = 0 must not make the device idle for years."""
    rows = [Row("npu 2", 0, 5, "stray", "AI_CORE")]
    rows += [Row("npu 2", 1e13 + start, 1e13 + start + 5, "k", "AI_CORE") for start in (0, 50)]
    trace = trace_from_rows(rows)
    assert activities(trace).tolist() == [Activity.NONE, Activity.COMPUTING, Activity.COMPUTING]
    totals = device_totals(trace)
    assert totals is not None
    assert totals.span_ns == 55_000
    assert len(idle_gaps(trace)) == 1
