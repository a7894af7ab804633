from engine.analyses.fusion.occurrences import pattern_occurrences, prepared
from engine.analyses.fusion.own_patterns import own_pattern_places
from tests.support.kernel_runs import Kernel, elementwise, kernel_trace

SHAPE, PAIR = "4096,3072", "BF16;BF16"


def activation() -> list[Kernel]:
    return [elementwise("Swish", SHAPE, "BF16", "BF16"), elementwise("Mul", SHAPE, PAIR, "BF16")]


def test_a_chain_of_a_users_own_is_found_wherever_it_stands() -> None:
    trace = kernel_trace([*activation(), Kernel("MatMulV3"), *activation()])
    found = own_pattern_places(prepared(trace), ["swish", "MUL"], "mine")
    assert found is not None
    assert found.events.tolist() == [0, 1, 3, 4]
    assert found.offsets.tolist() == [0, 2, 4]
    assert found.busy_ns.tolist() == [20_000, 20_000]
    assert own_pattern_places(prepared(trace), ["Mul", "Swish"], "mine") is None


def test_a_chain_may_be_named_by_what_kernels_do_and_looks_through_format_changes() -> None:
    change = Kernel("TransData", name="aclnnSwish_TransData_TransData")
    trace = kernel_trace([activation()[0], change, activation()[1]])
    found = own_pattern_places(prepared(trace), ["silu", "mul"], "mine")
    assert found is not None
    assert found.events.tolist() == [0, 1, 2]


def test_a_place_knows_that_one_kernel_would_read_gate_and_projection_and_write_their_product() -> None:
    (found,) = pattern_occurrences(prepared(kernel_trace(activation())), ("swiglu",))
    assert found.words == ("silu", "mul")
    assert found.bytes.tolist() == [3 * 4096 * 3072 * 2]
    assert found.best_ns[0] <= found.expected_ns[0] <= found.worst_ns[0] <= found.busy_ns[0]


def test_only_the_patterns_asked_for_take_kernels() -> None:
    types = ("BatchMatMul", "Muls", "MaskedFill", "SoftmaxV2", "BatchMatMul")
    trace = kernel_trace([Kernel(kind) for kind in types])
    (whole,) = pattern_occurrences(prepared(trace), ("scaled_masked_softmax", "attention"))
    assert (whole.pattern.id, whole.events.tolist()) == ("attention", [0, 1, 2, 3, 4])
    (part,) = pattern_occurrences(prepared(trace), ("scaled_masked_softmax",))
    assert (part.pattern.id, part.events.tolist()) == ("scaled_masked_softmax", [1, 2, 3])


def test_the_product_in_front_belongs_to_an_addition_that_can_become_its_tail() -> None:
    size = "4096,1024"
    add = Kernel("Add", 10.0, 0.0, f"{size};{size}", "FLOAT;DT_BF16", size, "FLOAT")
    trace = kernel_trace([Kernel("MatMulV3", 100.0), add, Kernel("Cast"), add])
    (found,) = pattern_occurrences(prepared(trace), ("gradient_accumulation",))
    assert found.events.tolist() == [0, 1]
    assert found.busy_ns.tolist() == [110_000]
    assert 100_000 <= found.best_ns[0] < found.worst_ns[0] <= 110_000


def test_a_pattern_whose_context_rules_every_place_out_has_none() -> None:
    size = "4096,1024"
    add = Kernel("Add", 10.0, 0.0, f"{size};{size}", "FLOAT;DT_BF16", size, "FLOAT")
    assert pattern_occurrences(prepared(kernel_trace([Kernel("Cast"), add])), ("gradient_accumulation",)) == ()
    once = kernel_trace([Kernel("Cos"), Kernel("Sin")])
    assert pattern_occurrences(prepared(once), ("repeated_cos_sin",)) == ()


def test_a_call_without_a_derivative_is_not_usable_in_training() -> None:
    chain = [Kernel("Add"), Kernel("RmsNorm")]
    (inference,) = pattern_occurrences(prepared(kernel_trace(chain)), ("add_norm",))
    (training,) = pattern_occurrences(prepared(kernel_trace([*chain, Kernel("RmsNormGrad")])), ("add_norm",))
    assert (inference.is_usable, training.is_usable) == (True, False)


def test_derivatives_written_out_are_chains_of_their_own() -> None:
    chains = {
        "rms_norm_grad": "Mul Cast Mul ReduceSum Addcmul Cast",
        "swiglu_grad": "Mul Mul SwishGrad ConcatD",
        "rope_grad": "Mul Mul Neg ConcatD Add",
        "scaled_masked_softmax_grad": "Cast SoftmaxGrad Cast MaskedFill Muls",
    }
    for pattern, types in chains.items():
        (found,) = pattern_occurrences(prepared(kernel_trace([Kernel(kind) for kind in types.split()])), chains)
        assert (found.pattern.id, len(found)) == (pattern, 1)


def test_attention_backward_takes_both_derivatives_of_both_products() -> None:
    types = "BatchMatMulV2 BatchMatMulV2 Cast SoftmaxGrad Cast MaskedFill Muls BatchMatMulV2 BatchMatMulV2"
    (found,) = pattern_occurrences(prepared(kernel_trace([Kernel(kind) for kind in types.split()])), ("attention",))
    assert len(found.events) == 9
