"""The models that ship: their weights against what is published."""

import json

import pytest

from engine.workloads.models.catalogue import (
    ModelDataError,
    catalogued_model,
    load_model,
    model_from_document,
    model_ids,
)
from engine.workloads.models.counts import parameter_counts
from tests.support.captures import captures_directory


@pytest.mark.parametrize("model_id", model_ids())
def test_weights_counted_from_shapes_are_the_published_number(model_id):
    model = catalogued_model(model_id)
    assert parameter_counts(model.spec).total_count == pytest.approx(model.published_parameters, rel=0.007)


def test_counts_are_exact_where_the_exact_number_is_known():
    assert parameter_counts(load_model("llama2-7b")).total_count == 6_738_415_616
    assert parameter_counts(load_model("gpt-oss-20b")).total_count == 20_914_757_184
    assert parameter_counts(load_model("qwen2-0.5b")).total_count == 494_032_768


def test_counts_agree_with_the_reference_values():
    captures = captures_directory()
    reference = captures.parent / "reference" / "models.json" if captures else None
    if reference is None or not reference.is_file():
        pytest.skip("no reference values beside the captures")
    published = json.loads(reference.read_text(encoding="utf-8"))
    for model_id in set(published) & set(model_ids()):
        counts = parameter_counts(load_model(model_id))
        expected = published[model_id].get("params_matmul_plus_embed") or published[model_id]["params_total"]
        assert counts.total_count == pytest.approx(expected, rel=0.001), model_id


def test_a_token_visits_only_some_experts():
    counts = parameter_counts(load_model("gpt-oss-20b"))
    assert counts.active_count == pytest.approx(3.6e9, rel=0.01)
    assert parameter_counts(load_model("mixtral-8x7b")).active_count == pytest.approx(12.8e9, rel=0.01)


def test_an_unknown_model_names_the_nearest():
    with pytest.raises(ModelDataError, match="gpt-oss-20b"):
        load_model("gpt-oss-21b")


def test_a_data_file_with_an_unknown_field_is_refused():
    with pytest.raises(ModelDataError, match="unknown fields colour"):
        model_from_document({"format": 1, "id": "x", "fields": {"colour": 1}})
    with pytest.raises(ModelDataError, match="format 2"):
        model_from_document({"format": 2, "id": "x"})
