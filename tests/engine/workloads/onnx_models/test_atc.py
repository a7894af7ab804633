import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from engine.cli.app import build_cli, run
from engine.core.errors import EngineError, ExportError
from engine.devices.catalogue import load_device
from engine.workloads.onnx_models.estimate import compile_model
from engine.workloads.onnx_models.input_shapes import parse_input_shapes
from tests.support.onnx_models import gpt_block, linear_graph, resnet_stage, save

DEVICE = load_device("910b2")


def compiled(path, output=None, shapes=None, batches=(), **options):
    return compile_model(path, DEVICE, shapes or {}, batches, output, **options)


def matched(result):
    return {item.name: item.matched for item in result.passes if item.matched}


@pytest.mark.parametrize("graph", [gpt_block(), resnet_stage()], ids=["block", "stage"])
def test_the_optimized_model_computes_the_same(tmp_path, graph):
    path = save(tmp_path / "model.onnx", graph)
    result = compiled(path, tmp_path / "small")
    assert result.written == tmp_path / "small.onnx"
    written = onnx.load(result.written)
    onnx.checker.check_model(written)
    assert len(written.graph.node) < len(graph.node) / 1.5
    shape = [size.dim_value for size in graph.input[0].type.tensor_type.shape.dim]
    feed = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}
    (expected,) = ReferenceEvaluator(str(path)).run(None, feed)
    (found,) = ReferenceEvaluator(written).run(None, feed)
    assert np.allclose(found, expected, atol=1e-5)


def test_a_decoder_block_becomes_its_super_operators(tmp_path):
    result = compiled(save(tmp_path / "model.onnx", gpt_block()))
    found = matched(result)
    assert (found["FusedAttention"], found["FusedLayerNorm"], found["FusedGelu"]) == (1, 2, 1)
    assert found["FusedMatMul"] >= 4
    assert result.after[0].operators < result.before[0].operators / 2


def test_convolutions_take_their_normalization_and_activation_along(tmp_path):
    result = compiled(save(tmp_path / "model.onnx", resnet_stage()))
    assert matched(result) == {"FusedConv": 2}
    assert result.after[0].operators == 2


def test_small_graphs_gain_most_of_their_launches_and_large_ones_little(tmp_path):
    small = compiled(save(tmp_path / "small.onnx", gpt_block()))
    large = compiled(save(tmp_path / "large.onnx", gpt_block(tokens=4096, width=2048, heads=16)))
    gains = [item.before[0].latency_ns / item.after[0].latency_ns for item in (small, large)]
    assert gains[0] > 2.0
    assert small.before[0].host_ns > small.before[0].device_ns * 0.5
    assert large.before[0].latency_ns < 1.1 * large.before[0].device_ns


def test_every_batch_size_is_estimated(tmp_path):
    path = save(tmp_path / "model.onnx", resnet_stage("N"))
    result = compiled(path, shapes={"x": (-1, 8, 16, 16)}, batches=(1, 8, 64))
    assert [item.batch for item in result.after] == [1, 8, 64]
    assert result.after[2].qps > result.after[0].qps


def test_dynamic_axes_are_asked_for_and_never_guessed(tmp_path):
    path = save(tmp_path / "model.onnx", linear_graph({"w": np.ones((8, 4))}, rows="batch"))
    with pytest.raises(EngineError, match=r'input x0 has axes \[batch, 8\].*--input_shape "x0:\?,8"'):
        compiled(path)
    assert compiled(path, shapes={"x0": (3, 8)}).after[0].operators == 1


@pytest.mark.parametrize(
    ("shapes", "batches", "words"),
    [
        ({"y": (1, 8)}, (), "the inputs of"),
        ({"x0": (1, 8, 1)}, (), "3 axes"),
        ({"x0": (4, 9)}, (), "fixes it at 8"),
        ({"x0": (-1, 8)}, (), "needs the batch sizes"),
        ({}, (1, 2), "with -1"),
    ],
)
def test_shapes_that_do_not_fit_say_what_does(tmp_path, shapes, batches, words):
    path = save(tmp_path / "model.onnx", linear_graph({"w": np.ones((8, 4))}))
    with pytest.raises(EngineError, match=words):
        compiled(path, shapes=shapes, batches=batches)


