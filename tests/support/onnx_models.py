"""Small ONNX models made for tests."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path: Path, graph: onnx.GraphProto, **options: object) -> Path:
    """Writes a model of one graph and returns its path."""
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, path, **options)
    return path


def linear_graph(weights: dict[str, np.ndarray], rows: int | str = 4) -> onnx.GraphProto:
    """Returns x · w₀ · w₁ … as MatMul nodes; every weight is [in, out]."""
    names = list(weights)
    first, last = weights[names[0]], weights[names[-1]]
    nodes = [
        helper.make_node("MatMul", [f"x{index}", name], [f"x{index + 1}"], name=f"matmul_{name}")
        for index, name in enumerate(names)
    ]
    return helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [rows, first.shape[0]])],
        [helper.make_tensor_value_info(f"x{len(names)}", TensorProto.FLOAT, [rows, last.shape[1]])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )


def gpt_block(rows: int | str = 1, tokens: int = 16, width: int = 64, heads: int = 4) -> onnx.GraphProto:
    """Returns attention and feed-forward of a decoder as exporters write them: norms, softmax and GELU in parts."""
    random = np.random.default_rng(5)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, value: object) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(name: str, *shape: int) -> str:
        return constant(name, random.normal(scale=0.05, size=shape).astype(np.float32))

    def node(operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], name=f"{output}_{operator}", **attributes))
        return output

    def norm(source: str, name: str) -> str:
        node("ReduceMean", [source], f"{name}_mean", axes=[-1])
        node("Sub", [source, f"{name}_mean"], f"{name}_centered")
        node("Pow", [f"{name}_centered", constant(f"{name}_two", np.float32(2))], f"{name}_squared")
        node("ReduceMean", [f"{name}_squared"], f"{name}_variance", axes=[-1])
        node("Add", [f"{name}_variance", constant(f"{name}_epsilon", np.float32(1e-5))], f"{name}_safe")
        node("Sqrt", [f"{name}_safe"], f"{name}_deviation")
        node("Div", [f"{name}_centered", f"{name}_deviation"], f"{name}_normal")
        node("Mul", [f"{name}_normal", weight(f"{name}_gain", width)], f"{name}_scaled")
        return node("Add", [f"{name}_scaled", weight(f"{name}_shift", width)], name)

    def head(source: str, name: str) -> str:
        node("MatMul", [source, weight(f"{name}_weight", width, width)], f"{name}_product")
        node("Add", [f"{name}_product", weight(f"{name}_bias", width)], f"{name}_whole")
        shape = constant(f"{name}_shape", np.array([0, tokens, heads, width // heads], np.int64))
        node("Reshape", [f"{name}_whole", shape], f"{name}_split")
        return node("Transpose", [f"{name}_split"], name, perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])

    norm("x", "norm1")
    q, k, v = (head("norm1", name) for name in ("q", "k", "v"))
    node("MatMul", [q, k], "scores")
    node("Div", ["scores", constant("scale", np.float32((width / heads) ** 0.5))], "scaled_scores")
    node("Softmax", ["scaled_scores"], "probabilities", axis=-1)
    node("MatMul", ["probabilities", v], "context")
    node("Transpose", ["context"], "gathered", perm=[0, 2, 1, 3])
    node("Reshape", ["gathered", constant("flat", np.array([0, tokens, width], np.int64))], "flattened")
    node("MatMul", ["flattened", weight("out_weight", width, width)], "attended")
    node("Add", ["attended", "x"], "residual")
    norm("residual", "norm2")
    node("MatMul", ["norm2", weight("up_weight", width, 4 * width)], "up")
    node("Add", ["up", weight("up_bias", 4 * width)], "wide")
    node("Div", ["wide", constant("root2", np.float32(2**0.5))], "halved")
    node("Erf", ["halved"], "erf")
    node("Add", ["erf", constant("one", np.float32(1))], "shifted")
    node("Mul", ["wide", "shifted"], "doubled")
    node("Mul", ["doubled", constant("half", np.float32(0.5))], "gelu")
    node("MatMul", ["gelu", weight("down_weight", 4 * width, width)], "down")
    node("Add", ["down", "residual"], "y")
    sizes = [rows, tokens, width]
    return helper.make_graph(
        nodes,
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        constants,
    )


def resnet_stage(batch: int | str = 1, size: int = 16, channels: int = 8) -> onnx.GraphProto:
    """Returns a residual block of convolutions, batch normalizations and ReLU."""
    random = np.random.default_rng(6)
    nodes, constants = [], []
    source = "x"
    for number in (1, 2):
        kernel = random.normal(scale=0.1, size=(channels, channels, 3, 3)).astype(np.float32)
        constants.append(numpy_helper.from_array(kernel, f"w{number}"))
        for name in ("scale", "shift", "mean", "variance"):
            values = random.uniform(0.5, 1.5, channels).astype(np.float32)
            constants.append(numpy_helper.from_array(values, f"{name}{number}"))
        nodes.append(helper.make_node("Conv", [source, f"w{number}"], [f"c{number}"], pads=[1, 1, 1, 1]))
        parts = [f"{name}{number}" for name in ("scale", "shift", "mean", "variance")]
        nodes.append(helper.make_node("BatchNormalization", [f"c{number}", *parts], [f"b{number}"]))
        if number == 1:
            nodes.append(helper.make_node("Relu", ["b1"], ["r1"]))
            source = "r1"
    nodes += [helper.make_node("Add", ["b2", "x"], ["sum"]), helper.make_node("Relu", ["sum"], ["y"])]
    sizes = [batch, channels, size, size]
    return helper.make_graph(
        nodes,
        "stage",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        constants,
    )
