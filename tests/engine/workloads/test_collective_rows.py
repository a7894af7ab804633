from pathlib import Path

import pytest

from engine.core.errors import TraceReadError
from engine.core.progress import no_progress
from engine.workloads.fidelity.collectives import COLLECTIVE_TABLES, evaluate_lut
from engine.workloads.fidelity.registry import FIDELITY_TABLES


@pytest.mark.parametrize("table", COLLECTIVE_TABLES, ids=lambda table: table.id)
def test_published_collectives_are_met_and_the_data_sheet_is_beaten(table, captures: Path) -> None:
    directory = captures.parent / "reference" / "validation"
    if not directory.is_dir():
        pytest.skip("no validation tables beside the captures")
    result = table.evaluate(directory, no_progress)
    limits = {"nccl_lut": 0.05, "comm_vidur": 0.25, "ascend_micro_comm": 0.10}
    assert result.holds
    assert result.scores.mape_ratio <= limits[table.id]
    assert result.scores.mape_ratio < result.baselines["data sheet"].mape_ratio / 2
    assert sum(part.rows_count for part in result.parts.values()) == result.scores.rows_count


def test_the_tables_are_among_those_the_command_prints() -> None:
    assert set(COLLECTIVE_TABLES) <= set(FIDELITY_TABLES)


def test_a_directory_without_the_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match="look-up table"):
        evaluate_lut(tmp_path, no_progress)
