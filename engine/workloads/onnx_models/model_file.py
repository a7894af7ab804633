"""Reading an ONNX file: its graph; weights stay in their files until somebody asks for one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from engine.core.errors import EngineError

OnnxModel: TypeAlias = Any
"""``onnx_ir.Model``: imported only where a model is really read."""


class OnnxReadError(EngineError):
    """An ONNX file that cannot be used."""


def read_model(path: Path) -> OnnxModel:
    """Returns the model in an ONNX file.

    Tensors kept in other files are memory-mapped when they are read. Their paths come from the file, so they must stay
    beside it: nothing outside its directory is ever opened.

    Raises:
        OnnxReadError: It cannot be read, is no ONNX model, or names weights outside its directory or not there.
    """
    import onnx_ir

    if not path.is_file():
        raise OnnxReadError(f"{path}: there is no such file; name an ONNX model")
    try:
        model = onnx_ir.load(path)
        graphs = list(model.graph)
    except RecursionError as error:
        raise OnnxReadError(f"{path}: its graph is nested too deeply to be read") from error
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OnnxReadError(f"{path}: is no ONNX model: {first}; export it again") from error
    if not graphs and not model.graph.outputs:
        raise OnnxReadError(f"{path}: is no ONNX model: it has neither nodes nor outputs; export it again")
    for tensor in external_tensors(model):
        _check_external(path, tensor)
    return model


def external_tensors(model: OnnxModel) -> Iterator[Any]:
    """Yields the tensors of a model that are kept in other files, those of sub-graphs included."""
    import onnx_ir

    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, onnx_ir.ExternalTensor):
                yield value.const_value
    for node in model.graph.all_nodes():
        for attribute in node.attributes.values():
            if isinstance(attribute.value, onnx_ir.ExternalTensor):
                yield attribute.value


def _check_external(path: Path, tensor: Any) -> None:
    """Raises OnnxReadError where a tensor's file is not a regular file beside the model, or too short for it."""
    folder = path.parent.resolve()
    location = str(tensor.location)
    file = folder / location
    where = f"{path}: weights of {tensor.name} in {location!r}"
    if Path(location).is_absolute() or not file.resolve().is_relative_to(folder):
        raise OnnxReadError(f"{where} lie outside the model's directory and are not opened; export the model again")
    if not file.is_file():
        raise OnnxReadError(f"{where} are not there; put the file beside the model")
    offset, length = int(tensor.offset or 0), int(tensor.length or 0)
    if offset < 0 or length < 0 or offset + max(length, int(tensor.nbytes)) > file.stat().st_size:
        raise OnnxReadError(f"{where} end beyond the file; copy it again")
