"""A twin of a recorded job: what the simulator recorded is read back, and a real job is recognised."""

from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest

from engine.core.errors import MissingDataError
from engine.formats import open_job
from engine.formats.readers import built_in_readers
from engine.whatif.subject import capture_subject
from engine.whatif.twin.fit import fitted_twin
from engine.whatif.twin.model_sizes import rank_model
from engine.whatif.twin.products import product_extents, rank_kernels
from engine.workloads.calibration.kernel_texts import kernel_shapes
from engine.workloads.scenario_file import read_scenario, scenario_from_document
from tests.support.closed_loop import recorded

SHIPPED = ("exposed_communication", "unfused_attention", "pipeline_bubbles", "healthy_training")
SIZES = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab", "gated")


def shipped(name):
    with resources.as_file(resources.files("engine.workloads").joinpath("scenarios", f"{name}.toml")) as path:
        return read_scenario(path)


def twin_of(job):
    return fitted_twin(capture_subject(job))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_the_simulator_recorded_is_read_back(name):
    scenario = shipped(name)
    recording = recorded(scenario)

    twin = twin_of(recording.job)

    again = scenario_from_document(twin.document, Path())
    assert {size: getattr(again.model, size) for size in SIZES} == {
        size: getattr(scenario.model, size) for size in SIZES
    }
    layout = ("data", "tensor", "pipeline", "context")
    assert [getattr(again.parallel, key) for key in layout] == [getattr(scenario.parallel, key) for key in layout]
    assert again.device.id == scenario.device.id
    assert again.batch.micro == scenario.batch.micro
    assert again.batch.global_sequences == scenario.batch.global_sequences
    assert again.batch.lengths == scenario.batch.lengths
    assert twin.step_error_ratio == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize(
    ("recompute", "name"),
    [("full", "healthy_training"), ("full", "unfused_attention"), ("selective", "unfused_attention")],
)
def test_recomputation_is_read_from_how_often_products_and_attention_run(recompute, name):
    scenario = shipped(name)
    memory = replace(scenario.memory, recompute=type(scenario.memory.recompute)(recompute))

    twin = twin_of(recorded(replace(scenario, memory=memory)).job)

    assert twin.document["memory"]["recompute"] == recompute


def test_a_job_of_several_ranks_without_group_sizes_has_no_twin():
    job = recorded(shipped("pipeline_bubbles")).job
    bare = [
        replace(entry, trace=replace(entry.trace, metadata=replace(entry.trace.metadata, parallel_sizes={})))
        for entry in job.ranks
    ]

    with pytest.raises(MissingDataError, match="sizes of its parallel groups"):
        twin_of(replace(job, ranks=tuple(bare)))


def test_a_mixture_of_experts_is_refused_by_name():
    scenario = shipped("unfused_attention")
    experts = replace(scenario, model=replace(scenario.model, experts=4, top_k=2))
    job = recorded(experts).job

    with pytest.raises(MissingDataError, match="mixture of experts"):
        rank_model(rank_kernels(job.ranks[0].trace))


@pytest.mark.parametrize(
    ("inputs", "outputs", "extents"),
    [
        ("4096,1024;6144,1024", "4096,6144", (1024, 4096, 6144)),
        ("9496,256,16,16;64,256,16,16", "151936,1024", (1024, 4096, 151936)),
        ("4096,1536;1536,17920", "", (1536, 4096, 17920)),
        ("4096,1536;17920,1536", "", None),
        (";1536,17920", "", None),
    ],
)
def test_extents_of_a_product_hold_for_any_orientation(inputs, outputs, extents):
    assert product_extents(kernel_shapes("MatMulV3", inputs, "", outputs, "")) == extents


def test_the_qwen3_job_is_recognised(captures):
    job = open_job([captures / "ascend" / "910b-qwen3-0.6b-pp2dp2"], built_in_readers())

    twin = twin_of(job)

    assert twin.document["model"]["preset"] == "qwen3-0.6b"
    assert twin.document["parallel"]["pipeline"] == 2
    assert twin.document["parallel"]["data"] == 2
    assert twin.document["parallel"]["distributed_optimizer"]
    assert twin.document["batch"] == {"micro": 1, "global": 4, "sequence_length": 4096}
    assert {"fusion.attention", "fusion.swiglu"} <= twin.document["optimizations"].keys()
    assert "fusion.cross_entropy" not in twin.document["optimizations"]
    assert twin.computing_error_ratio == pytest.approx(0, abs=0.2)


def test_a_job_that_is_no_transformer_says_what_is_missing(captures):
    job = open_job([captures / "ascend" / "910b-cnn-ddp2-text" / "level1"], built_in_readers())

    with pytest.raises(MissingDataError, match="no attention kernels"):
        twin_of(job)
