"""Latency and throughput of an ONNX graph on a simulated device, before and after optimization."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.errors import EngineError, ExportError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress
from engine.core.units import NS_PER_MS, NS_PER_S
from engine.devices.spec import DeviceSpec
from engine.runtime.cost import concatenate, operator_durations
from engine.workloads.onnx_models.fusion import FusionPass, fuse
from engine.workloads.onnx_models.input_shapes import DYNAMIC, set_shapes
from engine.workloads.onnx_models.model_file import OnnxModel, external_tensors, read_model
from engine.workloads.onnx_models.operator_costs import MATRIX, Priced, moved_bytes_table, priced_node


@dataclass(frozen=True, slots=True)
class GraphEstimate:
    """A graph on a device for one batch size.

    Attributes:
        batch: Batch size, None where the model's shapes are fixed.
        operators: Kernels it runs.
        device_ns: Their time.
        host_ns: Time of the host to launch them.
        latency_ns: From the first launch to the last result: the host runs ahead where it can.
    """

    batch: int | None
    operators: int
    device_ns: int
    host_ns: int
    latency_ns: int

    @property
    def latency_ms(self) -> float:
        """In ms."""
        return self.latency_ns / NS_PER_MS

    @property
    def qps(self) -> float:
        """Samples per second, one request after another."""
        return (self.batch or 1) * NS_PER_S / self.latency_ns if self.latency_ns else 0.0


@dataclass(frozen=True, slots=True)
class AtcResult:
    """What compiling a model came to.

    Attributes:
        model: Its file.
        device: The target.
        passes: In order; those that matched nothing included.
        before: By batch size: operators as the model has them, launched one by one.
        after: By batch size: fused operators, released by one launch of the whole graph.
        unsupported: Operator types priced by the bytes they move.
        written: The optimized model, None where none was asked for.
        notices: What the user should know.
    """

    model: Path
    device: DeviceSpec
    passes: tuple[FusionPass, ...]
    before: tuple[GraphEstimate, ...]
    after: tuple[GraphEstimate, ...]
    unsupported: tuple[str, ...]
    written: Path | None
    notices: tuple[str, ...]


def compile_model(
    path: Path,
    device: DeviceSpec,
    shapes: dict[str, tuple[int, ...]],
    batches: Sequence[int],
    output: Path | None,
    *,
    shrink: bool = True,
    progress: Progress = no_progress,
    cancel: CancelToken = NEVER_CANCELLED,
) -> AtcResult:
    """Returns what fusing a model's graph gives on a device, and writes the optimized model.

    Args:
        path: ONNX file.
        device: Target.
        shapes: Of inputs, −1 for the batch.
        batches: Sizes that replace −1; empty where all shapes are fixed.
        output: Where the optimized model goes; None to write none.
        shrink: Whether the graph is optimized at all.
        progress: Told what is done.
        cancel: Looked at between passes.

    Raises:
        EngineError: The model cannot be read, or shapes are missing or do not fit.
        ExportError: The optimized model cannot be written.
        OperationCancelled: Cancelled.
    """
    if batches and not any(DYNAMIC in shape for shape in shapes.values()):
        raise EngineError('--dynamic_batch_size needs an --input_shape with -1, as "x:-1,3,224,224"')
    before, after = [], []
    passes: tuple[FusionPass, ...] = ()
    unsupported: dict[str, None] = {}
    sizes: Sequence[int | None] = list(batches) or [None]
    written = None
    for number, batch in enumerate(sizes):
        cancel.check()
        progress(number / len(sizes), "reading" if batch is None else f"batch {batch}")
        model = set_shapes(read_model(path), path, shapes, batch)
        plain = [priced_node(node) for node in model.graph]
        unsupported.update(dict.fromkeys(item.operator for item in plain if item.by_bytes))
        before.append(_estimate(plain, device, batch, one_launch=False))
        if shrink:
            model = _simplified(model, path)
            passes = fuse(model, cancel)
        after.append(_estimate([_priced(node) for node in model.graph], device, batch, one_launch=shrink))
        if output is not None and number == 0:
            written = _write(model, path, output)
    return AtcResult(path, device, passes, tuple(before), tuple(after), tuple(unsupported), written, ())


def _simplified(model: OnnxModel, path: Path) -> OnnxModel:
    """Returns the model after constant folding and removal of what nothing uses, by passes of the ONNX project.

    The optimizer's own list also rewrites patterns one by one, which takes minutes on graphs of 10⁵ nodes and finds
    what the fusion passes find.
    """
    from onnx_ir.passes import common
    from onnxscript import optimizer

    try:
        optimizer.fold_constants_ir(model, onnx_shape_inference=False)
        for cleaning in (common.IdentityEliminationPass(), common.RemoveUnusedNodesPass()):
            model = cleaning(model).model
    except Exception as error:
        message = f"{path}: its constants cannot be folded: {error}; check the model with onnx.checker"
        raise EngineError(message) from error
    return model


def _priced(node: Any) -> Priced:
    """Returns a node of the optimized graph: a fused one is its matrix product with the bytes of its outer edges."""
    chain = node.meta.get("chain")
    if not chain:
        return priced_node(node)
    name, pattern = str(node.name), str(node.meta["pattern"])
    products = [priced_node(part).table for part in chain if part.op_type in MATRIX]
    tables = [table for table in products if table is not None]
    outer = moved_bytes_table(node, _FUSED_FAMILY.get(pattern, "elementwise"))
    if not tables:
        return Priced(name, pattern, outer)
    # Products run one after another inside the kernel; only what enters and leaves it touches memory.
    share = [table.flop[0] / max(sum(item.flop[0] for item in tables), 1) for table in tables]
    merged = [
        replace(
            table,
            read_bytes=np.rint(outer.read_bytes * part).astype(np.int64),
            write_bytes=np.rint(outer.write_bytes * part).astype(np.int64),
        )
        for table, part in zip(tables, share, strict=True)
    ]
    return Priced(name, pattern, concatenate(merged))


_FUSED_FAMILY = {
    "FusedLayerNorm": "rms_norm",
    "FusedRmsNorm": "rms_norm",
    "FusedAddNorm": "rms_norm",
    "FusedGelu": "gelu",
    "FusedGeluTanh": "gelu",
    "FusedSwiGlu": "swiglu",
}


def _estimate(nodes: Sequence[Priced], device: DeviceSpec, batch: int | None, *, one_launch: bool) -> GraphEstimate:
    """Returns the time of nodes that run one after another.

    Launched one by one, kernel i starts when its launch has come and the one before it has ended; released by one
    launch, the host's time is paid once.
    """
    running = [item for item in nodes if item.table is not None]
    if not running:
        return GraphEstimate(batch, 0, 0, 0, 0)
    table = concatenate([item.table for item in running if item.table is not None])
    durations = operator_durations(device, table)
    counts = np.array([len(item.table) for item in running if item.table is not None])
    per_node = np.add.reduceat(durations, np.concatenate(([0], np.cumsum(counts)[:-1])))
    dispatch_ns = round(device.host_dispatch_ns)
    launches = (
        np.full(len(per_node), dispatch_ns) if not one_launch else np.array([dispatch_ns, *[0] * (len(per_node) - 1)])
    )
    ready = np.cumsum(launches)
    # end_i = max(ready_i, end_{i−1}) + d_i, so end = cumsum(d) + running maximum of (ready − cumsum of d before i).
    done = np.cumsum(per_node)
    ends = done + np.maximum.accumulate(ready - (done - per_node))
    return GraphEstimate(batch, len(per_node), int(per_node.sum()), int(launches.sum()), int(ends[-1]))


def _write(model: OnnxModel, source: Path, output: Path) -> Path:
    """Writes the optimized model; away from weights that lie beside its source it gets a file of weights of its own.

    Raises:
        ExportError: It cannot be written, or would take the place of the model it was made from.
    """
    import onnx_ir

    target = output if output.suffix == ".onnx" else output.with_name(output.name + ".onnx")
    if target.resolve() == source.resolve():
        raise ExportError(f"{target}: is the model itself; choose another name with --output")
    moves = any(True for _ in external_tensors(model)) and target.resolve().parent != source.resolve().parent
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        onnx_ir.save(model, target, external_data=f"{target.name}.data" if moves else None)
    except (OSError, ValueError) as error:
        raise ExportError(f"{target}: {error}; choose another place with --output") from error
    return target
