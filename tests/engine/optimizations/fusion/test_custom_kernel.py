from pathlib import Path

import pytest

from engine.core.errors import ScenarioError
from engine.devices.catalogue import load_device
from engine.devices.spec import DType
from engine.optimizations.fusion.custom import CUSTOM
from engine.optimizations.fusion.custom_file import CustomKernel, read_custom_kernel
from engine.optimizations.fusion.custom_price import custom_price
from engine.optimizations.fusion.kernel_shapes import KernelShape
from engine.optimizations.interface import Bound, CapturePlan, Verdict
from engine.replay.job_graph import capture_graph
from engine.replay.replay_time import replay_time
from engine.trace.job import align
from tests.support.kernel_runs import Kernel, kernel_trace

DEVICE = load_device("910b2")
PATTERN = '[pattern]\nkernels = ["MatMulV3", "Mul", "Add"]\n'
MATRIX, VECTOR = "4096,4096;4096,4096", "4096,4096;4096,4096"


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def chain() -> list[KernelShape]:
    square = ((4096, 4096), (4096, 4096))
    return [KernelShape(word, square, DType.BF16) for word in ("matmul", "mul", "add")]


def kernel(**changes: object) -> CustomKernel:
    values: dict[str, object] = {
        "title": "Mine",
        "kernels": ("MatMulV3", "Mul", "Add"),
        "instructions": ("vmul", "vadd"),
        "products_on_vector": False,
        "elements": None,
        "flops": None,
        "bytes": None,
        "efficiency_ratio": 1.0,
    }
    return CustomKernel(**{**values, **changes})  # type: ignore[arg-type]  # a table of keyword arguments


