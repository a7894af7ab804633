"""What the product keeps for its user, as tests see it."""

import subprocess
import sys
from pathlib import Path

from engine.core.user_places import (
    bench_history_place,
    cache_place,
    calibration_log_place,
    data_place,
    settings_place,
    simulations_place,
)


def test_no_test_and_no_process_it_starts_writes_where_the_user_keeps_things(tmp_path: Path) -> None:
    program = "from engine.core.user_places import data_place; print(data_place(), end='')"
    started = subprocess.run(  # noqa: S603 - our own interpreter on our own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert {data_place(), Path(started.stdout)} == {tmp_path / "data"}
    places = (cache_place(), settings_place(), simulations_place(), bench_history_place(), calibration_log_place())
    assert all(place.is_relative_to(tmp_path) for place in places)


def test_runs_go_among_the_users_data_unless_they_have_a_place_of_their_own(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CANNSCOPE_SIMULATIONS")
    assert simulations_place() == tmp_path / "data" / "simulations"
