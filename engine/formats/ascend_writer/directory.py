"""One profiler directory per rank; it appears complete or not at all."""

import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.core.errors import ExportError
from engine.core.progress import NEVER_CANCELLED, CancelToken, Progress, no_progress, part_of
from engine.core.units import NS_PER_S
from engine.formats.ascend.metadata import DEVICE_MEMORY
from engine.formats.ascend_writer.communication import communication_document, matrix_document
from engine.formats.ascend_writer.kernels import write_kernels
from engine.formats.ascend_writer.lanes import lanes_of
from engine.formats.ascend_writer.memory import write_blocks, write_curves
from engine.formats.ascend_writer.tables import write_table
from engine.formats.ascend_writer.trace_view import write_trace_view
from engine.trace.trace import Trace, TraceMetadata

OUTPUT = "ASCEND_PROFILER_OUTPUT"
MATRIX = "communication_matrix"
_INFORMATION = ("config", "start_info", "end_info")
"""What profiler_info holds beside versions and rank; all else is metadata."""


def directory_name(trace: Trace) -> str:
    """Returns ``{host}_{pid}_{time}_ascend_pt``: readers take the host from it, and have none where it is not there."""
    epoch_ns = trace.metadata.epoch_ns or 0
    moment = datetime.fromtimestamp(epoch_ns // NS_PER_S, tz=UTC)
    stamp = f"{moment:%Y%m%d%H%M%S}{epoch_ns % NS_PER_S // 1_000_000:03d}"
    host = f"{trace.metadata.host}_".replace("/", "-") if trace.metadata.host else ""
    return f"{host}{lanes_of(trace).own_process}_{stamp}_ascend_pt"


def write_ascend_text(
    trace: Trace, parent: Path, progress: Progress = no_progress, cancel: CancelToken = NEVER_CANCELLED
) -> Path:
    """Writes one rank below ``parent`` and returns its directory; an older one of the same name is replaced.

    What the text format has no place for is left out: nesting that a lane does not show, texts of arguments of traces
    whose source is gone. Addresses and requested sizes stand in columns the profiler does not write.

    Raises:
        ExportError: It cannot be written.
        OperationCancelled: Cancelled; nothing is left behind.
    """
    target = parent / directory_name(trace)
    scratch: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
        _write_files(trace, scratch, progress, cancel)
        scratch.chmod(0o755)
        _replace(scratch, target)
    except OSError as error:
        raise ExportError(f"{target}: {error.strerror or error}; choose another place") from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


def _replace(scratch: Path, target: Path) -> None:
    """Puts the finished directory in the place of an older one, which is out of the way before it is deleted."""
    if not target.exists():
        scratch.replace(target)
        return
    with tempfile.TemporaryDirectory(prefix=".replaced-", dir=target.parent) as old:
        target.replace(Path(old) / target.name)
        scratch.replace(target)


def _write_files(trace: Trace, root: Path, progress: Progress, cancel: CancelToken) -> None:
    output = root / OUTPUT
    output.mkdir()
    write_trace_view(trace, output / "trace_view.json", part_of(progress, 0.0, 0.8), cancel)
    cancel.check()
    if len(trace.kernels):
        write_kernels(trace, output / "kernel_details.csv")
    if len(trace.memory.allocations):
        write_blocks(trace, output / "operator_memory.csv")
    if trace.memory.curves:
        write_curves(trace, output / "memory_record.csv")
    cancel.check()
    for name, table in trace.tables.items():
        if name == MATRIX:
            _write_json(output / f"{MATRIX}.json", matrix_document(trace, table))
        else:
            write_table(trace, table, output / f"{name}.csv")
    document = communication_document(trace)
    if document is not None:
        _write_json(output / "communication.json", document)
    rank = trace.metadata.rank
    name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    _write_json(root / name, _information(trace.metadata), indent=4)
    _write_json(root / "profiler_metadata.json", _metadata(trace.metadata))
    progress(1.0, "written")


def _write_json(path: Path, content: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=indent), encoding="utf-8")


def _information(metadata: TraceMetadata) -> dict[str, Any]:
    described = {key: metadata.extra[key] for key in _INFORMATION if key in metadata.extra}
    rank = {} if metadata.rank is None else {"rank_id": metadata.rank}
    return {**described, **metadata.software, **rank}


def _metadata(metadata: TraceMetadata) -> dict[str, Any]:
    distributed: dict[str, Any] = dict(metadata.parallel_sizes)
    if metadata.rank is not None:
        distributed["rank"] = metadata.rank
    if metadata.world_size is not None:
        distributed["world_size"] = metadata.world_size
    groups = {
        group.id: {
            "group_name": group.name,
            "group_rank": group.ranks.index(metadata.rank) if metadata.rank in group.ranks else -1,
            "global_ranks": list(group.ranks),
        }
        for group in metadata.parallel_groups
    }
    extra = {key: value for key, value in metadata.extra.items() if key not in _INFORMATION}
    if metadata.device_memory_bytes is not None:
        extra[DEVICE_MEMORY] = metadata.device_memory_bytes
    return {
        "distributed_args": distributed,
        "ENV_VARIABLES": dict(metadata.environment),
        "parallel_group_info": groups,
        **extra,
    }
