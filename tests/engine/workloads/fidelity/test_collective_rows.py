from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import TraceReadError
from engine.core.progress import no_progress
from engine.runtime.collectives.network import measured_constants
from engine.workloads.fidelity.collective_fit import fitted_constants
from engine.workloads.fidelity.collective_rows import vidur_groups
from engine.workloads.fidelity.collectives import COLLECTIVE_TABLES, evaluate_lut, evaluate_vidur_unseen
from engine.workloads.fidelity.registry import FIDELITY_TABLES


@pytest.mark.parametrize("table", COLLECTIVE_TABLES, ids=lambda table: table.id)
def test_published_collectives_are_met_and_the_data_sheet_is_beaten(table, validation: Path) -> None:
    result = table.evaluate(validation, no_progress)
    limits = {"nccl_lut": 0.05, "comm_vidur": 0.25, "ascend_micro_comm": 0.10}
    assert result.holds
    assert result.scores.mape_ratio <= limits[table.id]
    assert result.scores.mape_ratio < result.baselines["data sheet"].mape_ratio / 2
    assert sum(part.rows_count for part in result.parts.values()) == result.scores.rows_count


@pytest.mark.slow
def test_rows_a_fit_did_not_see_are_met_too(validation: Path) -> None:
    assert evaluate_vidur_unseen(validation, no_progress).holds


def test_the_shipped_constants_are_what_the_fit_gives(validation: Path) -> None:
    """On one family of rows: the fit of all of them takes longer than a test may."""
    pairs = [group for group in vidur_groups(validation) if group.system == "a100_pairwise_nvlink"]
    found = fitted_constants(pairs, [np.ones(len(group.size_bytes), dtype=np.bool_) for group in pairs], no_progress)
    links = [
        constants["systems"]["a100_pairwise_nvlink"]["links"]["node"] for constants in (found, measured_constants())
    ]
    for name in ("base_ns", "step_ns", "lane_bytes_per_s"):
        assert links[0][name]["value"] == pytest.approx(links[1][name]["value"], rel=0.01)


def test_the_tables_are_among_those_the_command_prints() -> None:
    assert set(COLLECTIVE_TABLES) <= set(FIDELITY_TABLES)


def test_a_directory_without_the_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceReadError, match="look-up table"):
        evaluate_lut(tmp_path, no_progress)
