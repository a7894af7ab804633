"""The weight tensors of a model file, each read only when it is looked at."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.arrays import Float32Array
from engine.core.errors import EngineError


class ModelReadError(EngineError):
    """A model file that cannot be used."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightTensor:
    """A matrix (or stack of matrices) of a model.

    Attributes:
        name: As the file calls it.
        shape: Its dimensions, at least two.
        stored_bits: Bits of an element in the file.
        output_axis: The axis of output channels: each has a scale of its own when channels are quantized apart.
        load: Reads it, float32.
    """

    name: str
    shape: tuple[int, ...]
    stored_bits: int
    output_axis: int
    load: Callable[[], Float32Array]

    @property
    def element_count(self) -> int:
        """Product of the dimensions."""
        count = 1
        for size in self.shape:
            count *= size
        return count


def model_weights(path: Path) -> tuple[WeightTensor, ...]:
    """Returns the floating-point matrices of a model, in the file's order; nothing of their content is read yet.

    Args:
        path: An ONNX file, a safetensors file, or a directory of safetensors files.

    Raises:
        ModelReadError: It is neither, or broken.
    """
    if path.is_dir():
        files = sorted(path.glob("*.safetensors"))
        if not files:
            raise ModelReadError(f"{path}: holds no .safetensors file; name a model file")
        return tuple(tensor for file in files for tensor in _safetensors(file))
    if not path.is_file():
        raise ModelReadError(f"{path}: there is no such file; name an ONNX or safetensors file")
    if path.suffix == ".safetensors":
        return tuple(_safetensors(path))
    return tuple(_onnx(path))


def _safetensors(path: Path) -> Iterator[WeightTensor]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            names = list(opened.keys())
            described = {name: opened.get_slice(name) for name in names}
            shapes = {name: (tuple(part.get_shape()), str(part.get_dtype())) for name, part in described.items()}
    except (OSError, SafetensorError) as error:
        raise ModelReadError(f"{path}: is no safetensors file: {error}; download it again") from error
    for name, (shape, dtype) in shapes.items():
        bits = _FLOAT_BITS.get(dtype)
        if bits is not None and len(shape) >= 2:
            yield WeightTensor(name, shape, bits, 0, _safetensor_loader(path, name))


_FLOAT_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16}
"""Floating-point types of safetensors; what is quantized already is not looked at."""


def _safetensor_loader(path: Path, name: str) -> Callable[[], Float32Array]:
    def load() -> Float32Array:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy") as opened:
                return np.asarray(opened.get_tensor(name), dtype=np.float32)
        except (OSError, SafetensorError, TypeError, ValueError) as error:
            raise ModelReadError(f"{path}: tensor {name} cannot be read: {error}") from error

    return load


def _onnx(path: Path) -> Iterator[WeightTensor]:
    from engine.workloads.onnx_models.model_file import read_model

    model = read_model(path)
    users = {value.name: _output_axis(value) for value in model.graph.initializers.values()}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or len(tensor.shape) < 2 or not tensor.dtype.is_floating_point():
            continue
        shape = tuple(int(size) for size in tensor.shape)
        yield WeightTensor(str(name), shape, int(tensor.dtype.bitwidth), users[name], _onnx_loader(path, tensor))


def _output_axis(value: Any) -> int:
    """Returns the axis of output channels: the last of a MatMul's right operand, the first of everything else."""
    for use in value.uses():
        node = use.node
        if node.op_type == "MatMul" and use.idx == 1:
            return len(value.shape or ()) - 1
        if node.op_type == "Gemm" and use.idx == 1:
            transposed = node.attributes.get("transB")
            return 0 if transposed is not None and transposed.as_int() else 1
    return 0


def _onnx_loader(path: Path, tensor: Any) -> Callable[[], Float32Array]:
    def load() -> Float32Array:
        try:
            return np.asarray(tensor.numpy(), dtype=np.float32)
        except (OSError, ValueError, TypeError) as error:
            raise ModelReadError(f"{path}: tensor {tensor.name} cannot be read: {error}") from error

    return load
