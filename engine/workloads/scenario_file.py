"""Scenario files: TOML ⇄ Scenario, and the parallel layout in the article's JSON form."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.errors import ScenarioError
from engine.devices.spec import DType
from engine.workloads.models import ModelSpec
from engine.workloads.models.catalogue import load_model, model_ids
from engine.workloads.optimization_ids import OPTIMIZATION_IDS
from engine.workloads.scenario import (
    Batch,
    LengthDistribution,
    LongLived,
    MemorySettings,
    OutOfMemoryPolicy,
    Parallelism,
    Recompute,
    RunSettings,
    Scenario,
    Schedule,
    SequenceLengths,
    TensorMode,
    WorkloadKind,
)
from engine.workloads.scenario_checks import check_scenario
from engine.workloads.scenario_device import device_of
from engine.workloads.scenario_keys import Table, nearest
from engine.workloads.serving.settings_file import read_serving
from engine.workloads.tiering_keys import enabled_tiering, read_tiering

FORMAT = 1
ALLOCATORS = ("caching", "caching-cuda", "expandable", "stitching", "static", "amc")
_TRAINING_DTYPES = {"bf16": DType.BF16, "fp16": DType.FP16, "fp32": DType.FP32}


def read_scenario(path: Path, overrides: Mapping[tuple[str, ...], Any] | None = None) -> Scenario:
    """Returns the scenario in a TOML file.

    Args:
        path: The file; paths inside it are relative to it.
        overrides: Path of a key → value, set over the file's own.

    Raises:
        ScenarioError: Not readable, not TOML, an unknown key, a value that does not fit.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(
            f"{path}: cannot be read: {error.strerror or error}; give the path of a TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: not a TOML file: {error}") from error
    for key, value in (overrides or {}).items():
        _set(document, key, value)
    try:
        return scenario_from_document(document, path.parent)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from error


def scenario_from_document(document: Mapping[str, Any], folder: Path) -> Scenario:
    """Returns the scenario of a parsed file, checked. Raises ScenarioError."""
    root = Table("", document)
    version = root.integer("format", FORMAT)
    if version != FORMAT:
        raise ScenarioError(f"format is {version}; this release reads format {FORMAT}")
    device, count, per_node = device_of(root.table("device"), folder)
    scenario = Scenario(
        name=root.text("name", "unnamed"),
        kind=root.choice("kind", WorkloadKind, WorkloadKind.TRAINING),
        seed=root.integer("seed", 0, minimum=0),
        model=_model(root.table("model")),
        device=device,
        device_count=count,
        devices_per_node=per_node,
        parallel=_parallel(root.table("parallel"), count, folder),
        batch=_batch(root.table("batch")),
        memory=_memory(root.table("memory"), folder),
        run=_run(root.table("run")),
        serving=read_serving(root.table("serving"), folder),
        optimizations=_optimizations(root.table("optimizations")),
    )
    root.finish()
    tiering = enabled_tiering(scenario.memory.tiering, scenario.optimizations)
    scenario = replace(scenario, memory=replace(scenario.memory, tiering=tiering))
    if not root.has("batch") and scenario.kind is WorkloadKind.TRAINING:
        batch = replace(scenario.batch, global_sequences=scenario.batch.micro * scenario.parallel.data)
        scenario = replace(scenario, batch=batch)
    check_scenario(scenario)
    return scenario


def parallel_from_json(document: Any) -> Mapping[str, Any]:
    """Returns keys of the parallel table from the article's form.

    ``data_parallel`` replicas, ``model_parallel`` tensor-parallel devices, ``pipeline_parallel`` stages,
    ``tensor_parallel_mode`` which way the matrices are cut.
    """
    names = {
        "data_parallel": "data",
        "model_parallel": "tensor",
        "pipeline_parallel": "pipeline",
        "tensor_parallel_mode": "tensor_mode",
    }
    if not isinstance(document, Mapping):
        raise ScenarioError("parallel.file must hold one JSON object")
    for key in document:
        if key not in names:
            raise ScenarioError(f"parallel.file: {key} is not a key of a parallel layout; {nearest(key, names)}")
    return {names[key]: value for key, value in document.items()}


