"""Scenario files: what is accepted, and how errors read."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.core.errors import ScenarioError
from engine.workloads.overrides import enabled_overrides, set_overrides
from engine.workloads.scenario import LengthDistribution, Recompute, Schedule, TensorMode
from engine.workloads.scenario_file import read_scenario, scenario_from_document

FULL = """
format = 1
name = "gpt-oss-20b on 32 NPUs"
kind = "training"
seed = 7
[model]
preset = "gpt-oss-20b"
layers = 12
[device]
preset = "910b2"
count = 32
per_node = 8
[parallel]
data = 4
tensor = 4
tensor_mode = "row_split"
pipeline = 2
schedule = "1f1b"
[batch]
micro = 1
global = 128
sequence_length = { distribution = "lognormal", mean = 2048, sigma = 0.4, max = 4096 }
[memory]
allocator = "expandable"
limit_bytes = 60_000_000_000
recompute = "selective"
[run]
steps = 4
profile_steps = [2]
[optimizations]
"fusion.attention" = {}
"""


def document(**tables: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "model": {"layers": 8, "hidden": 512, "ffn": 2048, "heads": 8, "vocab": 1024},
        "device": {"preset": "910b2", "count": 8},
        "batch": {"micro": 1, "global": 16, "sequence_length": 1024},
    }
    for name, values in tables.items():
        base[name] = {**base.get(name, {}), **values}
    return base


def read(**tables: Any) -> Any:
    return scenario_from_document(document(**tables), Path())


def test_every_key_of_the_contract_is_read(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(FULL)
    scenario = read_scenario(path)
    assert (scenario.name, scenario.seed, scenario.device_count) == ("gpt-oss-20b on 32 NPUs", 7, 32)
    assert (scenario.model.layers, scenario.model.experts) == (12, 32)
    assert scenario.parallel.tensor_mode is TensorMode.ROW_SPLIT
    assert scenario.batch.lengths.distribution is LengthDistribution.LOGNORMAL
    assert scenario.memory.limit_bytes == 60_000_000_000
    assert scenario.memory.recompute is Recompute.SELECTIVE
    assert scenario.run.profile_steps == (2,)
    assert scenario.enabled("fusion.attention")
    assert scenario.micro_batch_count == 32


def test_only_model_and_device_are_needed() -> None:
    scenario = scenario_from_document({"model": {"preset": "llama2-7b"}, "device": {"preset": "910b2"}}, Path())
    assert scenario.parallel.world_size == scenario.device_count == 1


def test_replicas_follow_from_the_number_of_devices() -> None:
    assert read(parallel={"tensor": 2, "pipeline": 2}).parallel.data == 2


def test_virtual_stages_imply_the_interleaved_schedule() -> None:
    assert read(parallel={"pipeline": 2, "virtual_pipeline": 2}).parallel.schedule is Schedule.INTERLEAVED


def test_the_articles_parallel_layout_is_accepted_as_it_stands(tmp_path: Path) -> None:
    layout = {"data_parallel": 2, "model_parallel": 2, "pipeline_parallel": 2, "tensor_parallel_mode": "row_split"}
    (tmp_path / "parallel.json").write_text(json.dumps(layout))
    parallel = scenario_from_document(document(parallel={"file": "parallel.json"}), tmp_path).parallel
    assert (parallel.data, parallel.tensor, parallel.pipeline) == (2, 2, 2)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"batch": {"globl": 8}}, ["batch.globl", "global"]),
        ({"memory": {"allocator": "cachng"}}, ["memory.allocator", "cachng", "caching"]),
        ({"optimizations": {"fusion.atention": {}}}, ["fusion.atention", "fusion.attention"]),
        ({"parallel": {"data": 3}}, ["parallel", "3 devices", "device.count is 8", "parallel.data = 8"]),
        ({"parallel": {"tensor": 16, "data": 1}, "device": {"count": 16}}, ["parallel.tensor = 16", "8 heads", "8"]),
        ({"parallel": {"pipeline": 3, "data": 1}, "device": {"count": 3}}, ["parallel.pipeline", "unequal", "2 or 4"]),
        ({"batch": {"global": 12}}, ["batch.global = 12", "8 or 16"]),
        ({"batch": {"micro": "two"}}, ["batch.micro", "whole number", "two"]),
        ({"device": {"preset": "910b9"}}, ["device.preset", "910b9", "910b"]),
        ({"run": {"steps": 2, "profile_steps": [2]}}, ["run.profile_steps", "2"]),
        ({"parallel": {"expert": 2}}, ["parallel.expert", "no experts"]),
        ({"model": {"kv_heads": 3}}, ["model.kv_heads", "3"]),
        ({"memory": {"on_out_of_memory": "split"}, "parallel": {"pipeline": 2}}, ["on_out_of_memory", "pipeline = 1"]),
        ({"parallel": {"schedule": "1f1b", "virtual_pipeline": 2, "pipeline": 2}}, ["virtual_pipeline", "interleaved"]),
        (
            {"batch": {"sequence_length": 1022}, "parallel": {"tensor": 8}},
            ["batch.sequence_length = 1022", "1016 or 1024"],
        ),
    ],
)
def test_what_cannot_run_is_refused_naming_the_field_and_what_would_do(tables: Any, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(**tables)
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_is_no_toml_is_one_plain_error(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text("model = [")
    with pytest.raises(ScenarioError, match=r"job\.toml: not a TOML file"):
        read_scenario(path)


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(FULL)
    changes = {
        **set_overrides(["batch.global=64", "memory.allocator=amc"]),
        **enabled_overrides(["memory.gc_threshold:threshold=0.7"]),
    }
    scenario = read_scenario(path, changes)
    assert (scenario.batch.global_sequences, scenario.memory.allocator) == (64, "amc")
    assert scenario.optimizations["memory.gc_threshold"] == {"threshold": 0.7}


def test_an_unknown_optimization_on_the_command_line_names_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"fusion\.swiglu"):
        enabled_overrides(["fusion.swiglue"])