def test_without_shrinking_nothing_is_changed(tmp_path):
    result = compiled(save(tmp_path / "model.onnx", gpt_block()), shrink=False)
    assert result.passes == ()
    assert result.after[0].operators == result.before[0].operators


def test_an_operator_nobody_knows_is_priced_by_its_bytes_and_named(tmp_path):
    node = helper.make_node("Strange", ["x"], ["y"], domain="com.example")
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1024, 1024])
    graph = helper.make_graph(
        [node], "g", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1024, 1024])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "model.onnx")
    result = compiled(tmp_path / "model.onnx")
    assert result.unsupported == ("Strange",)
    assert result.before[0].device_ns > 4_000


@pytest.mark.parametrize("content", [b"", b"\x08\xff\xff\xff\xff\xff", b"not a model at all", b"\x0a" * 4096])
def test_a_broken_model_is_one_clear_error(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(EngineError, match="is no ONNX model"):
        compiled(path)


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_graph_of_a_hundred_thousand_nodes_ends(tmp_path, count):
    nodes = [
        helper.make_node("Relu" if index % 3 else "Exp", [f"v{index}"], [f"v{index + 1}"]) for index in range(count)
    ]
    value = helper.make_tensor_value_info("v0", TensorProto.FLOAT, [4])
    graph = helper.make_graph(
        nodes, "long", [value], [helper.make_tensor_value_info(f"v{count}", TensorProto.FLOAT, [4])]
    )
    result = compiled(save(tmp_path / "model.onnx", graph))
    assert result.before[0].operators == count
    assert result.after[0].operators < count / 10


PACKAGED = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))


@pytest.mark.parametrize(
    "path", [path for path in PACKAGED if "resnet50" in path.name or "squeezenet" in path.name], ids=str
)
def test_public_models_are_compiled(path):
    result = compiled(path)
    assert matched(result).get("FusedConv", 0) > 10
    assert result.after[0].latency_ns < result.before[0].latency_ns


def test_the_articles_command_line_is_taken_as_it_stands(tmp_path, capsys):
    path = save(tmp_path / "model.onnx", gpt_block())
    arguments = [f"--model={path}", "--framework=5", f"--output={tmp_path / 'out'}", "--soc_version=Ascend910B"]
    code = run(build_cli(), ["atc", *arguments, "--graph_op_shrink=enable", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["device"] == "910b2"
    assert any("910B2 is taken" in notice for notice in document["notices"])
    assert any("simulator term" in notice for notice in document["notices"])
    assert document["before"][0]["operators"] > document["after"][0]["operators"]
    assert (tmp_path / "out.onnx").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--soc_version=Ascend999"],
        ["--framework=3", "--soc_version=Ascend910B2"],
        ["--graph_op_shrink=maybe", "--soc_version=Ascend910B2"],
        ["--dynamic_batch_size=a", "--soc_version=Ascend910B2"],
        ["--input_shape=x", "--soc_version=Ascend910B2"],
    ],
)
def test_arguments_that_make_no_sense_end_with_code_two(tmp_path, capsys, arguments):
    path = save(tmp_path / "model.onnx", gpt_block())
    assert run(build_cli(), ["atc", f"--model={path}", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_shapes_are_read_as_atc_writes_them():
    assert parse_input_shapes("x:-1,3,224,224;a:b:0:2,5") == {"x": (-1, 3, 224, 224), "a:b:0": (2, 5)}


@pytest.mark.parametrize("folder", [".", "elsewhere"])
def test_weights_kept_in_another_file_are_found_wherever_the_result_is_written(tmp_path, folder):
    graph = linear_graph({"w": np.arange(64 * 32, dtype=np.float32).reshape(64, 32)})
    path = save(tmp_path / "model.onnx", graph, save_as_external_data=True, location="w.bin", size_threshold=0)
    result = compiled(path, tmp_path / folder / "small")
    feed = {"x0": np.ones((4, 64), np.float32)}
    expected = ReferenceEvaluator(str(path)).run(None, feed)
    assert np.array_equal(ReferenceEvaluator(str(result.written)).run(None, feed), expected)
    assert (tmp_path / "w.bin").is_file()


def test_the_model_itself_is_never_overwritten(tmp_path):
    path = save(tmp_path / "model.onnx", gpt_block())
    before = path.read_bytes()
    with pytest.raises(ExportError, match="is the model itself"):
        compiled(path, tmp_path / "model")
    assert path.read_bytes() == before
