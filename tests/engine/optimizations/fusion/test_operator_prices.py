import pytest

from engine.devices.catalogue import load_device
from engine.devices.spec import DType
from engine.optimizations.fusion.kernel_shapes import KernelShape, bytes_at_ends, kernel_shape, product_size
from engine.optimizations.fusion.operator_prices import READERS, RELATIVE_READERS, price_ns, ratio
from engine.runtime.cost import OperatorTable, catalogue, operator_durations
from tests.support.kernel_runs import Kernel, kernel_trace

DEVICE = load_device("910b2")


def chain(text: str) -> list[KernelShape]:
    """``"mean 4096,2048; cast"``: words with the shapes of their inputs, BF16."""
    items = []
    for part in text.split("; "):
        word, _, shapes = part.partition(" ")
        inputs = tuple(tuple(int(size) for size in shape.split(",")) for shape in shapes.split(" ") if shape)
        items.append(KernelShape(word, inputs, DType.BF16))
    return items


def time_ns(table: OperatorTable) -> int:
    return int(operator_durations(DEVICE, table).sum())


@pytest.mark.parametrize(
    ("pattern", "kernels", "table"),
    [
        ("rms_norm", "cast 8192,2048; mean 8192,2048; mul 8192,2048", catalogue.norm(8192, 2048)),
        ("rms_norm", "mean 4,2048,2048", catalogue.norm(8192, 2048)),
        ("rms_norm_grad", "mul 8192,2048; sum 8192,2048", catalogue.norm_grad(8192, 2048)),
        ("swiglu", "slice 4096,11264; slice 4096,11264; silu 100; mul 100 100", catalogue.swiglu(4096, 5632)),
        ("swiglu", "silu 4096,5632; mul 4096,5632 4096,5632", catalogue.swiglu(4096, 5632)),
        ("swiglu_grad", "silu_grad 4096,5632; cat 4096,5632 4096,5632", catalogue.swiglu_grad(4096, 5632)),
        ("swiglu_grad", "silu_grad 9; cat 4096,11264", catalogue.swiglu_grad(4096, 5632)),
        ("rope", "mul 4096,16,128; neg 4096,16,64; add 4096,16,128 4096,16,128", catalogue.rotary(65536, 128)),
        ("rope_grad", "add 4096,16,128 4096,16,128", catalogue.rotary(65536, 128, grad=True)),
        ("scaled_masked_softmax", "softmax 16,4096,4096", catalogue.softmax(65536, 4096, DType.BF16)),
        ("scaled_masked_softmax_grad", "mask 1000", catalogue.elementwise(1000, inputs=2)),
        (
            "cross_entropy",
            "cast 4096,1,32000; max 4096,1,32000; exp 4096,1,32000",
            catalogue.cross_entropy(4096, 32000),
        ),
        ("cross_entropy", "nll_grad 4096,32000; log_softmax_grad 1", catalogue.cross_entropy(4096, 32000, grad=True)),
        (
            "attention",
            "bmm 16,4096,128 16,128,4096; mask 16,4096,4096; softmax 16,4096,4096; bmm 16,4096,4096 16,4096,128",
            catalogue.flash_attention(1, 16, 16, 4096, 4096, 128, causal=True),
        ),
        (
            "attention",
            "bmm 16,1024,128 16,4096,128; softmax 16,1024,4096; bmm 16,1024,4096 16,4096,128",
            catalogue.flash_attention(1, 16, 16, 1024, 4096, 128, causal=False),
        ),
        (
            "attention",
            "bmm 16,2048,128 16,4096,128; mask 1; softmax 1; bmm 16,2048,4096 16,4096,128",
            catalogue.flash_attention(1, 16, 16, 2048, 2048, 128, causal=False),
        ),
    ],
)
def test_the_shapes_of_a_chain_say_which_operator_replaces_it(pattern: str, kernels: str, table: OperatorTable) -> None:
    assert price_ns(READERS[pattern], chain(kernels), DEVICE) == time_ns(table)


@pytest.mark.parametrize("pattern", READERS)
def test_without_shapes_nothing_is_priced(pattern: str) -> None:
    words = ("bmm", "cast", "mean", "sum", "silu", "silu_grad", "add", "softmax", "softmax_grad", "exp", "mul")
    assert price_ns(READERS[pattern], [KernelShape(word, (), None) for word in words], DEVICE) is None


def test_a_loss_with_its_derivative_is_two_operators() -> None:
    whole = chain("cast 4096,32000; max 1; sub 1; exp 1; sum 1; div 1; mul 1; cast 1")
    expected = time_ns(catalogue.cross_entropy(4096, 32000)) + time_ns(catalogue.cross_entropy(4096, 32000, grad=True))
    assert price_ns(READERS["cross_entropy"], whole, DEVICE) == expected


def test_one_update_of_many_small_tensors_costs_less_than_many() -> None:
    updates = chain("; ".join(["adamw 65536"] * 20))
    assert 0 < (ratio(*RELATIVE_READERS["optimizer"], updates, DEVICE) or 0) < 0.5
    large = chain("; ".join(["adamw 67108864"] * 3))
    assert ratio(*RELATIVE_READERS["optimizer"], large, DEVICE) == pytest.approx(1, abs=0.02)


def test_a_product_that_adds_costs_more_than_one_that_writes() -> None:
    few_tokens = chain("matmul 2048,256 256,5632; accumulate 11534336 11534336")
    many_tokens = chain("matmul 2048,16384 16384,5632; accumulate 11534336 11534336")
    bound_by_memory, bound_by_cube = (
        ratio(*RELATIVE_READERS["gradient_accumulation"], item, DEVICE) for item in (few_tokens, many_tokens)
    )
    assert bound_by_memory is not None
    assert bound_by_cube is not None
    assert bound_by_memory > 1.2 > bound_by_cube >= 1


@pytest.mark.parametrize(
    ("shapes", "size"),
    [
        ("4096,2048 2048,512", (1, 4096, 2048, 512)),
        ("4096,2048 512,2048", (1, 4096, 2048, 512)),
        ("2048,4096 2048,512", (1, 4096, 2048, 512)),
        ("2,8,64,128 2,8,128,32", (16, 64, 128, 32)),
        ("4096", None),
    ],
)
def test_a_product_is_read_however_its_operands_are_stored(shapes: str, size: tuple[int, int, int, int] | None) -> None:
    (item,) = chain(f"matmul {shapes}")
    assert product_size(item) == size


def test_shapes_and_types_come_from_the_kernel_table() -> None:
    first = Kernel("Cast", 1.0, 0.0, '"4096,1,151936"', "DT_BF16", "4096,1,151936", "FLOAT")
    trace = kernel_trace([first, Kernel("Exp")])
    assert kernel_shape(trace, 0, "cast") == KernelShape("cast", ((4096, 1, 151936),), DType.BF16)
    assert kernel_shape(trace, 1, "exp") == KernelShape("exp", (), None)
    assert bytes_at_ends(trace, 0, 0) == 4096 * 151936 * 6
