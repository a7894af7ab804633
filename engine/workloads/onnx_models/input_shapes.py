"""Shapes of a model: its inputs as the user states them, everything else inferred."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.core.errors import EngineError
from engine.workloads.onnx_models.model_file import OnnxModel

DYNAMIC = -1
"""A dimension of ``--input_shape`` that each batch size replaces."""


def parse_input_shapes(text: str) -> dict[str, tuple[int, ...]]:
    """Returns name → shape of ``"x:1,3,224,224;y:-1,10"``, as atc writes it. Raises EngineError."""
    shapes: dict[str, tuple[int, ...]] = {}
    for part in filter(None, (item.strip() for item in text.split(";"))):
        name, separator, sizes = part.rpartition(":")
        try:
            shape = tuple(int(size) for size in sizes.split(","))
        except ValueError as error:
            raise EngineError(f'--input_shape {part}: write it as "name:1,3,224,224"') from error
        if not separator or not name or any(size == 0 or size < DYNAMIC for size in shape):
            raise EngineError(f'--input_shape {part}: write it as "name:1,3,224,224", with -1 for the batch')
        shapes[name] = shape
    return shapes


def set_shapes(model: OnnxModel, path: Path, given: Mapping[str, tuple[int, ...]], batch: int | None) -> OnnxModel:
    """Returns the model with every input's shape fixed and the others inferred; ``model`` itself is changed.

    Args:
        model: As read.
        path: For messages.
        given: Shapes by input; −1 is replaced by ``batch``.
        batch: Replaces −1; None where no batch sizes were asked for.

    Raises:
        EngineError: An input has dynamic axes nobody gave, or a given shape does not fit.
    """
    import onnx_ir
    from onnx_ir.passes.common import ShapeInferencePass

    inputs = {value.name: value for value in model.graph.inputs if not value.is_initializer()}
    unknown = [name for name in given if name not in inputs]
    if unknown:
        raise EngineError(f"--input_shape names {unknown[0]!r}; the inputs of {path.name} are {', '.join(inputs)}")
    for name, value in inputs.items():
        value.shape = onnx_ir.Shape(_fixed(path, name, value.shape, given.get(name), batch))
    return ShapeInferencePass()(model).model


def _fixed(path: Path, name: str, stated: Any, given: tuple[int, ...] | None, batch: int | None) -> tuple[int, ...]:
    if given is None:
        if stated is None or any(not isinstance(size, int) for size in stated):
            axes = "unknown axes" if stated is None else f"axes [{', '.join(str(size) for size in stated)}]"
            hint = ",".join(str(size) if isinstance(size, int) else "?" for size in (stated or "?"))
            raise EngineError(f'{path.name}: input {name} has {axes}: say how large, as --input_shape "{name}:{hint}"')
        return tuple(stated)
    if stated is not None and len(stated) != len(given):
        raise EngineError(f"--input_shape gives {name} {len(given)} axes; {path.name} has {len(stated)}")
    if DYNAMIC in given and batch is None:
        raise EngineError(f'--input_shape {name}: -1 needs the batch sizes, as --dynamic_batch_size "1,8"')
    shape = tuple(batch if size == DYNAMIC and batch is not None else size for size in given)
    for axis, (size, known) in enumerate(zip(shape, stated or (), strict=False)):
        if isinstance(known, int) and known != size:
            raise EngineError(f"--input_shape gives axis {axis} of {name} {size}; {path.name} fixes it at {known}")
    return shape