def test_a_file_says_what_is_replaced_and_what_it_costs(tmp_path: Path) -> None:
    text = PATTERN + '[price]\ninstructions = "vmul, VADD"\nproducts = "vector"\nbytes = 3e6\nefficiency = 0.5\n'
    found = read_custom_kernel(written(tmp_path / "own.toml", text))
    assert found == kernel(title="MatMulV3+Mul+Add", products_on_vector=True, bytes=3e6, efficiency_ratio=0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pattern", "is no TOML file"),
        ('[pattern]\nkernels = ["A", "B"]\n', "has no table [price]"),
        (PATTERN + "[price]\n", "[price] needs instructions, flops or bytes"),
        ('[pattern]\nkernels = ["Mul"]\n[price]\nflops = 1\n', "must list two names or more"),
        (
            PATTERN + '[price]\ninstructions = "vmull"\n',
            "price.instructions names vmull, no vector instruction; did you mean vmul",
        ),
        (PATTERN + "[price]\nflop = 1\n", "[price] has an unknown key flop"),
        (PATTERN + "[price]\nflops = -1\n", "price.flops = -1 must be a number above 0"),
        (PATTERN + "[price]\nbytes = true\n", "price.bytes = True must be a number above 0"),
        (PATTERN + "[price]\nbytes = 1\nefficiency = 1.5\n", "price.efficiency = 1.5 must be at most 1"),
        (PATTERN + '[price]\nbytes = 1\nproducts = "tensor"\n', 'must be "cube" or "vector"'),
        (PATTERN + "[price]\ninstructions = 3\n", "price.instructions = 3 must be text"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_custom_kernel(written(tmp_path / "own.toml", text))
    assert message in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_a_product_of_vector_instructions_takes_as_many_passes_as_it_has_multiplications() -> None:
    price = custom_price(kernel(products_on_vector=True), chain(), 0.0, DEVICE)
    assert price is not None
    multiplications = 4096**3 + 4096**2
    assert price.vector_ns == pytest.approx(2 * multiplications * 4 / (DEVICE.vector_bytes_per_s / 1e9))
    assert price.cube_ns == 0.0
    on_cube = custom_price(kernel(), chain(), 0.0, DEVICE)
    assert on_cube is not None
    assert on_cube.cube_ns == pytest.approx(2 * 4096**3 / (DEVICE.cube_flop_per_s(DType.BF16) / 1e9))
    assert price.total_ns > 20 * on_cube.total_ns


def test_a_kernel_is_bound_by_the_slowest_unit_and_its_efficiency() -> None:
    moved = 1e9
    price = custom_price(kernel(bytes=moved, efficiency_ratio=0.5), chain(), 0.0, DEVICE)
    assert price is not None
    assert price.memory_ns == pytest.approx(moved / (DEVICE.hbm_bytes_per_s / 1e9) / 0.5)
    assert price.total_ns == pytest.approx(price.fixed_ns + max(price.memory_ns, price.cube_ns, price.vector_ns))


def test_without_any_size_there_is_no_price() -> None:
    shapeless = [KernelShape(word, (), None) for word in ("matmul", "mul", "add")]
    assert custom_price(kernel(), shapeless, 0.0, DEVICE) is None
    assert custom_price(kernel(elements=1e6), shapeless, 0.0, DEVICE) is not None


@pytest.fixture(name="plan")
def _plan() -> CapturePlan:
    products = Kernel("MatMulV3", 600.0, 0.0, MATRIX, "DT_BF16;DT_BF16", "4096,4096", "DT_BF16")
    others = [Kernel(name, 60.0, 0.0, VECTOR, "DT_BF16;DT_BF16", "4096,4096", "DT_BF16") for name in ("Mul", "Add")]
    capture = capture_graph(align("", [kernel_trace([products, *others] * 5)]))
    return CapturePlan(capture, capture.graph, DEVICE)


def test_a_slower_kernel_is_reported_and_rerun_as_slower(plan: CapturePlan, tmp_path: Path) -> None:
    text = PATTERN + '[price]\ninstructions = "vmul,vadd"\nproducts = "vector"\n'
    parameters = {"pattern": str(written(tmp_path / "own.toml", text))}
    answer = CUSTOM.check_capture(plan, parameters)
    assert answer.verdict is Verdict.APPLIES
    assert answer.reason.startswith("5 places of 15 kernels take 3.6 ms")
    assert "slower, bound by vector instructions" in answer.reason
    assert "memory 0 ns" not in answer.reason
    changed = CUSTOM.on_capture(plan, parameters, Bound.EXPECTED)
    before, after = replay_time(plan.capture), replay_time(plan.capture, changed.graph)
    assert after.step_ns.sum() > 10 * before.step_ns.sum()


def test_a_kernel_that_overlaps_products_and_vectors_is_faster(plan: CapturePlan, tmp_path: Path) -> None:
    text = PATTERN + '[price]\ninstructions = "vmul,vadd"\nefficiency = 0.9\n'
    parameters = {"pattern": str(written(tmp_path / "own.toml", text))}
    assert "bound by matrix unit" in CUSTOM.check_capture(plan, parameters).reason
    times = [replay_time(plan.capture, CUSTOM.on_capture(plan, parameters, bound).graph) for bound in Bound]
    low, expected, high = (int(time.step_ns.sum()) for time in times)
    assert low > expected > high
    assert expected < int(replay_time(plan.capture).step_ns.sum())


def test_a_chain_that_does_not_occur_and_a_missing_file_are_told_apart(plan: CapturePlan, tmp_path: Path) -> None:
    absent = written(tmp_path / "absent.toml", '[pattern]\nkernels = ["Exp", "Log"]\n[price]\nbytes = 1\n')
    assert CUSTOM.check_capture(plan, {"pattern": str(absent)}).verdict is Verdict.NO_EFFECT
    missing = CUSTOM.check_capture(plan, {"pattern": str(tmp_path / "missing.toml")})
    assert missing.verdict is Verdict.UNKNOWN
    assert "cannot be read" in missing.reason
    assert CUSTOM.check_capture(plan, CUSTOM.defaults).verdict is Verdict.UNKNOWN
