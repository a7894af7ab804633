import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from engine.core.errors import EngineError
from engine.workloads.onnx_models.model_file import OnnxReadError
from engine.workloads.quantization.plan import quantization_plan
from engine.workloads.quantization.sqnr import Granularity, channels, sqnr_db
from engine.workloads.quantization.weights import ModelReadError, model_weights
from tests.support.onnx_models import linear_graph, save

RANDOM = np.random.default_rng(3)
PLAIN = RANDOM.normal(size=(64, 256)).astype(np.float32)
OUTLIER = PLAIN.copy()
OUTLIER[7, 9] = 30.0


@pytest.fixture
def weights_file(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"plain.weight": PLAIN, "outlier.weight": OUTLIER, "norm.weight": PLAIN[0]}, path)
    return path


def test_each_bit_is_worth_six_decibels():
    low, high = (sqnr_db(PLAIN, bits, Granularity.TENSOR) for bits in (6, 8))
    assert high - low == pytest.approx(2 * 6.02, abs=0.5)


def test_the_noise_of_a_uniform_quantizer_is_a_twelfth_of_its_step_squared():
    values = RANDOM.uniform(-1, 1, size=(1, 100_000)).astype(np.float32)
    step = float(np.abs(values).max()) / 127
    expected = 10 * np.log10(float(np.mean(values**2)) / (step**2 / 12))
    assert sqnr_db(values, 8, Granularity.TENSOR) == pytest.approx(expected, abs=0.1)


def test_an_outlier_costs_only_its_own_channel_or_group():
    qualities = [sqnr_db(OUTLIER, 8, item) for item in (Granularity.TENSOR, Granularity.CHANNEL, Granularity.GROUP)]
    noise = [10 ** (-value / 10) for value in qualities]
    assert noise[0] > noise[1] > noise[2]


def test_values_a_grid_holds_exactly_lose_nothing():
    assert sqnr_db(np.array([[-127.0, 5.0, 127.0]], np.float32), 8, Granularity.CHANNEL) == float("inf")
    assert sqnr_db(np.zeros((2, 3), np.float32), 8, Granularity.GROUP) == float("inf")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), bits=st.integers(2, 15), granularity=st.sampled_from(Granularity))
def test_more_bits_and_finer_scales_never_lose_more(seed, bits, granularity):
    rows = np.random.default_rng(seed).normal(size=(8, 300)).astype(np.float32)
    assert sqnr_db(rows, bits + 1, granularity) > sqnr_db(rows, bits, granularity) - 1.0
    noise = [10 ** (-sqnr_db(rows, bits, item) / 10) for item in (Granularity.TENSOR, Granularity.CHANNEL)]
    assert noise[1] <= noise[0] * 1.05


def test_only_matrices_are_looked_at_and_only_when_asked(weights_file):
    weights = model_weights(weights_file)
    assert sorted(item.name for item in weights) == ["outlier.weight", "plain.weight"]
    weights_file.unlink()
    with pytest.raises(ModelReadError, match=r"plain\.weight|outlier\.weight"):
        weights[0].load()


def test_bfloat16_weights_are_read(tmp_path):
    import ml_dtypes

    path = tmp_path / "half.safetensors"
    save_file({"w": PLAIN.astype(ml_dtypes.bfloat16)}, path)
    (weight,) = model_weights(path)
    assert weight.stored_bits == 16
    assert np.allclose(weight.load(), PLAIN, rtol=0.01)


def test_the_plan_keeps_sensitive_layers_and_meets_the_bound(weights_file):
    plan = quantization_plan(model_weights(weights_file), (4, 8), Granularity.TENSOR, 30.0)
    assert [layer.name for layer in plan.layers] == ["outlier.weight", "plain.weight"]
    assert [layer.planned_bits for layer in plan.layers] == [32, 8]
    assert [layer.is_sensitive for layer in plan.layers] == [True, False]
    assert plan.planned_bytes == PLAIN.size * 5
    loose = quantization_plan(model_weights(weights_file), (4, 8), Granularity.TENSOR, 10.0)
    assert [layer.planned_bits for layer in loose.layers] == [8, 4]


def test_channels_of_an_onnx_matmul_are_its_columns(tmp_path):
    weight = PLAIN.copy()
    weight[:, 3] *= 100.0
    path = save(tmp_path / "model.onnx", linear_graph({"w": weight}))
    (found,) = model_weights(path)
    assert (found.shape, found.output_axis) == ((64, 256), 1)
    assert sqnr_db(channels(found), 8, Granularity.CHANNEL) > sqnr_db(channels(found), 8, Granularity.TENSOR)


def test_weights_kept_beside_an_onnx_file_are_read_when_asked(tmp_path):
    graph = linear_graph({"w": np.tile(PLAIN, (4, 4))})
    path = save(tmp_path / "model.onnx", graph, save_as_external_data=True, location="w.bin", size_threshold=0)
    (found,) = model_weights(path)
    assert np.array_equal(found.load(), np.tile(PLAIN, (4, 4)))


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/hostname", "link.bin"])
def test_weights_outside_the_models_directory_are_never_opened(tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(PLAIN.nbytes))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path = save(folder / "model.onnx", linear_graph({"w": PLAIN}))
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    path.write_bytes(model.SerializeToString())
    with pytest.raises((OnnxReadError, ModelReadError), match="outside"):
        model_weights(path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.onnx", b"\x00\xff broken"), ("a.onnx", b""), ("a.safetensors", b"12")]
)
def test_a_file_that_is_no_model_is_one_clear_error(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(EngineError, match=r"is no (ONNX model|safetensors file)"):
        model_weights(path)


def test_a_tensor_with_infinities_is_an_error_not_a_number(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"w": np.full((2, 2), np.inf, np.float32)}, path)
    with pytest.raises(EngineError, match="infinities"):
        quantization_plan(model_weights(path), (8,), Granularity.CHANNEL, 20.0)


@pytest.mark.parametrize("bits", [(), (1,), (32,)])
def test_bits_that_make_no_sense_are_an_error(weights_file, bits):
    with pytest.raises(EngineError, match="2 to 16"):
        quantization_plan(model_weights(weights_file), bits, Granularity.CHANNEL, 20.0)
