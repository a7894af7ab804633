"""The runtime against published training runs; needs the tables, and minutes."""

from pathlib import Path

import pytest

from engine.core.progress import no_progress
from engine.workloads.fidelity.ablation import ABLATION_TABLES
from engine.workloads.fidelity.tables import RowVerdict
from engine.workloads.fidelity.training import TRAINING_TABLES


@pytest.mark.slow
@pytest.mark.parametrize("table", TRAINING_TABLES, ids=lambda table: table.id)
def test_training_tables_hold_their_targets(table, validation: Path) -> None:
    result = table.evaluate(validation, no_progress)
    assert result.holds, result.scores
    assert all(result.scores.mape_ratio < naive.mape_ratio for naive in result.baselines.values())
    assert result.scores.spearman is not None
    assert result.scores.spearman >= 0.95


@pytest.mark.slow
def test_every_feature_changes_a_job_in_the_published_direction(validation: Path) -> None:
    (table,) = ABLATION_TABLES
    result = table.evaluate(validation, no_progress)
    assert result.holds, [row.name for row in result.rows if row.verdict is RowVerdict.WRONG_SIGN]
    run = [row for row in result.rows if row.predicted is not None]
    within = [row for row in run if row.verdict is RowVerdict.WITHIN]
    assert len(within) >= 0.6 * len(run)
    assert all(row.note for row in result.rows)
