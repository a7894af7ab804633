"""Recordings of simulated jobs tell the element types their operators work on."""

import csv
from pathlib import Path
from typing import Any

import pytest

from engine.devices.spec import DType
from engine.trace.trace import Trace
from engine.workloads.blocks import types_text
from engine.workloads.scenario_file import scenario_from_document
from tests.support.closed_loop import recorded, written_and_read

MODEL = {"layers": 2, "hidden": 256, "ffn": 512, "heads": 4, "vocab": 1000}


def document(**model: Any) -> dict[str, Any]:
    batch = {"micro": 1, "global": 2, "sequence_length": 128}
    return {"name": "typed", "model": {**MODEL, **model}, "device": {"preset": "910b2", "count": 1}, "batch": batch}


def types_of(trace: Trace, op_type: str) -> set[tuple[str, str]]:
    """Returns the shapes' count and the types of every kernel of a type that lists its inputs."""
    columns = (trace.kernels.op_type, trace.kernels.input_shapes, trace.kernels.input_types)
    rows = zip(*map(trace.strings.texts, columns), strict=True)
    return {(str(shapes.count(";") + 1), types) for name, shapes, types in rows if name == op_type and shapes}


@pytest.mark.parametrize(("dtype", "word"), [("bf16", "DT_BF16"), ("fp16", "FLOAT16"), ("fp32", "FLOAT")])
def test_products_are_of_the_models_type_and_the_optimizer_of_fp32(dtype: str, word: str) -> None:
    trace = recorded(scenario_from_document(document(dtype=dtype), Path())).job.ranks[0].trace
    assert types_of(trace, "MatMulV3") == {("2", f"{word};{word}")}
    assert types_of(trace, "ApplyAdamWV2") == {("1", "FLOAT")}
    assert ("2", f"FLOAT;{word}") in types_of(trace, "Add")
    assert types_of(trace, "GatherV2") == {("2", f"{word};INT64")}


def test_profiler_directories_tell_types_and_plain_layouts_and_readers_keep_the_types(tmp_path: Path) -> None:
    trace = written_and_read(scenario_from_document(document(), Path()), tmp_path).job.ranks[0].trace
    assert types_of(trace, "MatMulV3") == {("2", "DT_BF16;DT_BF16")}
    (path,) = tmp_path.rglob("kernel_details.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["Type"] == "MatMulV3"]
    assert {(row["Input Data Types"], row["Input Formats"]) for row in rows} == {("DT_BF16;DT_BF16", "ND;ND")}


def test_level_0_tells_no_types() -> None:
    trace = recorded(scenario_from_document(document(), Path()), level=0).job.ranks[0].trace
    assert set(trace.kernels.input_types.tolist()) == {-1}


def test_every_element_type_has_a_word() -> None:
    assert len(set(types_text(list(DType)).split(";"))) == len(DType)
