"""The shipped constants against published operator times; skipped where the tables are not."""

from engine.core.progress import no_progress
from engine.workloads.fidelity.operator_rows import FILE, read_operator_rows
from engine.workloads.fidelity.operators import evaluate_matmuls, evaluate_operators, evaluate_unseen_operators


def test_every_row_of_the_two_devices_is_priced(validation):
    tables = read_operator_rows(validation / FILE)
    assert {table.measured.device.id for table in tables} == {"910b2", "910b3"}
    for table in tables:
        assert len(table) == len(table.measured.measured_ns) == table.measured.row.max() + 1


def test_operators_are_within_a_fifth_of_their_measured_time_in_the_median(validation):
    result = evaluate_operators(validation, no_progress)
    assert result.scores.median_ratio <= 0.10
    assert result.scores.spearman >= 0.95
    assert result.holds
    for baseline in result.baselines.values():
        assert result.scores.mape_ratio < baseline.mape_ratio / 2


def test_operators_nobody_measured_are_still_better_than_bytes_alone(validation):
    result = evaluate_unseen_operators(validation, no_progress)
    assert result.scores.median_ratio < result.baselines["bytes over bandwidth"].median_ratio / 1.5


def test_matmuls_of_stated_shapes_keep_their_order_and_size(validation):
    result = evaluate_matmuls(validation, no_progress)
    assert result.scores.median_ratio <= 0.15
    assert result.scores.spearman >= 0.97
