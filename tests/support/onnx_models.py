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
