from collections.abc import Callable

import pytest

from engine.core.progress import no_progress
from engine.workloads.fidelity.registry import FIDELITY_TABLES
from engine.workloads.fidelity.serving import evaluate_baselines, evaluate_concurrency, evaluate_requests
from engine.workloads.fidelity.tables import FidelityResult, RowVerdict, chosen_tables


@pytest.fixture
def validation(captures):
    return captures.parent / "reference" / "validation"


@pytest.mark.parametrize("evaluate", [evaluate_requests, evaluate_concurrency, evaluate_baselines])
def test_the_engine_follows_published_runs(validation, evaluate: Callable[..., FidelityResult]):
    result = evaluate(validation, no_progress)
    assert result.holds
    run = [row for row in result.rows if row.verdict is not RowVerdict.NOT_EXPRESSIBLE]
    assert run
    assert all(row.verdict is RowVerdict.WITHIN for row in run)


def test_rows_that_cannot_be_modelled_say_why(validation):
    rows = evaluate_baselines(validation, no_progress).rows
    assert all(row.note for row in rows)
    assert any("acceptance" in row.note for row in rows)


def test_one_word_chooses_all_tables_of_services():
    chosen = chosen_tables(FIDELITY_TABLES, "serving")
    assert [table.id for table in chosen] == ["serving-requests", "serving-concurrency", "serving-baselines"]
    assert [table.id for table in chosen_tables(FIDELITY_TABLES, "operators")] == ["operators"]