def _set(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *tables, key = path
    for name in tables:
        document = document.setdefault(name, {})
        if not isinstance(document, dict):
            raise ScenarioError(f"{'.'.join(path)}: {name} is not a table")
    document[key] = value


def _model(table: Table) -> ModelSpec:
    if table.has("preset"):
        base = load_model(table.word("preset", model_ids(), ""))
    else:
        needed = {key: table.integer(key) for key in ("layers", "hidden", "ffn", "heads", "vocab")}
        hidden, heads = needed["hidden"], needed["heads"]
        if not table.has("head_dim") and hidden % heads:
            raise table.wrong("heads", f"= {heads} does not divide hidden {hidden}; give head_dim as well")
        base = ModelSpec(
            id="custom",
            layers=needed["layers"],
            hidden=hidden,
            ffn=needed["ffn"],
            heads=heads,
            kv_heads=heads,
            head_dim=max(hidden // heads, 1),
            vocab=needed["vocab"],
        )
    heads = table.integer("heads", base.heads)
    kv_default = base.kv_heads if base.kv_heads != base.heads else heads
    model = replace(
        base,
        layers=table.integer("layers", base.layers),
        hidden=table.integer("hidden", base.hidden),
        ffn=table.integer("ffn", base.ffn),
        heads=heads,
        kv_heads=table.integer("kv_heads", kv_default),
        head_dim=table.integer("head_dim", base.head_dim),
        vocab=table.integer("vocab", base.vocab),
        gated=table.flag("gated", base.gated),
        experts=table.integer("experts", base.experts, minimum=0),
        top_k=table.integer("top_k", base.top_k, minimum=0),
        sliding_window=table.integer("sliding_window", base.sliding_window, minimum=0),
        sliding_every=table.integer("sliding_every", base.sliding_every),
        tied_embeddings=table.flag("tied_embeddings", base.tied_embeddings),
        dtype=_TRAINING_DTYPES[table.word("dtype", _TRAINING_DTYPES, base.dtype.name.lower())],
    )
    table.finish()
    if model.heads % model.kv_heads:
        raise table.wrong("kv_heads", f"= {model.kv_heads} does not divide heads {model.heads}")
    if model.experts and not 1 <= model.top_k <= model.experts:
        raise table.wrong("top_k", f"= {model.top_k} must be between 1 and the {model.experts} experts")
    return model


def _parallel(table: Table, count: int, folder: Path) -> Parallelism:
    if table.has("file"):
        path = folder / table.text("file")
        try:
            keys = parallel_from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise ScenarioError(f"parallel.file {path}: cannot be read as JSON: {error}") from error
        given = {key: table.raw(key) for key in Parallelism.__slots__ if table.has(key)}
        rest = Table("parallel", {**keys, **given})
        table = rest
    defaults = Parallelism()
    tensor, pipeline = table.integer("tensor", 1), table.integer("pipeline", 1)
    context = table.integer("context", 1)
    replica = tensor * pipeline * context
    schedule_default = defaults.schedule
    virtual = table.integer("virtual_pipeline", 1)
    if virtual > 1:
        schedule_default = Schedule.INTERLEAVED
    parallel = Parallelism(
        data=table.integer("data", max(count // replica, 1)),
        tensor=tensor,
        tensor_mode=table.choice("tensor_mode", TensorMode, defaults.tensor_mode),
        pipeline=pipeline,
        virtual_pipeline=virtual,
        context=context,
        expert=table.integer("expert", 1),
        schedule=table.choice("schedule", Schedule, schedule_default),
        sequence_parallel=table.flag("sequence_parallel", defaults.sequence_parallel),
        distributed_optimizer=table.flag("distributed_optimizer", defaults.distributed_optimizer),
    )
    table.finish()
    return parallel


def _batch(table: Table) -> Batch:
    micro = table.integer("micro", 1)
    batch = Batch(
        micro=micro, global_sequences=table.integer("global", micro), lengths=_lengths(table, "sequence_length")
    )
    table.finish()
    return batch


def _lengths(table: Table, key: str) -> SequenceLengths:
    if not isinstance(table.raw(key, 4096), Mapping):
        length = table.integer(key, 4096)
        return SequenceLengths(LengthDistribution.FIXED, length, 0.0, length, length)
    inner = table.table(key)
    kind = inner.choice("distribution", LengthDistribution, LengthDistribution.LOGNORMAL)
    mean = inner.number("mean", minimum=1.0)
    lengths = SequenceLengths(
        distribution=kind,
        mean=mean,
        sigma=inner.number("sigma", 0.5 if kind is LengthDistribution.LOGNORMAL else 0.0),
        minimum=inner.integer("min", 1),
        maximum=inner.integer("max", max(int(2 * mean), 1)),
    )
    inner.finish()
    if lengths.minimum > lengths.maximum:
        raise inner.wrong("min", f"= {lengths.minimum} is above max {lengths.maximum}")
    return lengths


def _memory(table: Table, folder: Path) -> MemorySettings:
    defaults = MemorySettings()
    born = table.table("long_lived")
    usual = defaults.long_lived
    long_lived = LongLived(
        per_step=born.number("per_step", usual.per_step),
        lifetime_steps=born.number("lifetime_steps", usual.lifetime_steps),
        minimum_bytes=born.integer("min_bytes", usual.minimum_bytes),
        maximum_bytes=born.integer("max_bytes", usual.maximum_bytes),
    )
    born.finish()
    memory = MemorySettings(
        allocator=table.word("allocator", ALLOCATORS, defaults.allocator),
        limit_bytes=table.integer("limit_bytes") if table.has("limit_bytes") else None,
        on_out_of_memory=table.choice("on_out_of_memory", OutOfMemoryPolicy, defaults.on_out_of_memory),
        recompute=table.choice("recompute", Recompute, defaults.recompute),
        rules=str(folder / table.text("rules")) if table.has("rules") else None,
        long_lived=long_lived,
        tiering=read_tiering(table),
    )
    table.finish()
    return memory


def _run(table: Table) -> RunSettings:
    steps = table.integer("steps", RunSettings().steps)
    chosen = table.raw("profile_steps", [steps - 1])
    if not isinstance(chosen, list) or not all(type(step) is int and step >= 0 for step in chosen):
        raise table.wrong("profile_steps", f"must be a list of step numbers from 0, not {chosen!r}")
    table.finish()
    return RunSettings(steps, tuple(sorted(set(chosen))))


def _optimizations(table: Table) -> dict[str, dict[str, Any]]:
    chosen: dict[str, dict[str, Any]] = {}
    for identifier in OPTIMIZATION_IDS:
        if table.has(identifier):
            parameters = table.raw(identifier)
            if not isinstance(parameters, dict):
                raise table.wrong(identifier, "must be a table of parameters; {} means its defaults")
            chosen[identifier] = parameters
    table.finish()
    return chosen
